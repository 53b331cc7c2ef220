"""Cleaning of a training split, and splits that share no sentence."""

import hashlib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from seq2seq.config import DataConfig

DEV_PERCENT, TEST_PERCENT = 2, 2


class Pair(NamedTuple):
    """A sentence and its translation."""

    source: str
    target: str


class Example(NamedTuple):
    """A sentence to be translated and every reference translation it has."""

    source: str
    references: tuple[str, ...]


class Split(NamedTuple):
    """Pairs to learn from, to choose by, and to report on."""

    train: list[Pair]
    dev: list[Pair]
    test: list[Pair]


def normalise(sentence: str) -> str:
    """A sentence up to case, punctuation and spaces: its letters, marks and digits, folded."""
    folded = unicodedata.normalize("NFKC", sentence).casefold()
    if folded.isalnum():
        return folded
    return "".join(c for c in folded if c.isalnum() or unicodedata.category(c)[0] == "M") or folded.strip()


def split_pairs(pairs: Sequence[Pair]) -> Split:
    """Three splits such that no normalised sentence of either language is in two of them.

    Pairs connected through a shared side form a group; the hash of the group's smallest normalised source decides
    where the whole group goes: 2 % dev, 2 % test, the rest train.
    """
    keys = [(normalise(source), normalise(target)) for source, target in pairs]
    roots = _groups(keys)
    smallest: dict[int, str] = {}
    for (source, _), root in zip(keys, roots, strict=True):
        smallest[root] = min(smallest.get(root, source), source)
    place = {root: _place(name) for root, name in smallest.items()}
    split = Split([], [], [])
    for pair, root in zip(pairs, roots, strict=True):
        split[place[root]].append(pair)
    return split


def _place(name: str) -> int:
    """0 train, 1 dev, 2 test, by the first 64 bits of SHA-256 modulo 100."""
    percent = int(hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16], 16) % 100
    if percent < DEV_PERCENT:
        return 1
    return 2 if percent < DEV_PERCENT + TEST_PERCENT else 0


def _groups(keys: Sequence[tuple[str, str]]) -> list[int]:
    """For every pair the index that stands for its connected group (union-find with path halving)."""
    parent = list(range(len(keys)))

    def find(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    first: dict[tuple[int, str], int] = {}
    for index, sides in enumerate(keys):
        for side, sentence in enumerate(sides):
            parent[find(index)] = find(first.setdefault((side, sentence), index))
    return [find(index) for index in range(len(keys))]


def group_references(pairs: Iterable[Pair]) -> list[Example]:
    """One example per exact source sentence, in order of first appearance, with all its renderings."""
    references: dict[str, list[str]] = {}
    for source, target in pairs:
        references.setdefault(source, []).append(target)
    return [Example(source, tuple(dict.fromkeys(targets))) for source, targets in references.items()]


def distinct(pairs: Iterable[Pair]) -> list[Pair]:
    """Drop blank and repeated pairs, which is all that is ever dropped from a dev or test set."""
    return [pair for pair in dict.fromkeys(pairs) if pair.source.strip() and pair.target.strip()]


def clean(
    pairs: Iterable[Pair], config: DataConfig, held_out: Iterable[Pair] = ()
) -> tuple[list[Pair], dict[str, int]]:
    """Training pairs without those that teach nothing, harm, or share a side with a held-out pair; counts by rule."""
    held_sources, held_targets = set(), set()
    for source, target in held_out:
        held_sources.add(normalise(source))
        held_targets.add(normalise(target))
    kept: dict[Pair, None] = {}
    dropped: Counter[str] = Counter()
    for pair in pairs:
        rule = _fault(pair, config)
        if rule is None and pair in kept:
            rule = "duplicate"
        elif rule is None and (normalise(pair.source) in held_sources or normalise(pair.target) in held_targets):
            rule = "also in dev or test"
        if rule is None:
            kept[pair] = None
        else:
            dropped[rule] += 1
    return list(kept), dict(dropped)


def _fault(pair: Pair, config: DataConfig) -> str | None:
    """The first rule that a pair breaks by itself."""
    lengths = [len(side.split()) for side in pair]
    if not all(lengths):
        return "empty"
    if max(lengths) > config.max_words:
        return "too long"
    # A few words translate freely, so only longer sides are held to the ratio.
    if max(lengths) > 5 and max(lengths) > config.max_ratio * min(lengths):
        return "length ratio"
    if config.drop_copies and pair.source == pair.target:
        return "copy"
    return None
