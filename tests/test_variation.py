"""Training pairs as people might have typed them."""

from random import Random

import pytest

from seq2seq.config import VariationConfig
from seq2seq.data.splits import Pair
from seq2seq.data.variation import joined, mistyped, varied, with_other_quotes, without_final_mark

PAIRS = [
    Pair("I'm late, Anna.", "Je suis en retard, Anna."),
    Pair('She said "maybe".', "Elle a dit « peut-être »."),
    Pair("Where is the harbour?", "Où est le port\u202f?"),
    Pair("No", "Non"),
]


def vary(seed: int = 0, pairs: list[Pair] = PAIRS, **shares: float) -> list[Pair]:
    return [one.pair for one in varied(pairs, VariationConfig(**shares), Random(seed))]


def test_without_shares_nothing_changes():
    assert vary() == PAIRS


def test_lower_case_is_of_the_source_alone():
    assert vary(lower_case=1.0)[0] == Pair("i'm late, anna.", "Je suis en retard, Anna.")


def test_a_final_mark_goes_from_both_sides_with_its_space():
    assert vary(no_final_mark=1.0)[2] == Pair("Where is the harbour", "Où est le port")


@pytest.mark.parametrize("pair", [Pair("No", "Non !"), Pair("Yes!", "Oui"), Pair("...", "..."), Pair("?!", "Quoi ?")])
def test_a_mark_that_only_one_side_has_or_that_is_all_stays(pair):
    assert without_final_mark(pair) == pair


@pytest.mark.parametrize(
    ("straight", "typographic"),
    [
        ("I'm late.", "I’m late."),
        ('She said "maybe".', "She said “maybe”."),
        ("'Maybe', she said.", "‘Maybe’, she said."),
        ("'Tis late.", "’Tis late."),
        ("It's late.", "It’s late."),
        ("plain", "plain"),
    ],
)
def test_quotes_change_between_straight_and_typographic(straight, typographic):
    assert with_other_quotes(straight) == typographic
    assert with_other_quotes(typographic) == straight


def test_two_pairs_are_joined_side_by_side():
    assert joined(PAIRS[3], PAIRS[0]) == Pair("No I'm late, Anna.", "Non Je suis en retard, Anna.")
    for pair, once in zip(vary(joined=1.0), PAIRS, strict=True):
        second = next(other for other in PAIRS if pair.source == f"{once.source} {other.source}")
        assert pair.target == f"{once.target} {second.target}"


def test_a_slip_changes_one_letter_or_two_of_a_longer_word_and_never_its_first():
    text = "My brother has 1984 boats"
    seen = {mistyped(text, Random(seed)) for seed in range(300)}
    assert len(seen) > 20
    for found in seen - {text}:
        words = [(one, other) for one, other in zip(text.split(), found.split(), strict=True) if one != other]
        [(word, slip)] = words
        assert word in ("brother", "boats")
        assert slip[0] == word[0]
        assert abs(len(slip) - len(word)) <= 1
    assert {len(found) - len(text) for found in seen} == {-1, 0, 1}


@pytest.mark.parametrize("text", ["", "42", "I am, you are.", "été"])
def test_a_text_without_a_longer_word_has_no_slip(text):
    assert mistyped(text, Random(0)) == text


def test_a_made_up_name_is_the_same_on_both_sides_however_the_sentence_is_typed():
    pairs = [Pair("Yesterday Anna sang.", "Hier Anna chantait.")] * 50
    for pair in vary(pairs=pairs, stand_ins=1.0, lower_case=1.0, typing_errors=1.0):
        assert pair.source.removeprefix("Yesterday ").removesuffix(" sang.") in pair.target


def test_own_pairs_are_joined_with_own_ones_and_extra_with_extra_ones():
    pairs = [Pair(f"own {number}", "a") for number in range(9)] + [Pair(f"extra {number}", "b") for number in range(9)]
    for number, (pair, partner) in enumerate(varied(pairs, VariationConfig(joined=1.0), Random(0), own=9)):
        assert pair == joined(pairs[number], pairs[partner])
        assert ("own" in pair.source) != ("extra" in pair.source)


def test_shares_are_shares_and_the_draw_decides():
    many = [Pair("Hello There.", "Bonjour.")] * 4000
    found = vary(seed=1, pairs=many, lower_case=0.25, no_final_mark=0.5)
    assert sum(pair.source.islower() for pair in found) / 4000 == pytest.approx(0.25, abs=0.03)
    assert sum(pair.target == "Bonjour" for pair in found) / 4000 == pytest.approx(0.5, abs=0.03)
    assert vary(seed=1, pairs=many, lower_case=0.25, no_final_mark=0.5) == found
    assert vary(seed=2, pairs=many, lower_case=0.25, no_final_mark=0.5) != found
