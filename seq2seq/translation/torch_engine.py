"""The reference engine: the search and the forced pass in torch."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seq2seq.checkpoint import LoadedModel, copy_model
from seq2seq.data.batching import pad
from seq2seq.data.cutting import cut
from seq2seq.memory import keep_freed_memory
from seq2seq.model import ModelTrace, Transformer
from seq2seq.translation.constrained import Constraints, constrained_search
from seq2seq.translation.engine import Engine, Hypothesis
from seq2seq.translation.search import ModelStepper, Stepper, beam_search, greedy_search

BATCH_TOKENS = 16_384  # padded source tokens, times beam, that are decoded together
FORCED_TOKENS = 2_048  # padded tokens whose scores over the whole vocabulary are held at once


class TorchEngine(Engine):
    """A loaded model with its search. Stateless between calls, so threads may share it."""

    def __init__(self, loaded: LoadedModel, precision: str = "float32") -> None:
        self.tokenizer, self.info, self.folder = loaded.tokenizer, loaded.info, loaded.folder
        self._loaded = loaded
        keep_freed_memory()
        # What searches; what is looked into stays in float32.
        self._searched = loaded.model if precision == "float32" else deepcopy(loaded.model).to(torch.bfloat16)

    @property
    def model(self) -> Transformer:
        """See Engine."""
        return self._loaded.model

    @torch.inference_mode()
    def search(self, sources: Sequence[Sequence[int]], beam_size: int, alpha: float) -> list[list[Hypothesis]]:
        """See Engine; batches are cut by length."""
        results: list[list[Hypothesis]] = [[] for _ in sources]
        lengths = [len(source) for source in sources]
        order = sorted(range(len(sources)), key=lengths.__getitem__)
        for indices in cut(order, lengths, max(1, BATCH_TOKENS // beam_size)):
            found = self._search([sources[index] for index in indices], beam_size, alpha)
            for index, hypotheses in zip(indices, found, strict=True):
                results[index] = hypotheses
        return results

    def _search(self, sources: list[Sequence[int]], beam_size: int, alpha: float) -> list[list[Hypothesis]]:
        """One batch."""
        bos, eos = self.tokenizer.bos_id, self.tokenizer.eos_id
        limits = [self.limit(source) for source in sources]
        stepper = self.stepper(self._pad(sources))
        if beam_size == 1:
            return [[best] for best in greedy_search(stepper, limits, bos_id=bos, eos_id=eos, alpha=alpha)]
        return beam_search(stepper, limits, beam_size=beam_size, bos_id=bos, eos_id=eos, alpha=alpha)

    @torch.inference_mode()
    def constrained(self, source: Sequence[int], wanted: Constraints, beam_size: int, alpha: float) -> list[Hypothesis]:
        """See Engine."""
        ends = {"bos_id": self.tokenizer.bos_id, "eos_id": self.tokenizer.eos_id}
        stepper = self.stepper(self._pad([source]))
        return constrained_search(stepper, self.limit(source), wanted, beam_size=beam_size, alpha=alpha, **ends)

    def stepper(self, src: Tensor) -> Stepper:
        """The step function of a search: src (N, S), padded."""
        return ModelStepper(self._searched, src)

    def _pad(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Token ids, padded, where the model is."""
        return pad(rows, self.tokenizer.pad_id).to(self.model.embedding.weight.device)

    @torch.inference_mode()
    def attention(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[NDArray[np.float32]]:
        """See Engine; by the explicit formula, in batches cut by length."""
        maps: list[NDArray[np.float32]] = [np.zeros(0, np.float32)] * len(sources)
        for indices in _by_length(sources, targets, BATCH_TOKENS):
            trace = self.trace([sources[i] for i in indices], [targets[i] for i in indices])
            cross = torch.stack([layer.A for layer in trace.cross], dim=1)  # (B, L, H, T, S)
            weights = cross.float().cpu().numpy()
            for row, i in enumerate(indices):  # copied, or each would keep its whole padded batch
                maps[i] = weights[row, :, :, : len(targets[i]), : len(sources[i])].copy()
        return maps

    @torch.inference_mode()
    def likelihood(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[NDArray[np.float32]]:
        """See Engine; in batches cut by length, whose scores over the vocabulary are held one batch at a time."""
        found: list[NDArray[np.float32]] = [np.zeros(0, np.float32)] * len(sources)
        for indices in _by_length(sources, targets, FORCED_TOKENS):
            src, tgt = self._pad([sources[i] for i in indices]), self._pad([targets[i] for i in indices])
            tgt_in = self._decoder_input([targets[i] for i in indices])
            scores = self.model.logits(self.model(src, tgt_in)).float()  # (B, T, V)
            of_target = scores.gather(2, tgt[:, :, None])[:, :, 0] - scores.logsumexp(dim=2)
            for row, i in enumerate(indices):
                found[i] = of_target[row, : len(targets[i])].cpu().numpy()
        return found

    @torch.inference_mode()
    def trace(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> ModelTrace:
        """See Engine."""
        return self.model.trace(self._pad(sources), self._decoder_input(targets))

    def _decoder_input(self, targets: Sequence[Sequence[int]]) -> Tensor:
        """What the decoder reads to predict these targets: `<s>`, and all of them but the last token."""
        return self._pad([[self.tokenizer.bos_id, *target[:-1]] for target in targets])

    def save(self, folder: Path) -> None:
        """See Engine."""
        copy_model(self._loaded, folder)


def _by_length(
    sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], batch_tokens: int
) -> Iterator[list[int]]:
    """Which pairs are forced together: those of like length, their longer side padded, within a budget."""
    lengths = [max(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
    return cut(sorted(range(len(sources)), key=lengths.__getitem__), lengths, batch_tokens)
