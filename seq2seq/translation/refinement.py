"""Word links of many pairs together: attention, and what it does not know.

Attention looks at one pair and one target word at a time, and where it has not met a word it points anywhere. Its
weights are taken here as the emissions of the alignment HMM of Vogel et al. (1996), and three things are added:

- order: what translates the next word is mostly what follows in the source;
- likeness: names, numbers and cognates look alike in both languages;
- the other pairs: what goes together there goes together here (one step of EM, without what the pair itself says).

All this is done twice: once as attention has it, where each target word draws on source words, and once from the other
side, where each source word asks which target words draw on it. The links of both sides are joined as those of two
directions are, though it may be one model that was read. Where a model of the other direction was read, too, each side
is the mean of what both models say.

Nothing is trained: the few numbers below were set by hand. Shapes: I source words, J target words; the last of I + 1
columns is that of no word. From the other side source and target change places.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seq2seq.translation.alignment import ends_with_mark
from seq2seq.translation.link_sets import SYMMETRISE, LinkSet, turn

Array = NDArray[np.float64]
WordPair = tuple[str, str]

LEAST = 1e-4  # emission of a word that attention passes over
UNDRAWN = 0.1  # from the other side: weight of no target word, beside what all of them draw on a source word
NO_WORD = 0.3  # probability that a target word has no source
DECAY, FAR = 0.5, 0.1  # of jumps: exp(-DECAY * words too far), but no less than FAR
ALIKE, ALIKE_FROM, ALIKE_LETTERS = 5.0, 0.6, 4  # weight of likeness in the exponent; which words are alike at all
TRUST, DOUBT = 0.5, 1.0  # exponent of what other pairs say; occurrences that count as much as knowing nothing
LINKED = 0.5  # a link is one that is more probable than not
TRACE = 0.01  # probability of a link below which it is no evidence for other pairs


class Reading(NamedTuple):
    """A pair as attention reads it."""

    attention: NDArray[np.floating]  # (J, I) between words; what a row lacks of 1 is what `</s>` draws
    source: Sequence[str]
    target: Sequence[str]


def refine(
    readings: Sequence[Reading], backward: Sequence[Reading] | None = None, rule: str = "grow-diag-final-and"
) -> list[LinkSet]:
    """Links of every pair; `backward` has the same pairs turned round, as a model of the other direction reads them."""
    there = [_prepared(reading) for reading in readings]
    back = [_turned(reading) for reading in there]
    if backward is not None:
        others = [_prepared(reading) for reading in backward]
        there, back = list(map(_mean, there, map(_turned, others))), list(map(_mean, back, others))
    joined = map(SYMMETRISE[rule], _one_sided(there), map(turn, _one_sided(back)))
    return [links | _final_marks(reading) for reading, links in zip(readings, joined, strict=True)]


def _prepared(reading: Reading) -> Reading:
    """The pair in lower case, without the marks that end it: that of the source draws attention from everywhere."""
    source, target = (
        [word.lower() for word in words[: len(words) - ends_with_mark(words)]]
        for words in (reading.source, reading.target)
    )
    return Reading(reading.attention[: len(target), : len(source)], source, target)


def _final_marks(reading: Reading) -> LinkSet:
    """The link of the marks that end both sides, if they do."""
    if not ends_with_mark(reading.source) or not ends_with_mark(reading.target):
        return frozenset()
    return frozenset({(len(reading.source) - 1, len(reading.target) - 1)})


def _turned(reading: Reading) -> Reading:
    """From the other side: how much each source word is drawn on by each target word, of all that draws on it."""
    drawn = reading.attention.T
    return Reading(drawn / (drawn.sum(axis=1, keepdims=True) + UNDRAWN), reading.target, reading.source)


def _mean(one: Reading, other: Reading) -> Reading:
    """The same pair as two models read it."""
    return one._replace(attention=(one.attention + other.attention) / 2)


def _one_sided(readings: Sequence[Reading]) -> list[LinkSet]:
    """Links of every pair, each target word with one source word at most."""
    emissions = [_emission(reading) for reading in readings]
    found = list(map(posterior, emissions))
    company = Company(zip(readings, found, strict=True))
    weighed = map(company.weighed, readings, emissions, found)
    return list(map(_links, map(posterior, weighed)))


def _links(found: Array) -> LinkSet:
    probable = (row[:-1] for row in found)
    return frozenset((int(row.argmax()), j) for j, row in enumerate(probable) if row.max(initial=0.0) > LINKED)


def _emission(reading: Reading) -> Array:
    """(J, I + 1) attention, with more of it on words that look like the target word."""
    drawn = reading.attention.astype(float)
    emission = np.maximum(np.hstack([drawn, 1 - drawn.sum(axis=1, keepdims=True)]), LEAST)
    alike = [[likeness(i, j) for i in reading.source] for j in reading.target]
    emission[:, :-1] *= np.exp(ALIKE * np.array(alike).reshape(drawn.shape))
    return _summing_to_one(emission)


@lru_cache(maxsize=2**18)
def likeness(one: str, other: str) -> float:
    """How alike two words are written, 0 to 1: 1 if they are the same, 0 if they share too little to be cognates."""
    if not any(map(str.isalnum, one)):
        return 0.0
    if one == other:
        return 1.0
    if min(len(one), len(other)) < ALIKE_LETTERS:
        return 0.0
    match = SequenceMatcher(None, one, other, autojunk=False)
    if match.real_quick_ratio() < ALIKE_FROM or match.quick_ratio() < ALIKE_FROM:
        return 0.0
    ratio = match.ratio()
    return ratio if ratio >= ALIKE_FROM else 0.0


def posterior(emission: Array) -> Array:
    """(J, I + 1) emissions -> probability of each link given the whole sentence, by forward and backward.

    A state is the place of the source word that was translated last, 0 before the first; a word without a source
    leaves it where it is.
    """
    words, nothing = emission[:, :-1], emission[:, -1:]
    jump = (1 - NO_WORD) * _jumps(words.shape[1])  # (I + 1, I): from each place to each word
    on_word, on_none = np.zeros_like(words), np.zeros((len(words), words.shape[1] + 1))
    reached = np.eye(1, words.shape[1] + 1)[0]  # forward, by place
    for j in range(len(words)):
        on_word[j], on_none[j] = (reached @ jump) * words[j], NO_WORD * reached * nothing[j]
        reached = on_none[j] + np.append(0.0, on_word[j])
        total = reached.sum()
        on_word[j], on_none[j], reached = on_word[j] / total, on_none[j] / total, reached / total
    ahead = np.ones(words.shape[1] + 1)  # backward, by place
    found = np.zeros_like(emission)
    for j in reversed(range(len(words))):
        found[j, :-1], found[j, -1] = on_word[j] * ahead[1:], on_none[j] @ ahead
        ahead = jump @ (words[j] * ahead[1:]) + NO_WORD * nothing[j] * ahead
        ahead /= ahead.sum()
    return _summing_to_one(found)


def _jumps(words: int) -> Array:
    """(I + 1, I) probability of each word after each place: the next one is the likeliest."""
    away = np.abs(np.arange(words)[None] - np.arange(words + 1)[:, None])
    likely = np.maximum(np.exp(-DECAY * away), FAR)
    return _summing_to_one(likely)


def _summing_to_one(rows: Array) -> Array:
    scaled: Array = rows / np.maximum(rows.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    return scaled


class Company:
    """How often words of both languages go together, by the probable links of all pairs."""

    def __init__(self, found: Iterable[tuple[Reading, Array]]) -> None:
        self._together: dict[WordPair, float] = defaultdict(float)
        self._sources: dict[str, float] = defaultdict(float)
        self._targets: Counter[str] = Counter()
        for reading, probable in found:
            for (source, target), count in _evidence(reading, probable).items():
                self._together[source, target] += count
                self._sources[source] += count
            self._targets.update(reading.target)
        self._words = self._targets.total()

    def weighed(self, reading: Reading, emission: Array, probable: Array) -> Array:
        """(J, I + 1) emissions times what other pairs say, p(target | source) / p(target) to the power of TRUST."""
        own = _evidence(reading, probable)
        own_sources: dict[str, float] = defaultdict(float)
        for (source, _), count in own.items():
            own_sources[source] += count
        times = [max(self._sources.get(source, 0.0) - own_sources[source], 0.0) for source in reading.source]
        ratios = np.ones_like(emission)
        for j, target in enumerate(reading.target):
            share = self._targets[target] / self._words
            for i, source in enumerate(reading.source):
                together = max(self._together.get((source, target), 0.0) - own[source, target], 0.0)
                ratios[j, i] = (together + DOUBT * share) / ((times[i] + DOUBT) * share)
        return _summing_to_one(emission * ratios**TRUST)


def _evidence(reading: Reading, probable: Array) -> dict[WordPair, float]:
    """How often each word of a pair is linked with each, by the probable links."""
    found: dict[WordPair, float] = defaultdict(float)
    for j, i in np.argwhere(probable[:, :-1] > TRACE):
        found[reading.source[i], reading.target[j]] += probable[j, i]
    return found
