"""Grades of translations that a person has read, kept without the sentences.

A line is `split TAB fingerprint TAB right or wrong TAB omitted TAB invented`, the latter two the places of source and
target words that are to blame (`2,5`, from 0), if they can be named. What follows is for the reader.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from seq2seq.data.lines import read_lines
from seq2seq.errors import UserError

RIGHT, WRONG = "right", "wrong"
Grades = Mapping[str, Mapping[str, "Grade"]]  # by split and fingerprint


@dataclass(frozen=True)
class Grade:
    """Whether a translation is right, and the words to blame if it is not, as far as they can be named."""

    right: bool
    omitted: frozenset[int] = frozenset()
    invented: frozenset[int] = frozenset()

    @property
    def named(self) -> bool:
        """Whether all words to blame are known."""
        return self.right or bool(self.omitted or self.invented)


def fingerprint(source: str, translation: str) -> str:
    """What stands for a graded translation: the first 16 hexadecimal digits of SHA-256 of both texts."""
    return hashlib.sha256(f"{source}\t{translation}".encode()).hexdigest()[:16]


def read_grades(path: Path) -> dict[str, dict[str, Grade]]:
    """The grades of a file; lines that have not been graded yet are passed over."""
    grades: dict[str, dict[str, Grade]] = {}
    for number, line in enumerate(read_lines(path), 1):
        split, name, verdict, omitted, invented, *_ = [*line.split("\t"), "", "", "", ""]
        if not name or verdict not in (RIGHT, WRONG, ""):
            raise UserError(f"{path}: line {number} is not split TAB fingerprint TAB right or wrong")
        if verdict:
            places = (_places(text, path, number) for text in (omitted, invented))
            grades.setdefault(split, {})[name] = Grade(verdict == RIGHT, *places)
    return grades


def _places(text: str, path: Path, number: int) -> frozenset[int]:
    try:
        return frozenset(int(place) for place in text.split(",") if place)
    except ValueError:
        raise UserError(f"{path}: line {number}: {text!r} are not places of words, as in 2,5") from None


def sheet_line(split: str, source: str, translation: str) -> str:
    """A line to be graded, with the texts at its end."""
    return "\t".join((split, fingerprint(source, translation), "", "", "", source, translation)) + "\n"
