"""Cleaning of a training split, and splits that share no sentence. The rules are explained in docs/data.md."""

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seq2seq.config import DataConfig
from seq2seq.data.facts import Facts, Hashes, firsts, normalise
from seq2seq.data.table import Pair, facts_of, pick

__all__ = [
    "Example",
    "Pair",
    "Sifted",
    "Split",
    "fingerprint",
    "group_references",
    "normalise",
    "sift",
    "split_pairs",
    "split_rows",
]

DEV_PERCENT, TEST_PERCENT = 2, 2
RATIO_FROM = 5  # words; a few words translate freely, so only longer sides are held to the ratio
RULES = ("empty", "too long", "length ratio", "copy", "duplicate", "also in dev or test")
Rows = NDArray[np.int64]


class Example(NamedTuple):
    """A sentence to be translated and every reference translation it has."""

    source: str
    references: tuple[str, ...]


class Split(NamedTuple):
    """Pairs to learn from, to choose by, and to report on."""

    train: Sequence[Pair]
    dev: Sequence[Pair]
    test: Sequence[Pair]


def split_pairs(pairs: Sequence[Pair]) -> Split:
    """Three splits such that no normalised sentence of either language is in two of them.

    Pairs connected through a shared side form a group; the hash of the group's smallest normalised source decides
    where the whole group goes: 2 % dev, 2 % test, the rest train.
    """
    return Split(*(pick(pairs, rows) for rows in split_rows(pairs)))


def split_rows(pairs: Sequence[Pair]) -> tuple[Rows, Rows, Rows]:
    """Positions of the pairs of train, dev and test by the rule of `split_pairs`."""
    facts = facts_of(pairs)
    roots = _groups(facts)
    hashes = facts.source_keys.copy()
    for members in _mixed_groups(roots, facts.source_keys):
        # Equal keys stand for equal sources, so the smallest source's key is that of the first pair that has it.
        sources = (normalise(pair.source) for pair in pick(pairs, members))
        _, smallest = min(zip(sources, members.tolist(), strict=True))
        hashes[members] = facts.source_keys[smallest]
    percent = hashes % np.uint64(100)
    dev, test = percent < DEV_PERCENT, percent < DEV_PERCENT + TEST_PERCENT
    return np.flatnonzero(~test), np.flatnonzero(dev), np.flatnonzero(test & ~dev)


def _groups(facts: Facts) -> Rows:
    """For every pair the index that stands for its connected group (union-find with path halving)."""
    parent = array("q", range(len(facts)))

    def find(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    for keys in (facts.source_keys, facts.target_keys):
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        earlier = first[which]
        for index in np.flatnonzero(earlier != np.arange(len(keys))).tolist():
            parent[find(index)] = find(int(earlier[index]))
    return np.fromiter(map(find, range(len(facts))), np.int64, len(facts))


def _mixed_groups(roots: Rows, keys: Hashes) -> Iterator[Rows]:
    """The members of each group in which there is more than one normalised source."""
    mixed = np.zeros(len(roots), bool)
    mixed[roots[keys != keys[roots]]] = True
    rows = np.flatnonzero(mixed[roots])
    rows = rows[np.argsort(roots[rows], kind="stable")]
    start = 0
    for end in [*(np.flatnonzero(np.diff(roots[rows])) + 1).tolist(), len(rows)]:
        if start < end:
            yield rows[start:end]
        start = end


def group_references(pairs: Iterable[Pair]) -> list[Example]:
    """One example per exact source sentence, in order of first appearance, with all its renderings."""
    references: dict[str, list[str]] = {}
    for source, target in pairs:
        references.setdefault(source, []).append(target)
    return [Example(source, tuple(dict.fromkeys(targets))) for source, targets in references.items()]


@dataclass(frozen=True)
class Sifted:
    """Positions of the pairs that cleaning keeps, and of those it drops by each rule that dropped any."""

    kept: Rows
    dropped: dict[str, Rows]


def sift(pairs: Sequence[Pair], config: DataConfig, *held_out: Sequence[Pair]) -> Sifted:
    """What cleaning keeps and drops: what teaches nothing, harms, or shares a side with a held-out pair.

    Of the rules that a pair breaks, the first one counts.
    """
    facts = facts_of(pairs)
    broken = [*_faults(facts, config), np.zeros(len(facts), bool), _shared(facts, map(facts_of, held_out))]
    # A pair is a duplicate if an equal one was kept before it, and equal pairs break the same rules.
    sound = np.flatnonzero(~np.any(broken, axis=0))
    broken[RULES.index("duplicate")][sound[~firsts(facts.pairs[sound])]] = True
    first = np.argmax([*broken, np.ones(len(facts), bool)], axis=0)
    dropped = {rule: np.flatnonzero(first == number) for number, rule in enumerate(RULES)}
    return Sifted(np.flatnonzero(first == len(RULES)), {rule: rows for rule, rows in dropped.items() if len(rows)})


def _faults(facts: Facts, config: DataConfig) -> list[NDArray[np.bool_]]:
    """For each rule that a pair breaks by itself, which pairs do."""
    shorter, longer = np.sort([facts.source_words, facts.target_words], axis=0)
    return [
        shorter == 0,
        longer > config.max_words,
        (longer > RATIO_FROM) & (longer > config.max_ratio * shorter),
        facts.copies & config.drop_copies,
    ]


def _shared(facts: Facts, others: Iterable[Facts]) -> NDArray[np.bool_]:
    """Which pairs have a side, normalised, that one of the other pairs has, too."""
    shared = np.zeros(len(facts), bool)
    for other in others:
        shared |= np.isin(facts.source_keys, other.source_keys) | np.isin(facts.target_keys, other.target_keys)
    return shared


def fingerprint(*parts: Iterable[Pair]) -> str:
    r"""SHA-256 of pairs, one part after the other: `source TAB target \n` each, as UTF-8."""
    digest = hashlib.sha256()
    for part in parts:
        for pair in part:
            digest.update("\t".join(pair).encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()
