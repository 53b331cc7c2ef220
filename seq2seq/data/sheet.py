r"""CSV as a stream of pairs.

The `csv` module is not used: it lets a quote that never closes swallow the rest of the file, refuses a lone CR and
limits the length of a field for the whole process. Here a field is quoted if its quote opens it, and closes it before
the next comma within a few lines; every other quote is text.
"""

import re
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

from seq2seq.data.lines import one_line, read_lines
from seq2seq.errors import UserError

LOOKAHEAD = 20  # lines after the first over which a quoted field may go on
QUOTED = re.compile(r'"([^"]*+(?:""[^"]*+)*+)"(?=,|\Z)')
OPEN = re.compile(r'"[^"]*+(?:""[^"]*+)*+\Z')
PLAIN = re.compile(r"[^,\n]*")


def read_csv(path: Path, source: str, target: str) -> Iterator[tuple[str, str]]:
    """The columns that the first row names by language (or `source`, `target`); without such a row two columns."""
    rows = read_rows(read_lines(path))
    first = next(rows, None)
    if first is None:
        return
    header = first[1]
    columns = named_columns(header, source, target)
    if columns is None and (len(header) > 2 or {source.casefold(), target.casefold()} & set(map(_name, header))):
        raise UserError(
            f"{path}: the first row is {','.join(header)[:60]!r}: name the columns {source!r} and {target!r} there, "
            "or give two columns without names"
        )
    for number, row in rows if columns else chain([first], rows):
        left, right = columns or (0, 1)
        if max(left, right) < len(row) <= len(header):
            yield one_line(row[left]), one_line(row[right])
        elif any(map(str.strip, row)):
            columns_here = f"{len(row)} column{'s' * (len(row) > 1)}"
            quote = "; a text with a comma must be quoted" if len(row) > len(header) else ""
            raise UserError(
                f"{path}, line {number}: {columns_here}, expected {len(header)}{quote}: {','.join(row)[:60]!r}"
            )


def _name(cell: str) -> str:
    return cell.strip().casefold()


def named_columns(row: list[str], source: str, target: str) -> tuple[int, int] | None:
    """Where the columns of a header row stand; None if the row is no header."""
    names = list(map(_name, row))
    for wanted in ((source.casefold(), target.casefold()), ("source", "target")):
        if all(name in names for name in wanted):
            return names.index(wanted[0]), names.index(wanted[1])
    return None


def read_rows(lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of every row."""
    waiting: list[str] = []  # lines that were read ahead in vain
    number = 1
    while (line := waiting.pop(0) if waiting else next(lines, None)) is not None:
        row = split_row(line)
        taken = 0
        if row is None:
            waiting += islice(lines, LOOKAHEAD - len(waiting))
            row, taken = _joined(line, waiting)
            del waiting[:taken]
        yield number, row
        number += 1 + taken


def _joined(line: str, following: list[str]) -> tuple[list[str], int]:
    """The row that a line makes with the next ones, and how many of them; the line alone if its quote never closes."""
    record = line
    for taken, more in enumerate(following, 1):
        record += "\n" + more
        row = split_row(record)
        if row is not None:
            if len(row) > 1:
                return row, taken
            break  # a stray quote that met another one by chance
    return split_row(line, whole=True) or [], 0


def split_row(record: str, whole: bool = False) -> list[str] | None:
    """Fields of a record, [] if a line break stands outside quotes, None if a quote is open at its end.

    With `whole` nothing can follow, so that the quote which is still open is text.
    """
    fields = []
    position = 0
    while position <= len(record):
        found = QUOTED.match(record, position)
        if found is None and not whole and OPEN.match(record, position):
            return None
        if found is None:
            found = PLAIN.match(record, position)
            assert found is not None
            if record[found.end() : found.end() + 1] == "\n":
                return []
        fields.append(found[1].replace('""', '"') if found.re is QUOTED else found[0])
        position = found.end() + 1
    return fields
