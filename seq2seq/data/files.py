"""Files of parallel text, whatever their form, as a stream of pairs: the form is known by the name's ending."""

import json
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from seq2seq.data.lines import decode_lines, one_line, read_lines
from seq2seq.errors import UserError

__all__ = ["RawPair", "decode_lines", "form_of", "read_lines", "read_pairs", "read_tatoeba", "read_tsv"]

RawPair = tuple[str, str]
FORMS = ".tsv, .csv, .jsonl, .parquet or .tmx"


def form_of(path: Path) -> str:
    """The ending that says what is in a file, .gz left aside; "" for plain text."""
    kind = [suffix.lower() for suffix in path.suffixes if suffix != ".gz"][-1:]
    return kind[0] if kind and kind[0] in (".tsv", ".csv", ".jsonl", ".json", ".parquet", ".tmx") else ""


def read_pairs(paths: list[Path], source: str, target: str) -> Iterator[RawPair]:
    """Pairs of two line-parallel text files, or of one file of another form; each may be gzipped."""
    forms = [form_of(path) for path in paths]
    if len(paths) == 2 and not any(forms):
        return read_parallel(*paths)
    if len(paths) == 1 and forms[0]:
        return _reader(forms[0])(paths[0], source, target)
    names = ", ".join(map(str, paths)) or "nothing"
    raise UserError(f"data files {names}: give two line-parallel text files, or one {FORMS} (also .gz)")


def _reader(form: str) -> Callable[[Path, str, str], Iterator[RawPair]]:
    """The reader of one form; what it needs is imported when it is needed."""
    if form == ".tsv":
        return lambda path, source, target: read_tsv(path)
    if form == ".csv":
        from seq2seq.data.sheet import read_csv

        return read_csv
    if form == ".parquet":
        from seq2seq.data.columns import read_parquet

        return read_parquet
    if form == ".tmx":
        from seq2seq.data.tmx import read_tmx

        return read_tmx
    return read_jsonl


def read_parallel(source: Path, target: Path) -> Iterator[RawPair]:
    """Line n of one file with line n of the other; refuses files of unequal length."""
    lines, others = read_lines(source), read_lines(target)
    while True:
        line, other = next(lines, None), next(others, None)
        if line is None and other is None:
            return
        if line is None or other is None:
            from seq2seq.data.parting import describe_parting

            raise UserError(describe_parting(source, target))
        yield line, other


def read_tsv(path: Path) -> Iterator[RawPair]:
    """Source TAB target; further columns (an attribution) are ignored, quotes are text. Blank lines are skipped."""
    return _columns(read_lines(path), str(path))


def _columns(lines: Iterator[str], name: str) -> Iterator[RawPair]:
    for number, line in enumerate(lines, 1):
        columns = line.split("\t")
        if len(columns) >= 2:
            yield columns[0], columns[1]
        elif line.strip():
            raise UserError(f"{name}, line {number}: 1 column, expected source TAB target: {line[:60]!r}")


def read_jsonl(path: Path, source: str, target: str) -> Iterator[RawPair]:
    """One object a line: {"en": ..., "fr": ...}, {"source": ..., "target": ...}, or either as "translation"."""
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        try:
            pair = pair_of(json.loads(line), source, target)
        except (ValueError, RecursionError):  # RecursionError: thousands of brackets
            pair = None
        if pair is None:
            raise UserError(f"{path}, line {number}: expected an object with texts {source!r} and {target!r}")
        yield pair


def pair_of(row: Any, source: str, target: str) -> RawPair | None:
    """The two texts of an object, by language or as `source` and `target`; None if they are not there."""
    holders = [row, row.get("translation")] if isinstance(row, dict) else []
    for names in ((source, target), ("source", "target")):
        for holder in holders:
            if isinstance(holder, dict) and all(isinstance(holder.get(name), str) for name in names):
                return one_line(holder[names[0]]), one_line(holder[names[1]])
    return None


def read_tatoeba(path: Path) -> Iterator[RawPair]:
    """The pairs of manythings.org's `fra-eng.zip`: English TAB French, newer releases with an attribution."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open("fra.txt") as stream:
            yield from _columns(decode_lines(stream, f"{path}/fra.txt"), f"{path}/fra.txt")
    except (OSError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        reason = "does not exist" if isinstance(error, FileNotFoundError) else f"is not Tatoeba's fra-eng.zip ({error})"
        raise UserError(f"{path} {reason}") from None
