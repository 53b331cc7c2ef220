"""Translations in an order that a model of the other direction has a say in: noisy-channel reranking.

A beam holds good translations that the model rates a little too low, and fluent ones that say something else. How
probable the source is, given a translation, tells them apart (Yee et al. 2019, "Simple and effective noisy channel
modeling for neural machine translation", without their language model).
"""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from seq2seq.errors import UserError
from seq2seq.translation.engine import Engine, Hypothesis

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from seq2seq.model import ModelTrace, Transformer
    from seq2seq.translation.constrained import Constraints

WEIGHT = 0.2  # of the source's log-probability a piece, beside the translation's score; chosen on Tatoeba's dev split


class Reranked(Engine):
    """An engine whose search ends with a look back by another; in all else it is the first one."""

    def __init__(self, engine: Engine, reverse: Engine, weight: float = WEIGHT) -> None:
        needed, given = (engine.info.target, engine.info.source), (reverse.info.source, reverse.info.target)
        if given != needed:
            raise UserError(f"{reverse.folder} translates {'-'.join(given)}: to rerank takes one of {'-'.join(needed)}")
        self._engine, self._reverse, self._weight = engine, reverse, weight
        self.info, self.tokenizer, self.folder = engine.info, engine.tokenizer, engine.folder

    @property
    def model(self) -> "Transformer":
        """See Engine."""
        return self._engine.model

    def search(self, sources: Sequence[Sequence[int]], beam_size: int, alpha: float) -> list[list[Hypothesis]]:
        """See Engine; the score of a hypothesis stays that of its own model."""
        found = self._engine.search(sources, beam_size, alpha)
        pairs = [(source, one) for source, hypotheses in zip(sources, found, strict=True) for one in hypotheses]
        back = iter(self._look_back(pairs))
        return [self._ordered(hypotheses, list(itertools.islice(back, len(hypotheses)))) for hypotheses in found]

    def constrained(
        self, source: Sequence[int], wanted: "Constraints", beam_size: int, alpha: float
    ) -> list[Hypothesis]:
        """See Engine."""
        found = self._engine.constrained(source, wanted, beam_size, alpha)
        return self._ordered(found, self._look_back([(source, one) for one in found]))

    def attention(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> "list[NDArray[np.float32]]":
        """See Engine."""
        return self._engine.attention(sources, targets)

    def likelihood(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> "list[NDArray[np.float32]]":
        """See Engine."""
        return self._engine.likelihood(sources, targets)

    def trace(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> "ModelTrace":
        """See Engine."""
        return self._engine.trace(sources, targets)

    def save(self, folder: Path) -> None:
        """See Engine; the model that looks back is not saved with it."""
        self._engine.save(folder)

    def _look_back(self, pairs: Sequence[tuple[Sequence[int], Hypothesis]]) -> list[float]:
        decode = self.tokenizer.decode
        texts = [(decode(list(source[:-1])), decode(list(one.tokens[:-1]))) for source, one in pairs]
        return look_back(self._reverse, texts)

    def _ordered(self, hypotheses: Sequence[Hypothesis], back: Sequence[float]) -> list[Hypothesis]:
        together = [one.score + self._weight * other for one, other in zip(hypotheses, back, strict=True)]
        order = sorted(range(len(hypotheses)), key=lambda place: -together[place])
        return [hypotheses[place] for place in order]


def look_back(reverse: Engine, pairs: Sequence[tuple[str, str]]) -> list[float]:
    """Log-probability of each source given its translation, by a model of the other direction: nats a piece."""
    encode, end = reverse.tokenizer.encode_all, [reverse.tokenizer.eos_id]
    sources, translations = ([ids + end for ids in encode([pair[side] for pair in pairs])] for side in (0, 1))
    return [float(one.mean()) for one in reverse.likelihood(translations, sources)]
