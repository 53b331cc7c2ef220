"""Where two files that should be line-parallel part company, if the lines themselves tell.

The idea of Gale and Church (1993), "A Program for Aligning Sentences in Bilingual Corpora": a sentence and its
translation have lengths in proportion. Further signs are the marks that a translation keeps: digits, names, final
punctuation. Lines that pair with the wrong partner cost more than lines that pair with the right one; where the
wrong partner begins to be the better one, by a margin that chance does not explain, a line is missing.
"""

import re
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seq2seq.data.lines import read_lines

SHIFTS = (1, 2, 3)  # lines that may be missing at the first place, beside the difference of the counts
WIDEST = 100  # lines: a wider range is not worth saying
VAGUE = 25  # lines over which a drift must outweigh chance; a weaker one does not say where it turns
BLOCKS, FEWEST_BLOCKS = (1, 8, 64), 8
SLACK = 3.0  # cost within which two places are about as good
CERTAIN = 2.0  # standard deviations above what the best of so many places reaches by chance
LENGTH_VARIANCE = 2.0  # of the difference in characters, a character of the mean length (measured on English-French)
LENGTH_CEILING = 9.0
MARKS_WEIGHT = 3.0
MARK = re.compile(r"\d+|[^\W\d_]*[A-ZÀ-ÖØ-ÞΑ-ΩА-Я][^\W\d_]+|[?!:;…%()]")

Costs = NDArray[np.float32]
Walk = NDArray[np.float64]


class Place(NamedTuple):
    """Lines, counted from 1, both included."""

    first: int
    last: int


class Lines(NamedTuple):
    """What is compared of n lines: 12 bytes a line."""

    lengths: NDArray[np.uint32]  # characters
    marks: NDArray[np.uint64]  # a set of digits, capitalised words and punctuation, a bit each


def describe_parting(source: Path, target: Path) -> str:
    """The line to print about two files of unequal length."""
    first, second = sketch(read_lines(source)), sketch(read_lines(target))
    counts = len(first.lengths), len(second.lengths)
    place = find_parting(first, second)
    where = ""
    if place is not None:
        where = f"{place.first:,}" if place.first == place.last else f"{place.first:,} to {place.last:,}"
        where = f"; they seem to part company at line {where}"
    return f"{source} has {counts[0]} lines but {target} has {counts[1]}: they must be line-parallel{where}"


def sketch(lines: Iterator[str]) -> Lines:
    """The compact form of a file's lines."""
    lengths, marks = array("I"), array("Q")
    for line in lines:
        lengths.append(len(line))
        bits = 0
        for mark in MARK.findall(line):
            bits |= 1 << (sum(mark.encode()) * 2654435761 >> 7) % 64
        marks.append(bits)
    return Lines(np.asarray(lengths), np.asarray(marks))


def find_parting(source: Lines, target: Lines) -> Place | None:
    """The first lines, counted from 1, that have no longer their partners in the other file; None if that is unclear.

    With a line missing, duplicated or added at a place, line i pairs with i before it and with i + shift after it.
    """
    surplus = len(target.lengths) - len(source.lengths)
    straight = costs(source, target, 0)
    shifts = sorted({surplus, *SHIFTS, *(-shift for shift in SHIFTS)} - {0})
    certain = CERTAIN + float(np.sqrt(2 * np.log(1 + len(shifts) * len(straight))))
    places = []
    for shift in shifts:
        shifted = costs(source, target, shift)
        length = min(len(straight), len(shifted))
        gain = straight[:length] - shifted[:length]
        gain[: max(0, -shift)] = 0  # line i + shift does not exist
        total = np.concatenate([[0.0], np.cumsum(gain, dtype=np.float64)])
        places.append(_turn(total, _deviation(gain), certain, must_turn=shift == surplus))
    found = [place for place in places if place is not None]
    first = min(found, default=None)
    return first if first and first.last - first.first <= WIDEST else None


def costs(source: Lines, target: Lines, shift: int) -> Costs:
    """For every line i of the source, how badly it fits line i + shift of the target (as many as have one)."""
    count = min(len(source.lengths), len(target.lengths) - shift)
    first = max(0, -shift)
    if count <= first:
        return np.zeros(0, np.float32)
    ours, theirs = slice(first, count), slice(first + shift, count + shift)
    long, wide = source.lengths[ours].astype(np.float64), target.lengths[theirs].astype(np.float64)
    ratio = max(float(target.lengths.sum()), 1.0) / max(float(source.lengths.sum()), 1.0)
    difference = (wide - ratio * long) ** 2 / (LENGTH_VARIANCE * (1 + (wide + ratio * long) / 2))
    same, either = source.marks[ours] & target.marks[theirs], source.marks[ours] | target.marks[theirs]
    unlike = 1 - _bits(same) / np.maximum(_bits(either), 1)
    result = np.minimum(difference, LENGTH_CEILING) + MARKS_WEIGHT * unlike * (either != 0)
    return np.concatenate([np.zeros(first), result]).astype(np.float32)


def _bits(sets: NDArray[np.uint64]) -> NDArray[np.int64]:
    """How many members each set has."""
    bits = np.unpackbits(sets.view(np.uint8).reshape(-1, 8), axis=1)
    return np.asarray(bits.sum(axis=1), np.int64)


def _deviation(gain: Costs) -> float:
    """Standard deviation of a step of the walk that chance alone would make of the gains.

    From the differences of neighbouring blocks, so that the turn itself does not count, and also from long blocks,
    because neighbouring lines resemble each other in a sorted corpus.
    """
    found = [1e-9]
    for size in BLOCKS:
        blocks = gain[: len(gain) // size * size].reshape(-1, size).sum(axis=1, dtype=np.float64)
        if len(blocks) >= FEWEST_BLOCKS:
            found.append(float(np.sqrt(np.mean(np.diff(blocks) ** 2) / 2 / size)))
    return max(found)


def _turn(total: Walk, deviation: float, certain: float, must_turn: bool) -> Place | None:
    """Where the walk is lowest, if it falls before and rises after it more than chance would have it.

    If the counts say that there must be such a turn, the fall is evidence, too: the files are parallel up to there.
    """
    place = int(np.argmin(total))
    rises = total[place:] - total[place]
    rise = float(np.max(rises / np.sqrt(np.maximum(np.arange(len(rises)), 1))))
    fall = -float(total[place]) / np.sqrt(max(place, 1)) if must_turn else 0.0
    drift = (float(rises.max()) - float(total[place])) / len(total)
    if np.hypot(rise, fall) <= certain * deviation or drift * np.sqrt(VAGUE) <= deviation:
        return None
    return _around(total)


def _around(total: Walk) -> Place:
    """The lines at which the turn may be: the walk is about as low there as where it is lowest."""
    low = np.flatnonzero(total <= total.min() + SLACK)
    return Place(int(low[0]) + 1, int(low[-1]) + 1)
