"""Beam search in which given phrases must occur, for one sentence.

Lexically constrained decoding with a beam that is shared among banks (Post and Vilar 2018, sections 3.2 and 3.3). A
bank holds the hypotheses that have written equally many tokens of the phrases, so that those that have written some,
which are improbable, are not crowded out by those that never will.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from seq2seq.translation.engine import Hypothesis
from seq2seq.translation.search import Stepper, top

Phrase = tuple[int, ...]


class Constraints(NamedTuple):
    """What a translation must contain, and what it must not."""

    phrases: tuple[Phrase, ...]
    prefix: Phrase = ()  # with which it begins
    forbidden: tuple[Phrase, ...] = ()  # words that the phrases are to take the place of
    joined: frozenset[int] = frozenset()  # tokens that would make another word of a phrase which they follow
    marks: frozenset[int] = frozenset()  # tokens that end a sentence, after which no phrase is begun
    elided: frozenset[int] = frozenset()  # tokens directly after which no phrase is begun


class Progress(NamedTuple):
    """Which phrases are written, and which are being written: (phrase, tokens of it so far)."""

    written: frozenset[int] = frozenset()
    begun: frozenset[tuple[int, int]] = frozenset()

    def count(self, phrases: Sequence[Phrase]) -> int:
        """Tokens of phrases that are written."""
        return sum(len(phrases[index]) for index in self.written) + max((at for _, at in self.begun), default=0)

    def after(self, token: int, phrases: Sequence[Phrase]) -> "Progress":
        """The progress with one more token; a phrase that it breaks off is to be written anew."""
        open_phrases = {(index, 0) for index in range(len(phrases)) if index not in self.written} | self.begun
        grown = {(index, at + 1) for index, at in open_phrases if phrases[index][at] == token}
        written = self.written | {index for index, at in grown if at == len(phrases[index])}
        return Progress(written, frozenset((index, at) for index, at in grown if index not in written))

    def ways_on(self, phrases: Sequence[Phrase]) -> set[int]:
        """Tokens that write more of the phrases."""
        firsts = {phrase[0] for index, phrase in enumerate(phrases) if index not in self.written}
        return firsts | {phrases[index][at] for index, at in self.begun}


class Open(NamedTuple):
    """A hypothesis that goes on; `row` is that of its prefix without the newest token."""

    tokens: tuple[int, ...]
    total: float
    progress: Progress
    row: int


def constrained_search(
    stepper: Stepper,
    limit: int,
    wanted: Constraints,
    *,
    beam_size: int,
    bos_id: int,
    eos_id: int,
    alpha: float = 1.0,
) -> list[Hypothesis]:
    """The best hypotheses within the constraints, best first, at most `beam_size`; none if the limit is too short.

    The stepper starts with one row.
    """
    needed = sum(map(len, wanted.phrases))
    if max(needed, len(wanted.prefix)) >= limit:
        return []
    finished: list[Hypothesis] = []
    chosen, newest = [_begin(stepper, wanted, bos_id)], torch.tensor([(bos_id, *wanted.prefix)[-1]])
    for length in range(len(wanted.prefix) + 1, limit + 1):
        log_probabilities = stepper.advance(newest)
        candidates = list(_candidates(chosen, log_probabilities, wanted, 2 * beam_size))
        for one in candidates:
            if one.tokens[-1] == eos_id and one.progress.count(wanted.phrases) == needed:
                finished.append(Hypothesis(one.tokens, one.total, one.total / length**alpha, truncated=False))
        chosen = _shared_out([one for one in candidates if one.tokens[-1] != eos_id], wanted.phrases, beam_size)
        if len(finished) >= beam_size or not chosen:  # as in beam_search
            break
        stepper.select(torch.tensor([one.row for one in chosen], device=log_probabilities.device), None)
        newest = torch.tensor([one.tokens[-1] for one in chosen])
    return sorted(finished, key=lambda hypothesis: -hypothesis.score)[:beam_size]


def _begin(stepper: Stepper, wanted: Constraints, bos_id: int) -> Open:
    """The hypothesis that is the prefix; the stepper has been fed all of it but the last token."""
    total, progress = 0.0, Progress()
    for last, token in zip((bos_id, *wanted.prefix), wanted.prefix, strict=False):
        total += stepper.advance(torch.tensor([last]))[0, token].item()
        progress = progress.after(token, wanted.phrases)
    return Open(wanted.prefix, total, progress, 0)


def _candidates(chosen: Sequence[Open], log_probabilities: Tensor, wanted: Constraints, k: int) -> Iterator[Open]:
    """Each hypothesis with each of its k most probable tokens, and with those that write more of the phrases."""
    for row, hypothesis in enumerate(chosen):
        barred = _barred(hypothesis, wanted)
        log_probabilities[row, list(barred)] = -math.inf
        writing = hypothesis.progress.ways_on(wanted.phrases) - barred
        tokens = sorted({*top(log_probabilities[row : row + 1], k)[0].tolist(), *writing})
        gains = log_probabilities[row, tokens].tolist()
        for token, gain in zip(tokens, gains, strict=True):
            if gain > -math.inf:
                progress = hypothesis.progress.after(token, wanted.phrases)
                yield Open((*hypothesis.tokens, token), hypothesis.total + gain, progress, row)


def _barred(hypothesis: Open, wanted: Constraints) -> set[int]:
    """Tokens that a hypothesis may not go on with."""
    tokens, progress = hypothesis.tokens, hypothesis.progress
    barred = {word[-1] for word in wanted.forbidden if tokens[len(tokens) - len(word) + 1 :] == word[:-1]}
    if any(tokens[-len(phrase) :] == phrase for phrase in wanted.phrases):
        barred |= wanted.joined
    if wanted.marks.intersection(tokens) or wanted.elided.intersection(tokens[-1:]):
        barred |= {phrase[0] for index, phrase in enumerate(wanted.phrases) if index not in progress.written}
    return barred


def _shared_out(candidates: Sequence[Open], phrases: Sequence[Phrase], beam_size: int) -> list[Open]:
    """The best of every bank, and the best of all in the places that are left."""
    if not candidates:
        return []
    ranked = sorted(candidates, key=lambda one: -one.total)
    banks: dict[int, list[Open]] = {}
    for one in ranked:
        banks.setdefault(one.progress.count(phrases), []).append(one)
    places = beam_size + len(banks) - 1
    share = places // len(banks)
    taken = [one for bank in banks.values() for one in bank[:share]]
    held = set(map(id, taken))
    return taken + [one for one in ranked if id(one) not in held][: places - len(taken)]
