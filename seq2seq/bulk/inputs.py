"""The files of a bulk translation: what is refused before work begins, and their rows, a shard at a time."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from seq2seq.data.files import read_lines
from seq2seq.errors import UserError, first_line

ID, TRANSLATION, TRUNCATED = "id", "translation", "truncated"  # the columns that are added


def is_parquet(path: Path) -> bool:
    """By its name."""
    return path.suffix == ".parquet"


# What is refused


def check_inputs(paths: Sequence[Path], column: str) -> None:
    """Refuse inputs that are not there, not of one kind, or lack the column."""
    for path in paths:
        if not path.is_file():
            raise UserError(f"{path} " + ("is not a file" if path.exists() else "does not exist"))
        if is_parquet(path) != is_parquet(paths[0]):
            raise UserError(f"{paths[0]} and {path}: give text files or Parquet files, not both")
    if not is_parquet(paths[0]):
        return
    schemas = [check_schema(path, column) for path in paths]
    for path, schema in zip(paths, schemas, strict=True):
        if not schema.equals(schemas[0]):
            raise UserError(f"{path} has other columns or types than {paths[0]}: run one job for each")


def check_schema(path: Path, column: str) -> pa.Schema:
    """The columns of a Parquet file that can be translated."""
    schema = open_parquet(path).schema_arrow
    if column not in schema.names:
        raise UserError(f"{path} has no column {column!r}: choose --column from {', '.join(schema.names)}")
    kind = schema.field(column).type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise UserError(f"{path}: column {column!r} holds {kind}, not text: choose another --column")
    for name in (ID, TRANSLATION, TRUNCATED):
        if name in schema.names:
            raise UserError(f"{path} has a column {name!r}, which the output needs: rename it")
    return schema


def open_parquet(path: Path) -> pq.ParquetFile:
    """A Parquet file, of which nothing but the description is read yet."""
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path} cannot be read as Parquet: {first_line(error)}") from None


# Rows


def read_rows(path: Path, column: str, rows: int) -> Iterator[pa.Table]:
    """A file as tables of so many rows, the last of fewer; one table without rows if it has none.

    Lines of a text file become the column of that name; a Parquet file keeps all its columns.
    """
    return _read_parquet(path, rows) if is_parquet(path) else _read_text(path, column, rows)


def _read_text(path: Path, column: str, rows: int) -> Iterator[pa.Table]:
    lines = read_lines(path)
    chunk = list(itertools.islice(lines, rows))
    while True:
        yield pa.table({column: pa.array(chunk, pa.string())})
        chunk = list(itertools.islice(lines, rows))
        if not chunk:
            return


def _read_parquet(path: Path, rows: int) -> Iterator[pa.Table]:
    file = open_parquet(path)
    if not file.metadata.num_rows:
        yield file.schema_arrow.remove_metadata().empty_table()
    try:
        for batch in file.iter_batches(rows):
            # Metadata may describe the columns (pandas and `datasets` do that), and there will be more of them.
            yield pa.Table.from_batches([batch]).replace_schema_metadata(None)
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path} is damaged: {first_line(error)}") from None
