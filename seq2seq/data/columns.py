"""Pairs in the columns of Arrow tables: Parquet files and hub datasets."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from seq2seq.data.lines import one_line, opened
from seq2seq.errors import UserError

ROWS = 4096  # read at a time


def read_parquet(path: Path, source: str, target: str) -> Iterator[tuple[str, str]]:
    """Pairs of a Parquet file, some thousand rows at a time."""
    with opened(path) as stream, _seekable(stream, path) as file:
        try:
            parquet = pq.ParquetFile(file)
            names = text_columns(parquet.schema_arrow, source, target, str(path))
            for batch in parquet.iter_batches(ROWS, columns=list(names), use_threads=False):
                yield from pairs_of(batch, names, source, target)
        except (pa.ArrowException, UnicodeDecodeError) as error:
            raise UserError(f"{path} cannot be read as Parquet: {' '.join(str(error).split())}") from None


@contextmanager
def _seekable(stream: Any, path: Path) -> Iterator[IO[bytes]]:
    """Parquet is read from its end, which a gzip stream does not have: that is unzipped into a temporary file."""
    if path.suffix != ".gz":
        yield stream
        return
    with tempfile.TemporaryFile() as file:
        shutil.copyfileobj(stream, file)
        file.seek(0)
        yield file


def text_columns(schema: pa.Schema, source: str, target: str, name: str) -> tuple[str, ...]:
    """The columns to read: two named by language, `translation` ({language: text}), or `source` and `target`."""
    for names in ((source, target), ("translation",), ("source", "target")):
        if set(names) <= set(schema.names):
            for label, kind in _texts(schema, names, source, target, name):
                if not _is_text(kind):
                    raise UserError(f"{name}: column {label!r} is {kind}, not text")
            return names
    wanted = f"{source!r} and {target!r}, 'translation', or 'source' and 'target'"
    raise UserError(f"{name} has no columns {wanted} but {', '.join(schema.names) or 'none'}")


def _texts(
    schema: pa.Schema, names: tuple[str, ...], source: str, target: str, name: str
) -> Iterator[tuple[str, pa.DataType]]:
    """Name and type of what must be text."""
    if len(names) == 2:
        yield from ((column, schema.field(column).type) for column in names)
        return
    kind = schema.field(names[0]).type
    if pa.types.is_map(kind):
        yield names[0], kind.item_type
    elif pa.types.is_struct(kind):
        languages = {field.name: field.type for field in kind}
        if not {source, target} <= set(languages):
            raise UserError(f"{name} holds the languages {', '.join(languages)}, not {source} and {target}")
        yield from ((f"translation.{language}", languages[language]) for language in (source, target))
    else:
        raise UserError(f"{name}: column {names[0]!r} is {kind}, not a struct or map of languages")


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return str(kind) in ("string", "large_string", "string_view", "null")


def pairs_of(batch: pa.RecordBatch, names: tuple[str, ...], source: str, target: str) -> Iterator[tuple[str, str]]:
    """Pairs of some rows. A missing value is a blank sentence, so that the rule `empty` counts it."""
    columns = [batch.column(column).to_pylist() for column in names]
    if len(names) == 1:
        rows: list[dict[str, Any]] = [dict(row or {}) for row in columns[0]]
        columns = [[row.get(language) for row in rows] for language in (source, target)]
    for left, right in zip(*columns, strict=True):
        yield one_line(left or ""), one_line(right or "")
