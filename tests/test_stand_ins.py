"""Made-up names and numbers in the place of those that stand on both sides."""

import re
from random import Random

import pytest

from seq2seq.data import stand_ins
from seq2seq.data.splits import Pair
from seq2seq.data.stand_ins import invented_name, invented_number, with_stand_in

SEEDS = range(60)


@pytest.mark.parametrize(
    ("pair", "word"),
    [
        (Pair("We met Anna.", "Nous avons rencontré Anna."), "Anna"),
        (Pair("Is Anna late?", "Anna est-elle en retard ?"), "Anna"),
        (Pair("I have 12 cows.", "J'ai 12 vaches."), "12"),
        (Pair("Room 7, please.", "La chambre 7, s'il vous plaît."), "7"),
    ],
)
def test_what_stands_once_on_both_sides_becomes_the_same_other_thing(pair, word):
    found = {with_stand_in(pair, Random(seed)) for seed in SEEDS}
    assert len(found) > len(SEEDS) / 2
    before, after = pair.source.split(word)
    for other in found:
        assert other.source.startswith(before)
        assert other.source.endswith(after)
        stand_in = other.source[len(before) : len(other.source) - len(after)]
        assert other.target == pair.target.replace(word, stand_in)


@pytest.mark.parametrize(
    "pair",
    [
        Pair("It rains.", "Il pleut."),
        Pair(
            "Table tennis is fun.", "Table tennis, c'est amusant."
        ),  # begins both sides: perhaps a word of both languages
        Pair("Anna likes Anna.", "Anna aime Anna."),
        Pair("We saw Anna's cat.", "Nous avons vu le chat d'Anna."),  # elided: another name would need another word
        Pair("It costs $30.", "Cela coûte 30 $."),
        Pair("It is 2.50 now.", "C'est 2,50 maintenant."),
        Pair("At 9:30 sharp.", "À 9:30 précises."),
        Pair("We met Anna.", "Nous avons rencontré Jeanne."),
    ],
)
def test_a_pair_with_nothing_to_exchange_stays(pair):
    assert {with_stand_in(pair, Random(seed)) for seed in SEEDS} == {pair}


@pytest.mark.parametrize(
    ("source", "target", "around"),
    [
        ("He paid 3.50 for 3 apples.", "Pour 3 pommes il a payé 3,50.", ("3.50 for ", "3,50.")),
        ("Anne-Marie met Marie.", "Anne-Marie a rencontré Marie.", ("Anne-Marie met ", "Anne-Marie a ")),
    ],
)
def test_what_is_only_a_part_of_another_thing_stays(source, target, around):
    for seed in SEEDS:
        found = with_stand_in(Pair(source, target), Random(seed))
        assert found != Pair(source, target)
        assert around[0] in found.source
        assert around[1] in found.target


def test_all_that_a_translator_has_to_copy_is_invented():
    found = [invented_name(Random(seed)) for seed in range(2000)]
    forms = [
        r"[A-Z][a-z]+( [A-Z][a-z]+)?",
        r"i[A-Z]\w+",
        r"Mc[A-Z]\w+",
        r"[A-Z]{2,5}(-?\d+)?",
        r"\{\w+\}",
        r"\{\{\w+\}\}",
    ]
    forms += [
        r"%\d\$s",
        r"%\(\w+\)s",
        r"https?://\S+\.html",
        r"https?://\S+\?\S+=1&c=\d+",
        r"\w+@\w+\.\w+",
        r"@\w+",
        r"\w+\.pdf",
    ]
    for form in forms:
        assert any(re.fullmatch(form, name) for name in found), form
    assert len(set(found)) > 1500
    assert not any(name != name.strip() or "\t" in name or "\n" in name for name in found)


def test_names_begin_with_a_consonant_so_that_no_word_before_them_is_elided():
    assert all(onset[0] not in "aeiouy" for onset in stand_ins.ONSETS)


def test_numbers_have_one_to_seven_digits():
    found = [invented_number(Random(seed)) for seed in range(500)]
    assert {len(number) for number in found} == set(range(1, 8))
    assert min(map(int, found)) == 2
