"""Word links as sets: Pharaoh's notation, two directions made one, and the error rate against links set by people.

A link (i, j) says that source word i and target word j belong together, counted from 0.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seq2seq.errors import UserError

LinkSet = frozenset[tuple[int, int]]

_LINK = re.compile(r"([0-9]+)-([0-9]+)")
_GOLD = re.compile(r"([0-9]+)(-|p|\?)([0-9]+)")
_NEAR = [(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)]


@dataclass(frozen=True)
class Gold:
    """Links set by people: those that must be there, and those that may be (the sure ones among them)."""

    sure: LinkSet
    possible: LinkSet


@dataclass(frozen=True)
class ErrorRate:
    """How links differ from gold over a corpus, each from 0 to 1 (Och and Ney 2003, section 4.1).

    AER = 1 - (|A & S| + |A & P|) / (|A| + |S|) for links A, sure links S and possible links P.
    """

    aer: float
    precision: float  # of the links, those that are possible
    recall: float  # of the sure links, those that were found


def read_links(line: str) -> LinkSet:
    """Links in Pharaoh's notation, `0-0 1-2`."""
    found = [_LINK.fullmatch(item) for item in line.split()]
    if None in found:
        raise UserError(f"{line.split()[found.index(None)]!r} is not a link such as 0-2")
    return frozenset((int(match[1]), int(match[2])) for match in found if match)


def write_links(links: LinkSet) -> str:
    """Pharaoh's notation, in order of the source words."""
    return " ".join(f"{i}-{j}" for i, j in sorted(links))


def read_gold(line: str, first: int = 1) -> Gold:
    """Sure links as `1-2`, possible ones as `1p2` or `1?2`; words are counted from `first`."""
    sure, possible = set(), set()
    for item in line.split():
        match = _GOLD.fullmatch(item)
        if match is None:
            raise UserError(f"{item!r} is not a link such as 1-2 (sure) or 1p2 (possible)")
        link = (int(match[1]) - first, int(match[3]) - first)
        if min(link) < 0:
            raise UserError(f"{item!r} counts from 0, but the first word is {first}")
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return Gold(frozenset(sure), frozenset(possible))


def error_rate(links: Sequence[LinkSet], gold: Sequence[Gold]) -> ErrorRate:
    """Of all sentence pairs together."""
    if len(links) != len(gold):
        raise UserError(f"{len(links)} pairs have links but {len(gold)} have gold ones: they must be line-parallel")
    found, sure = sum(map(len, links)), sum(len(each.sure) for each in gold)
    found_sure = sum(len(one & each.sure) for one, each in zip(links, gold, strict=True))
    found_possible = sum(len(one & each.possible) for one, each in zip(links, gold, strict=True))
    return ErrorRate(
        aer=1 - (found_sure + found_possible) / (found + sure) if found + sure else 0.0,
        precision=found_possible / found if found else 1.0,
        recall=found_sure / sure if sure else 1.0,
    )


def turn(links: LinkSet) -> LinkSet:
    """Links of the other direction."""
    return frozenset((j, i) for i, j in links)


def grow_diag_final_and(forward: LinkSet, backward: LinkSet) -> LinkSet:
    """From the links of both directions on to those of one that touch them, then to words without any.

    Koehn et al. (2003), with the order of Moses: neighbours, diagonals among them, as long as a word is still free;
    at last links of two free words, those of the forward direction first.
    """
    union, grown = forward | backward, set(forward & backward)
    sources, targets = {i for i, _ in grown}, {j for _, j in grown}

    def add(link: tuple[int, int]) -> None:
        grown.add(link)
        sources.add(link[0])
        targets.add(link[1])

    size = -1
    while size != len(grown):
        size = len(grown)
        for i, j in sorted(grown):
            for near in [(i + down, j + right) for down, right in _NEAR]:
                if near in union and near not in grown and not (near[0] in sources and near[1] in targets):
                    add(near)
    for direction in (forward, backward):
        for link in sorted(direction):
            if link[0] not in sources and link[1] not in targets:
                add(link)
    return frozenset(grown)


SYMMETRISE: dict[str, Callable[[LinkSet, LinkSet], LinkSet]] = {
    "intersection": frozenset.intersection,
    "union": frozenset.union,
    "grow-diag-final-and": grow_diag_final_and,
}
