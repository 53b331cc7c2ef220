"""Grades of translations that a person has read, kept without the sentences: a fingerprint and a verdict each."""

import hashlib
from pathlib import Path

from seq2seq.data.lines import read_lines
from seq2seq.errors import UserError


def fingerprint(source: str, translation: str) -> str:
    """What stands for a graded translation: the first 16 hexadecimal digits of SHA-256 of both texts."""
    return hashlib.sha256(f"{source}\t{translation}".encode()).hexdigest()[:16]


def read_grades(path: Path) -> dict[str, dict[str, bool]]:
    """Lines of `split TAB fingerprint TAB right|wrong`: by split, whether each is right."""
    grades: dict[str, dict[str, bool]] = {}
    for number, line in enumerate(read_lines(path), 1):
        fields = line.rstrip("\n").split("\t")
        if len(fields) != 3 or fields[2] not in ("right", "wrong"):
            raise UserError(f"{path}: line {number} is not `split TAB fingerprint TAB right or wrong`")
        grades.setdefault(fields[0], {})[fields[1]] = fields[2] == "right"
    return grades
