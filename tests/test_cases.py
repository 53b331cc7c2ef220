"""Inputs that broke other translators, through Translator, alone and inside a batch of ordinary sentences.

What an expectation means stands in shared/cases/README.md; each checker takes its argument, the source and the
translation, and has its own test below.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import pytest

from seq2seq import Translator
from seq2seq.translation.result import Translation

INPUTS = Path(__file__).parents[2] / "shared/cases/inputs.jsonl"
ORDINARY = ["The weather is nice today.", "Where do you live?", "My brother works in a bank.", "I like apples."]

LATER = {
    "placeholder-printf": "placeholders are protected by a later issue",
    "placeholder-braces": "placeholders are protected by a later issue",
    "url": "addresses are protected by a later issue",
    "email": "addresses are protected by a later issue",
    "p-one-word": "HTML is a later issue",
    "inline-tags": "HTML is a later issue",
    "br": "HTML is a later issue",
    "nbsp": "HTML is a later issue",
    "wrapped-html": "HTML is a later issue",
    "money": "amounts are protected by a later issue",
    "script-like": "signs and numbers are protected by a later issue",
    "mixed-case": "names that must survive are protected by a later issue",
    "label-colon": "the bundled model has not learned labels",
    "surrogate": "a JSON escape is for the HTTP service, a later issue",
}


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


def equals(argument: str, source: str, result: Translation) -> bool:
    return result.text == argument


def contains(argument: str, source: str, result: Translation) -> bool:
    return argument in result.text


def contains_any(argument: str, source: str, result: Translation) -> bool:
    return any(option in result.text for option in argument.split("|"))


def starts(argument: str, source: str, result: Translation) -> bool:
    return result.text.startswith(argument)


def ends(argument: str, source: str, result: Translation) -> bool:
    return result.text.endswith(argument)


def count(argument: str, source: str, result: Translation) -> bool:
    """X=N, X with its escapes written out."""
    text, _, number = argument.rpartition("=")
    for written, meant in (("\\r", "\r"), ("\\n", "\n"), ("\\t", "\t")):
        text = text.replace(written, meant)
    return result.text.count(text) == int(number)


def blank(argument: str, source: str, result: Translation) -> bool:
    return not result.text.strip()


def not_empty(argument: str, source: str, result: Translation) -> bool:
    return bool(result.text.strip())


def no_letters(argument: str, source: str, result: Translation) -> bool:
    return not any(map(str.isalpha, result.text))


def lines(argument: str, source: str, result: Translation) -> bool:
    return result.text.count("\n") + 1 == int(argument)


def no_copy(argument: str, source: str, result: Translation) -> bool:
    return result.text.strip() != source.strip()


def no_loop(argument: str, source: str, result: Translation) -> bool:
    """No phrase, and no stretch of letters within a word, is repeated more than in the source.

    French has its "nous nous" and "vous vous", and words like "bonbon"; three times in a row is a loop.
    """
    text = re.sub(r"\b(nous|vous) \1\b", r"\1", result.text.casefold())
    by_word = repeats(words(text), 8) <= max(1, repeats(words(source), 8))
    by_letter = repeats("".join(words(text)), 12) <= max(3, repeats("".join(words(source)), 12))
    return by_word and by_letter


def no_loop_over(argument: str, source: str, result: Translation) -> bool:
    return len(words(result.text)) <= int(argument)


def no_silent_cut(argument: str, source: str, result: Translation) -> bool:
    """Every letter reached the model and no sentence came back much shorter, or the result says that it was cut."""
    sent = "".join(words(" ".join(sentence.source for sentence in result.sentences)))
    long_enough = all(len(words(s.text)) >= 0.6 * len(words(s.source)) for s in result.sentences)
    return result.truncated or (sent == "".join(words(source)) and long_enough)


def no_500(argument: str, source: str, result: Translation) -> bool:
    """It was translated; an exception has failed the test before."""
    return isinstance(result.text, str)


def min_sentences(argument: str, source: str, result: Translation) -> bool:
    return sum(bool(words(sentence.text)) for sentence in result.sentences) >= int(argument)


def one_sentence(argument: str, source: str, result: Translation) -> bool:
    return len(result.sentences) == 1


CHECKERS: dict[str, Callable[[str, str, Translation], bool]] = {
    checker.__name__: checker
    for checker in (
        equals, contains, contains_any, starts, ends, count, blank, not_empty, no_letters, lines, no_copy, no_loop,
        no_loop_over, no_silent_cut, no_500, min_sentences, one_sentence,
    )
} | {"not_truncated": no_silent_cut, "no_silent_cut_or_4xx": no_silent_cut}  # fmt: skip


def unmet(expectations: Sequence[str], source: str, result: Translation) -> list[str]:
    """The expectations that a translation does not meet."""
    split = [(expectation, *expectation.partition(":")[::2]) for expectation in expectations]
    return [whole for whole, name, argument in split if not CHECKERS[name](argument, source, result)]


# The cases


def load_cases() -> list[dict]:
    if not INPUTS.is_file():
        return []
    return [json.loads(line) for line in INPUTS.read_text(encoding="utf-8").split("\n") if line]


def parameter(case):
    """A case, skipped if it is for later."""
    name = case["id"]
    return pytest.param(case, id=name, marks=[pytest.mark.skip(reason=LATER[name])] if name in LATER else [])


NO_CASE = pytest.param({}, id="none", marks=pytest.mark.skip(reason=f"no {INPUTS}"))
CASES = [parameter(case) for case in load_cases()] or [NO_CASE]


@pytest.mark.parametrize("case", CASES)
def test_a_case_meets_its_expectations(translator: Translator, case):
    result = translator.translate(case["text"], attention=False)
    assert unmet(case["expect"], case["text"], result) == [], result.text[:300]


@pytest.mark.parametrize("case", CASES)
def test_a_case_is_the_same_in_a_batch_of_ordinary_sentences(translator: Translator, case):
    text = case["text"]
    batch = [*ORDINARY[:2], text, *ORDINARY[2:], text]
    results = translator.translate(batch, attention=False)
    assert [result.source for result in results] == batch
    assert results[2].text == results[5].text == translator.translate(text, attention=False).text


def test_only_cases_that_exist_are_left_for_later():
    cases = {case["id"]: case for case in load_cases()}
    if not cases:
        pytest.skip(f"no {INPUTS}")
    assert LATER.keys() <= cases.keys()
    assert {name for name, case in cases.items() if case["format"] != "text"} <= LATER.keys()


# The checkers


@dataclass
class Part:
    source: str
    text: str


@dataclass
class Made:
    """As much of a Translation as a checker looks at."""

    text: str
    sentences: list[Part] = field(default_factory=list)
    truncated: bool = False


@pytest.mark.parametrize(
    ("expectation", "source", "good", "bad"),
    [
        ("equals:", "", "", " "),
        ("equals:-", "-", "-", "–"),
        ("contains:{place}", "", "à {place}.", "à {lieu}."),
        ("contains::", "Note: x", "Note : x", "Note x"),
        ("contains_any:18.10|18,10", "", "18,10 €", "18:10 €"),
        ("starts:<p>", "", "<p>a</p>", " <p>a</p>"),
        ("ends:</p>", "", "<p>a</p>", "<p>a</p> "),
        (r"count:\r\n=2", "", "a\r\nb\r\n", "a\nb\r\n"),
        ("count:a=b=1", "", "a=b", "a=ba=b"),
        ("blank", " ", " \n", " a"),
        ("not_empty", "a", "b", " \n"),
        ("no_letters", "...", "…", "...et"),
        ("lines:4", "", "a\n\nb\n", "a\nb\n"),
        ("lines:1", "", "a\u2028b", "a\nb"),
        ("no_copy", "WHERE ARE YOU?", "OÙ ES-TU ?", " WHERE ARE YOU? "),
        ("no_loop", "increasingly", "de plus en plus", "de plus, de plus"),
        ("no_loop", "hello", "bonjour", "bonjour bonjour"),
        ("no_loop", "We see each other.", "Nous nous voyons.", "Nous nous nous voyons."),
        ("no_loop", "no no", "non non", "non non non"),
        ("no_loop", "a" * 60, "a" * 60, "a" * 61),
        ("no_loop", "laugh", "bonbon", "hahahaha"),
        ("no_loop_over:20", "no " * 10, "non " * 20, "non " * 21),
        ("no_500", "", "", None),
    ],
)
def test_a_checker_accepts_the_good_and_refuses_the_bad(expectation, source, good, bad):
    assert unmet([expectation], source, Made(good)) == []
    assert unmet([expectation], source, Made(bad)) == [expectation]


def test_sentences_are_counted_where_words_came_out():
    two = Made("Un. Deux.", [Part("One.", "Un."), Part("Two.", "Deux.")])
    assert unmet(["min_sentences:2", "one_sentence"], "One. Two.", two) == ["one_sentence"]
    lost = Made("Un. ", [Part("One.", "Un."), Part("Two.", "")])
    assert unmet(["min_sentences:2"], "One. Two.", lost) == ["min_sentences:2"]
    assert unmet(["min_sentences:1", "one_sentence"], "One.", Made("Un.", [Part("One.", "Un.")])) == []


@pytest.mark.parametrize("name", ["no_silent_cut", "not_truncated", "no_silent_cut_or_4xx"])
def test_a_cut_is_noticed_unless_the_result_says_so(name):
    source = "one two three. four five six."
    whole = [Part("one two three.", "un deux trois."), Part("four five six.", "quatre cinq six.")]
    assert unmet([name], source, Made("", whole)) == []
    assert unmet([name], source, Made("", whole[:1])) == [name]
    assert unmet([name], source, Made("", [whole[0], Part("four five six.", "quatre.")])) == [name]
    assert unmet([name], source, Made("", whole[:1], truncated=True)) == []


@pytest.mark.parametrize(
    ("items", "expected"),
    [("", 0), ("a", 1), ("abc", 1), ("aab", 2), ("abab", 2), ("ababa", 2), ("ababab", 3), ("xabcabc", 2), ("aaaa", 4)],
)
def test_repeats_counts_the_longest_row_of_equal_stretches(items, expected):
    assert repeats(items, 4) == expected


def test_every_expectation_of_a_text_case_has_a_checker():
    names = {e.partition(":")[0] for case in load_cases() if case["format"] == "text" for e in case["expect"]}
    assert names <= CHECKERS.keys()
