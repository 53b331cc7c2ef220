"""Inputs that broke other translators, through Translator, alone and inside a batch of ordinary sentences."""

import pytest
from cases import ALL, CHECKERS, Made, Part, parameters, repeats, unmet

from seq2seq import Translator

ORDINARY = ["The weather is nice today.", "Where do you live?", "My brother works in a bank.", "I like apples."]


@pytest.mark.parametrize("case", parameters("text", "html"))
def test_a_case_meets_its_expectations(translator: Translator, case):
    result = translator.translate(case["text"], format=case["format"], attention=False)
    assert unmet(case["expect"], case["text"], result) == [], result.text[:300]


@pytest.mark.parametrize("case", parameters("text", "html"))
def test_a_case_is_the_same_in_a_batch_of_ordinary_sentences(translator: Translator, case):
    text, format = case["text"], case["format"]
    batch = [*ORDINARY[:2], text, *ORDINARY[2:], text]
    results = translator.translate(batch, format=format, attention=False)
    assert [result.source for result in results] == batch
    assert results[2].text == results[5].text == translator.translate(text, format=format, attention=False).text


# The checkers


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
        ("tags_balanced", "<p>a <b>b</b></p>", "<p><b>b</b> a</p>", "<p><b>b</p></b> a"),
        ("tags_balanced", "<p>a <b>b</b></p>", "<p><b>b</b> a</p>", "<p>b a</p>"),
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


def test_every_expectation_has_a_checker():
    names = {expectation.partition(":")[0] for case in ALL for expectation in case["expect"]}
    assert names <= CHECKERS.keys()
