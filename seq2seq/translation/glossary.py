"""Words that are to be translated in a certain way, honoured by constrained search.

A term is found as it is written, whatever its case; its translation is put in as it is written: neither is inflected.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from seq2seq.config import read_text
from seq2seq.errors import UserError
from seq2seq.translation.sentences import tidy

MOST_TERMS = 1_000
LONGEST = 100  # characters of a term, and of its translation
MOST_IN_A_SENTENCE = 8  # are put in, in order; further ones are found, and kept only if the model has them


@dataclass(frozen=True)
class Glossary:
    """Terms and their translations; equal ones search alike."""

    terms: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, terms: "Glossary | Mapping[str, str] | None") -> "Glossary | None":
        """A checked glossary; none if there is no term."""
        if terms is None or isinstance(terms, Glossary):
            return terms
        if len(terms) > MOST_TERMS:
            raise UserError(f"glossary: {len(terms):,} terms are over the limit of {MOST_TERMS:,}")
        for term, translation in terms.items():
            for text in (term, translation):
                _check(text)
        return cls(tuple((tidy(term), tidy(translation)) for term, translation in terms.items())) if terms else None

    def updated(self, other: "Glossary") -> "Glossary":
        """The terms of both; where both have one, the other's."""
        theirs = {term.casefold() for term, _ in other.terms}
        return Glossary((*other.terms, *(pair for pair in self.terms if pair[0].casefold() not in theirs)))

    @cached_property
    def _pattern(self) -> "re.Pattern[str]":
        longest_first = sorted((term for term, _ in self.terms), key=len, reverse=True)
        return re.compile("|".join(map(_as_words, longest_first)), re.IGNORECASE)

    @cached_property
    def _by_name(self) -> dict[str, tuple[str, str]]:
        return {term.casefold(): (term, translation) for term, translation in self.terms}

    def wanted(self, sentence: str) -> list[tuple[str, str]]:
        """The terms that stand in a sentence, with their translations, each once, in order."""
        found = (self._by_name.get(match.group().casefold()) for match in self._pattern.finditer(sentence))
        return list(dict.fromkeys(term for term in found if term))


def stands_in(text: str, sentence: str) -> bool:
    """Whether a text stands in a sentence, whatever its case, and not within a longer word."""
    return re.search(_as_words(text), sentence, re.IGNORECASE) is not None


def _as_words(text: str) -> str:
    """A pattern that finds a text, but not where letters go on at its ends."""
    before, after = (r"(?<!\w)", r"(?!\w)")
    return before * (text[0].isalnum()) + re.escape(text) + after * (text[-1].isalnum())


def _check(text: Any) -> None:
    if not isinstance(text, str) or not tidy(text):
        raise UserError(f"glossary: {text!r} is no word or words")
    if len(text) > LONGEST:
        raise UserError(f"glossary: {text[:20]!r}... has {len(text)} characters, over the limit of {LONGEST}")


def read_glossary(path: Path) -> Glossary | None:
    """A glossary of a file: an object of JSON, or lines of term TAB translation."""
    text = read_text(path, f"glossary {path}")
    if text.lstrip().startswith(("{", "[")):
        try:
            terms = json.loads(text)
        except (json.JSONDecodeError, RecursionError) as error:
            raise UserError(f"glossary {path} is no JSON: {error}") from None
        if not isinstance(terms, dict):
            raise UserError(f"glossary {path}: not an object of terms and their translations")
        return Glossary.of(terms)
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    rows = [(number, line.split("\t")) for number, line in enumerate(lines, 1) if line.strip() and line[0] != "#"]
    for number, row in rows:
        if len(row) != 2:
            raise UserError(f"glossary {path}, line {number}: not term TAB translation")
    return Glossary.of({term: translation for _, (term, translation) in rows})
