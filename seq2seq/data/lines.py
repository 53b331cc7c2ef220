r"""Lines of text files, plain or gzipped.

A line ends at `\n` and nowhere else (U+2028, U+0085, form feed and a lone CR are text); a BOM and a CR before
`\n` are not part of it.
"""

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from seq2seq.errors import UserError

SURROGATE = re.compile("[\ud800-\udfff]")


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """A file's bytes, unzipped if its name ends in .gz; what goes wrong while it is open is told in one line."""
    try:
        with path.open("rb") as stream:
            yield gzip.GzipFile(fileobj=stream) if path.suffix == ".gz" else stream
    except (OSError, EOFError, zlib.error) as error:
        found = not isinstance(error, FileNotFoundError)
        reason = f"cannot be read: {' '.join(str(error).split())}" if found else "does not exist"
        raise UserError(f"{path} {reason}") from None


def read_lines(path: Path) -> Iterator[str]:
    """Lines of a UTF-8 text file, gzipped if its name ends in .gz."""
    with opened(path) as stream:
        yield from decode_lines(stream, str(path))


def decode_lines(stream: Iterable[bytes], name: str) -> Iterator[str]:
    """Lines of a binary stream as text, without their line ends."""
    # Iterating over a binary stream splits at b"\n" alone.
    for number, line in enumerate(stream, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise UserError(f"{name}, line {number}: not UTF-8 ({error.reason})") from None
        yield text.removesuffix("\n").removesuffix("\r")


def decode_whole(stream: IO[bytes] | gzip.GzipFile, name: str) -> str:
    """A binary stream as one text, with its line ends."""
    try:
        return stream.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{name}: not UTF-8 at byte {error.start:,} ({error.reason})") from None


def one_line(text: str) -> str:
    """A sentence from a form whose texts may hold line breaks: each, with the blanks around it, becomes a space."""
    if "\n" not in text:
        return text
    return " ".join(part.strip(" \t\r") for part in text.split("\n")).strip(" ")


def writable(text: str) -> str:
    """A text that can be written as UTF-8: half a surrogate pair, as a JSON escape can leave it, becomes U+FFFD."""
    return text if text.isascii() else SURROGATE.sub("\ufffd", text)
