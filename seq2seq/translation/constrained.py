"""Beam search in which given phrases must occur, for one sentence.

Lexically constrained decoding with a beam that is shared among banks (Post and Vilar 2018, sections 3.2 and 3.3). A
bank holds the hypotheses that have written equally many tokens of the phrases, so that those that have written some,
which are improbable, are not crowded out by those that never will.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from seq2seq.translation.engine import Hypothesis
from seq2seq.translation.search import Stepper, top

Phrase = tuple[int, ...]


class Progress(NamedTuple):
    """Which phrases are written, and how far the one is that is being written."""

    written: frozenset[int] = frozenset()
    current: int | None = None
    at: int = 0  # tokens of the current one that are written

    def count(self, phrases: Sequence[Phrase]) -> int:
        """Tokens of phrases that are written."""
        return sum(len(phrases[index]) for index in self.written) + self.at

    def after(self, token: int, phrases: Sequence[Phrase]) -> "Progress":
        """The progress with one more token; a phrase that it breaks off is to be written anew."""
        if self.current is not None and phrases[self.current][self.at] == token:
            return self._at(self.current, self.at + 1, phrases)
        for index, phrase in enumerate(phrases):
            if index not in self.written and phrase[0] == token:
                return self._at(index, 1, phrases)
        return Progress(self.written)

    def _at(self, index: int, at: int, phrases: Sequence[Phrase]) -> "Progress":
        if at == len(phrases[index]):
            return Progress(self.written | {index})
        return Progress(self.written, index, at)

    def ways_on(self, phrases: Sequence[Phrase]) -> set[int]:
        """Tokens that write more of the phrases."""
        if self.current is not None:
            return {phrases[self.current][self.at]}
        return {phrase[0] for index, phrase in enumerate(phrases) if index not in self.written}


class Open(NamedTuple):
    """A hypothesis that goes on; `row` is that of its prefix without the newest token."""

    tokens: tuple[int, ...]
    total: float
    progress: Progress
    row: int


def constrained_search(
    stepper: Stepper,
    limit: int,
    phrases: Sequence[Phrase],
    *,
    beam_size: int,
    bos_id: int,
    eos_id: int,
    alpha: float = 1.0,
) -> list[Hypothesis]:
    """The best hypotheses that contain all phrases, best first, at most `beam_size`; none if the limit is too short.

    The stepper starts with one row.
    """
    needed = sum(map(len, phrases))
    finished: list[Hypothesis] = []
    chosen = [Open((), 0.0, Progress(), 0)]
    newest = torch.tensor([bos_id])
    for length in range(1, limit + 1):
        log_probabilities = stepper.advance(newest)
        candidates = list(_candidates(chosen, log_probabilities, phrases, 2 * beam_size))
        for one in candidates:
            if one.tokens[-1] == eos_id and one.progress.count(phrases) == needed:
                score = one.total / length**alpha
                finished.append(Hypothesis(one.tokens, one.total, score, truncated=False))
        going_on = [one for one in candidates if one.tokens[-1] != eos_id]
        chosen = _shared_out(going_on, phrases, needed, beam_size)
        best = max((one.total for one in chosen if one.progress.count(phrases) == needed), default=0.0)
        if len(finished) >= beam_size and best / limit**alpha < min(_best(finished, beam_size)):
            break
        stepper.select(torch.tensor([one.row for one in chosen], device=log_probabilities.device), None)
        newest = torch.tensor([one.tokens[-1] for one in chosen])
    return sorted(finished, key=lambda hypothesis: -hypothesis.score)[:beam_size]


def _best(finished: Sequence[Hypothesis], count: int) -> list[float]:
    return sorted((hypothesis.score for hypothesis in finished), reverse=True)[:count]


def _candidates(chosen: Sequence[Open], log_probabilities: Tensor, phrases: Sequence[Phrase], k: int) -> Iterator[Open]:
    """Each hypothesis with each of its k most probable tokens, and with those that write more of the phrases."""
    likeliest = top(log_probabilities, k).tolist()
    for row, hypothesis in enumerate(chosen):
        tokens = sorted({*likeliest[row], *hypothesis.progress.ways_on(phrases)})
        gains = log_probabilities[row, tokens].tolist()
        for token, gain in zip(tokens, gains, strict=True):
            progress = hypothesis.progress.after(token, phrases)
            yield Open((*hypothesis.tokens, token), hypothesis.total + gain, progress, row)


def _shared_out(candidates: Sequence[Open], phrases: Sequence[Phrase], needed: int, beam_size: int) -> list[Open]:
    """The best of every bank, and the best of all in the places that are left."""
    ranked = sorted(candidates, key=lambda one: -one.total)
    places = beam_size + needed
    share = max(1, places // (needed + 1))
    taken: list[Open] = []
    for count in range(needed + 1):
        bank = [one for one in ranked if one.progress.count(phrases) == count]
        taken += bank[:share]
    held = {id(one) for one in taken}
    rest = [one for one in ranked if id(one) not in held]
    return taken + rest[: max(0, places - len(taken))]
