import hashlib
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from seq2seq.config import DataConfig
from seq2seq.data.corpus import HELD_OUT, Corpus, load_corpus
from seq2seq.data.splits import (
    Example,
    Pair,
    Split,
    fingerprint,
    group_references,
    normalise,
    sift,
    split_pairs,
)
from seq2seq.data.table import PairTable, pick


def clean(
    pairs: Sequence[Pair], config: DataConfig, held_out: Sequence[Pair] = ()
) -> tuple[Sequence[Pair], dict[str, int]]:
    """The pairs that are kept, and how many each rule drops."""
    sifted = sift(pairs, config, held_out)
    return pick(pairs, sifted.kept), {rule: len(rows) for rule, rows in sifted.dropped.items()}


def distinct(pairs: Sequence[Pair]) -> Sequence[Pair]:
    """What a dev or test set keeps."""
    return clean(pairs, HELD_OUT)[0]


def independent(count: int) -> list[Pair]:
    return [Pair(f"sentence {number}", f"phrase {number}") for number in range(count)]


def tangled(seed: int) -> list[Pair]:
    """Pairs that share sides, also under another case and punctuation."""
    rng = random.Random(seed)
    forms = [str, str.upper, lambda text: f"{text}!", lambda text: f" {text} ?"]
    return [
        Pair(rng.choice(forms)(f"english {rng.randrange(500)}"), rng.choice(forms)(f"french {rng.randrange(500)}"))
        for _ in range(400)
    ]


def sides(pairs: Iterable[Pair]) -> tuple[set[str], set[str]]:
    sources, targets = set(), set()
    for source, target in pairs:
        sources.add(normalise(source))
        targets.add(normalise(target))
    return sources, targets


def shared_sides(split: Split) -> set[str]:
    """Normalised sentences that stand in two splits."""
    train, dev, test = map(sides, split)
    return {
        sentence
        for first, second in ((train, dev), (train, test), (dev, test))
        for side in (0, 1)
        for sentence in first[side] & second[side]
    }


def place(split: Split, pair: Pair) -> str:
    return next(name for name, pairs in split._asdict().items() if pair in pairs)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Hello!", "hello"),
        ("  Don't   go. ", "dont go"),
        ("ÉTÉ", "été"),
        ("e\u0301te\u0301", "été"),
        ("Straße", "STRASSE"),
        ("ﬁn", "fin"),
        ("Ça va\u202f?", "ça va ?"),
    ],
)
def test_normalise_forgets_case_punctuation_and_spaces(first, second):
    assert normalise(first) == normalise(second)


@pytest.mark.parametrize(("first", "second"), [("ou", "où"), ("1", "2"), ("?", "!"), ("हिन्दी", "हिनदी"), ("a", "b")])
def test_normalise_keeps_what_tells_sentences_apart(first, second):
    assert normalise(first) != normalise(second)


@pytest.mark.parametrize("seed", range(5))
def test_no_side_of_either_language_is_in_two_splits(seed):
    split = split_pairs(tangled(seed))
    assert len(split.dev) + len(split.test) > 3
    assert shared_sides(split) == set()


def test_the_look_for_shared_sides_can_fail():
    assert shared_sides(Split([Pair("A b.", "c")], [Pair("d", "e")], [Pair("a B", "f"), Pair("g", "E!")])) == {
        "ab",
        "e",
    }


def test_a_chain_through_shared_sides_stays_together():
    chain = [Pair(f"link {(number + 1) // 2}", f"maillon {number // 2}") for number in range(300)]
    split = split_pairs(independent(500) + chain)
    assert sorted(len(set(chain) & set(pairs)) for pairs in split) == [0, 0, 300]


@pytest.mark.parametrize("where", Split._fields)
def test_the_smallest_normalised_source_decides_for_the_whole_group(where):
    alone = split_pairs(independent(500))
    first = getattr(alone, where)[0]
    group = [Pair(f"z{number}", first.target) for number in range(20)]
    assert {place(split_pairs([*group, first]), pair) for pair in group} == {where}


def test_the_split_does_not_depend_on_the_order_of_the_pairs():
    pairs = tangled(0)
    shuffled = random.Random(1).sample(pairs, len(pairs))
    assert [sorted(part) for part in split_pairs(pairs)] == [sorted(part) for part in split_pairs(shuffled)]
    assert split_pairs(pairs) == split_pairs(pairs)


def test_every_pair_is_in_exactly_one_split_in_its_old_order():
    pairs = tangled(2)
    split = split_pairs(pairs)
    assert sorted(pair for part in split for pair in part) == sorted(pairs)
    assert split.train == [pair for pair in pairs if pair in set(split.train)]


def test_dev_and_test_are_two_percent_each():
    split = split_pairs(independent(5000))
    assert 60 < len(split.dev) < 140
    assert 60 < len(split.test) < 140


def by_hand(pairs: list[Pair]) -> Split:
    """The rule as docs/data.md words it, with sets of strings."""
    groups: list[tuple[set[str], set[str], list[int]]] = []
    for index, (source, target) in enumerate(pairs):
        group = ({normalise(source)}, {normalise(target)}, [index])
        for other in [other for other in groups if other[0] & group[0] or other[1] & group[1]]:
            groups.remove(other)
            group = (group[0] | other[0], group[1] | other[1], group[2] + other[2])
        groups.append(group)
    split = Split([], [], [])
    for sources, _, members in groups:
        percent = int(hashlib.sha256(min(sources).encode()).hexdigest()[:16], 16) % 100
        split[1 if percent < 2 else 2 if percent < 4 else 0].extend(members)
    return Split(*([pairs[index] for index in sorted(part)] for part in split))


@pytest.mark.parametrize("seed", range(5))
def test_the_split_is_the_rule_worked_by_hand_for_lists_and_tables(seed):
    pairs = tangled(seed) + independent(300)
    assert split_pairs(pairs) == by_hand(pairs)
    assert split_pairs(PairTable.write(pairs)) == by_hand(pairs)


@pytest.mark.parametrize("seed", range(3))
def test_a_table_is_cleaned_like_a_list(seed):
    pairs = tangled(seed) * 2 + [Pair("", "x"), Pair("Paris", "Paris"), Pair("w " * 30, "v")]
    held_out = tangled(seed)[:3]
    config = DataConfig(max_words=10, max_ratio=2)
    kept, counts = clean(PairTable.write(pairs), config, PairTable.write(held_out))
    assert (list(kept), counts) == clean(pairs, config, held_out)
    assert set(counts) == {"empty", "too long", "copy", "duplicate", "also in dev or test"}
    assert distinct(PairTable.write(pairs)) == distinct(pairs) == list(dict.fromkeys(pairs[:-3])) + pairs[-2:]


def test_a_fingerprint_is_of_the_lines_of_all_parts():
    first, second = [Pair("a", "b")], [Pair("é\ud800", "d")]
    written = "a\tb\né\ud800\td\n".encode("utf-8", "surrogatepass")
    assert fingerprint(first, second) == hashlib.sha256(written).hexdigest()
    assert fingerprint(PairTable.write(first)) == fingerprint(first) != fingerprint(second)


def test_no_pairs_make_empty_splits():
    assert split_pairs([]) == Split([], [], [])


@pytest.mark.parametrize(
    ("rule", "pair"),
    [
        ("empty", Pair(" \u202f", "quelque chose")),
        ("empty", Pair("something", "")),
        ("too long", Pair("a " * 11, "b " * 10)),
        ("too long", Pair("a " * 10, "b " * 11)),
        ("length ratio", Pair("a b", "c d e f g h i")),
        ("copy", Pair("Paris.", "Paris.")),
        ("duplicate", Pair("Hello.", "Bonjour.")),
        ("also in dev or test", Pair("the CAT sleeps", "Il dort.")),
        ("also in dev or test", Pair("It sleeps.", "Le chat dort !")),
    ],
)
def test_each_cleaning_rule_drops_and_counts(rule, pair):
    kept = [Pair("Hello.", "Bonjour."), Pair("Run!", "Cours un peu, veux-tu ?")]
    held_out = [Pair("The cat sleeps.", "Le chat dort.")]
    config = DataConfig(max_words=10, max_ratio=3.0)
    assert clean([*kept, pair], config, held_out) == (kept, {rule: 1})


def test_cleaning_can_keep_copies_and_long_pairs():
    pairs = [Pair("Paris.", "Paris."), Pair("a " * 200, "b " * 200)]
    assert clean(pairs, DataConfig(max_words=200, drop_copies=False)) == (pairs, {})


def test_distinct_drops_blank_and_repeated_pairs_alone():
    pairs = [Pair("a", "b"), Pair("a", "c"), Pair("a", "b"), Pair(" ", "d"), Pair("e", ""), Pair("x", "x")]
    assert distinct(pairs) == [Pair("a", "b"), Pair("a", "c"), Pair("x", "x")]


def test_a_source_is_one_example_with_all_its_renderings():
    pairs = [
        Pair("Go.", "Va !"),
        Pair("Hi.", "Salut."),
        Pair("Go.", "Partez."),
        Pair("go.", "Va."),
        Pair("Go.", "Va !"),
    ]
    assert group_references(pairs) == [
        Example("Go.", ("Va !", "Partez.")),
        Example("Hi.", ("Salut.",)),
        Example("go.", ("Va.",)),
    ]


@pytest.fixture(scope="module")
def tatoeba(real_data: Path) -> Corpus:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEQ2SEQ_DATA", str(real_data))
        return load_corpus(DataConfig(dataset="tatoeba"))


def test_tatoebas_splits_share_no_sentence(tatoeba):
    assert shared_sides(tatoeba.split) == set()


def test_tatoebas_splits_have_the_published_counts(tatoeba):
    assert [len(pairs) for pairs in tatoeba.split] == [157_412, 3_388, 3_261]
    assert [len(group_references(pairs)) for pairs in tatoeba.split[1:]] == [2_303, 2_305]
