r"""Readers of parallel text: two aligned files, TSV or JSONL, each also gzipped, and Tatoeba's zip.

A line ends at `\n` and nowhere else (U+2028, U+0085, form feed and a lone CR are text); a BOM and a CR before
`\n` are not part of it.
"""

import gzip
import json
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from seq2seq.errors import UserError

RawPair = tuple[str, str]


def read_lines(path: Path) -> Iterator[str]:
    """Lines of a UTF-8 text file, gzipped if its name ends in .gz."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            yield from decode_lines(stream, str(path))
    except (OSError, EOFError, zlib.error) as error:
        reason = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read: {error}"
        raise UserError(f"{path} {reason}") from None


def decode_lines(stream: Iterable[bytes], name: str) -> Iterator[str]:
    """Lines of a binary stream as text, without their line ends."""
    # Iterating over a binary stream splits at b"\n" alone.
    for number, line in enumerate(stream, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise UserError(f"{name}, line {number}: not UTF-8 ({error.reason})") from None
        yield text.removesuffix("\n").removesuffix("\r")


def read_pairs(paths: list[Path], source: str, target: str) -> Iterator[RawPair]:
    """Pairs of two line-parallel files, or of one TSV or JSONL file."""
    if len(paths) == 2:
        return read_parallel(*paths)
    if len(paths) == 1:
        kind = [suffix for suffix in paths[0].suffixes if suffix != ".gz"][-1:]
        if kind == [".tsv"]:
            return read_tsv(paths[0])
        if kind in ([".jsonl"], [".json"]):
            return read_jsonl(paths[0], source, target)
    names = ", ".join(map(str, paths)) or "nothing"
    raise UserError(f"data files {names}: give two line-parallel text files, or one .tsv or .jsonl (also .gz)")


def read_parallel(source: Path, target: Path) -> Iterator[RawPair]:
    """Line n of one file with line n of the other; refuses files of unequal length."""
    lines, others = read_lines(source), read_lines(target)
    count = 0
    for count, line in enumerate(lines, 1):
        other = next(others, None)
        if other is None:
            total = count + sum(1 for _ in lines)
            raise UserError(f"{source} has {total} lines but {target} has {count - 1}: they must be line-parallel")
        yield line, other
    rest = sum(1 for _ in others)
    if rest:
        raise UserError(f"{source} has {count} lines but {target} has {count + rest}: they must be line-parallel")


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
    """One object a line: {"en": ..., "fr": ...} or {"translation": {"en": ..., "fr": ...}}."""
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            row = row.get("translation", row)
            pair = row[source], row[target]
        except (ValueError, AttributeError, KeyError, TypeError):
            pair = (None, None)
        if not (isinstance(pair[0], str) and isinstance(pair[1], str)):
            raise UserError(f"{path}, line {number}: expected an object with texts {source!r} and {target!r}")
        yield pair


def read_tatoeba(path: Path) -> Iterator[RawPair]:
    """The pairs of manythings.org's `fra-eng.zip`: English TAB French, newer releases with an attribution."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open("fra.txt") as stream:
            yield from _columns(decode_lines(stream, f"{path}/fra.txt"), f"{path}/fra.txt")
    except (OSError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        reason = "does not exist" if isinstance(error, FileNotFoundError) else f"is not Tatoeba's fra-eng.zip ({error})"
        raise UserError(f"{path} {reason}") from None
