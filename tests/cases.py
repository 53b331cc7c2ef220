"""Inputs that broke other translators, and what each checker of their expectations looks at.

What an expectation means stands in shared/cases/README.md; each checker takes its argument, the source and the
translation, and has its own test in test_cases.py.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import pytest

from seq2seq.translation.tokens import read_tokens

INPUTS = Path(__file__).parents[2] / "shared/cases/inputs.jsonl"


@dataclass
class Part:
    """A sentence and its translation."""

    source: str
    text: str


@dataclass
class Made:
    """As much of a Translation as a checker looks at."""

    text: str
    sentences: list[Part] = field(default_factory=list)
    truncated: bool = False


# What a translation must satisfy


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def repeats(items: Sequence[str], longest: int) -> int:
    """How many times in a row a stretch of up to `longest` items stands, at most; 1 is no repetition."""
    most = min(len(items), 1)
    for size in range(1, longest + 1):
        same = (items[i] == items[i + size] for i in range(len(items) - size))
        runs = [len(list(run)) for equal, run in groupby(same) if equal]
        most = max([most, *(run // size + 1 for run in runs if run >= size)])
    return most


def equals(argument: str, source: str, result: Made) -> bool:
    return result.text == argument


def contains(argument: str, source: str, result: Made) -> bool:
    return argument in result.text


def contains_any(argument: str, source: str, result: Made) -> bool:
    return any(option in result.text for option in argument.split("|"))


def starts(argument: str, source: str, result: Made) -> bool:
    return result.text.startswith(argument)


def ends(argument: str, source: str, result: Made) -> bool:
    return result.text.endswith(argument)


def count(argument: str, source: str, result: Made) -> bool:
    """X=N, X with its escapes written out."""
    text, _, number = argument.rpartition("=")
    for written, meant in (("\\r", "\r"), ("\\n", "\n"), ("\\t", "\t")):
        text = text.replace(written, meant)
    return result.text.count(text) == int(number)


def blank(argument: str, source: str, result: Made) -> bool:
    return not result.text.strip()


def not_empty(argument: str, source: str, result: Made) -> bool:
    return bool(result.text.strip())


def no_letters(argument: str, source: str, result: Made) -> bool:
    return not any(map(str.isalpha, result.text))


def lines(argument: str, source: str, result: Made) -> bool:
    return result.text.count("\n") + 1 == int(argument)


def no_copy(argument: str, source: str, result: Made) -> bool:
    return result.text.strip() != source.strip()


def no_loop(argument: str, source: str, result: Made) -> bool:
    """No phrase, and no stretch of letters within a word, is repeated more than in the source.

    French has its "nous nous" and "vous vous", and words like "bonbon"; three times in a row is a loop.
    """
    text = re.sub(r"\b(nous|vous) \1\b", r"\1", result.text.casefold())
    by_word = repeats(words(text), 8) <= max(1, repeats(words(source), 8))
    by_letter = repeats("".join(words(text)), 12) <= max(3, repeats("".join(words(source)), 12))
    return by_word and by_letter


def no_loop_over(argument: str, source: str, result: Made) -> bool:
    return len(words(result.text)) <= int(argument)


def no_silent_cut(argument: str, source: str, result: Made) -> bool:
    """Every letter reached the model and no sentence came back much shorter, or the result says that it was cut."""
    sent = "".join(words(" ".join(sentence.source for sentence in result.sentences)))
    long_enough = all(len(words(s.text)) >= 0.6 * len(words(s.source)) for s in result.sentences)
    return result.truncated or (sent == "".join(words(source)) and long_enough)


def no_500(argument: str, source: str, result: Made) -> bool:
    """It was translated; an exception has failed the test before."""
    return isinstance(result.text, str)


def min_sentences(argument: str, source: str, result: Made) -> bool:
    return sum(bool(words(sentence.text)) for sentence in result.sentences) >= int(argument)


def one_sentence(argument: str, source: str, result: Made) -> bool:
    return len(result.sentences) == 1


def tags_balanced(argument: str, source: str, result: Made) -> bool:
    """The same tags as the source, properly nested."""
    tags = [token for token in read_tokens(result.text) if token.kind != "text"]
    open_tags: list[str] = []
    for tag in tags:
        if tag.kind == "open":
            open_tags.append(tag.name)
        elif tag.kind == "close" and (not open_tags or open_tags.pop() != tag.name):
            return False
    return not open_tags and sorted(tag.raw for tag in tags) == sorted(
        token.raw for token in read_tokens(source) if token.kind != "text"
    )


CHECKERS: dict[str, Callable[[str, str, Made], bool]] = {
    checker.__name__: checker
    for checker in (
        equals, contains, contains_any, starts, ends, count, blank, not_empty, no_letters, lines, no_copy, no_loop,
        no_loop_over, no_silent_cut, no_500, min_sentences, one_sentence, tags_balanced,
    )
} | {"not_truncated": no_silent_cut, "no_silent_cut_or_4xx": no_silent_cut}  # fmt: skip


def unmet(expectations: Sequence[str], source: str, result: Made) -> list[str]:
    """The expectations that a translation does not meet."""
    split = [(expectation, *expectation.partition(":")[::2]) for expectation in expectations]
    return [whole for whole, name, argument in split if not CHECKERS[name](argument, source, result)]


# The cases


def load_cases() -> list[dict]:
    """All of them, or none where they are not at hand."""
    if not INPUTS.is_file():
        return []
    return [json.loads(line) for line in INPUTS.read_text(encoding="utf-8").split("\n") if line]


NO_CASE = pytest.param({}, id="none", marks=pytest.mark.skip(reason=f"no {INPUTS}"))
ALL = load_cases()


def parameters(*formats: str) -> list:
    """Cases of some formats, as parameters of a test."""
    return [pytest.param(case, id=case["id"]) for case in ALL if case["format"] in formats] or [NO_CASE]
