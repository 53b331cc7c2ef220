"""What a target token costs by the length of the target: with and without cache, fused and explicit attention."""

from typing import Any

import torch
from torch import Tensor

from seq2seq.benchmark.machine import Stopwatch, forget_peak, peak_memory
from seq2seq.checkpoint import load_model
from seq2seq.model import attention

LENGTHS = (16, 32, 64, 128, 256)
SOURCE = 32  # source tokens
WAYS = {  # contender -> with a cache, by the fused kernel
    "cache-fused": (True, True),
    "cache-explicit": (True, False),
    "prefix-fused": (False, True),
    "prefix-explicit": (False, False),
}
Values = dict[str, Any]


def explicit(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The output of the formula."""
    return attention.attend(q, k, v, mask)[0]


class Lengths:
    """One way to generate; attention is switched in this process alone."""

    def __init__(self, way: str, model: str | None, rows: int) -> None:
        self.cached, fused = WAYS[way]
        vars(attention)["attend_fastest"] = attention.attend_fused if fused else explicit
        loaded = load_model(model)
        self.model, self.tokenizer = loaded.model, loaded.tokenizer
        generator = torch.Generator().manual_seed(1)
        words = torch.randint(self.tokenizer.eos_id + 1, len(self.tokenizer), (rows, SOURCE), generator=generator)
        self.src = words.index_fill(1, torch.tensor([SOURCE - 1]), self.tokenizer.eos_id)  # (B, S)
        self.first = torch.full((rows,), self.tokenizer.bos_id)
        self.turn({"length": 4})
        self.facts: Values = {"threads": torch.get_num_threads(), "rows": rows, "source_tokens": SOURCE}
        forget_peak()
        self.before = peak_memory()

    @torch.inference_mode()
    def turn(self, order: Values) -> Values:
        """Translations of just this length, greedily, whatever the model would say of their end.

        Lengths come in rising order, so in the first round the peak of memory is this length's.
        """
        length = order["length"]
        with Stopwatch() as watch:
            tokens = self._with_cache(length) if self.cached else self._without_cache(length)
        assert tokens.shape == (self.src.size(0), length)
        measured = watch.measured() | {"milliseconds": 1000 * watch.seconds / length}
        if order.get("round") == 1:
            measured["peak_mb"] = (peak_memory() - self.before) / 2**20
        return measured

    def _with_cache(self, length: int) -> Tensor:
        state, tokens = self.model.start(self.src), [self.first]
        for _ in range(length):
            tokens.append(self._choose(self.model.step(tokens[-1], state)))
        return torch.stack(tokens[1:], dim=1)

    def _without_cache(self, length: int) -> Tensor:
        memory, mask = self.model.encode(self.src), self.model.source_mask(self.src)
        tokens = self.first[:, None]  # (B, 1)
        for _ in range(length):
            hidden = self.model.decode(tokens, memory, mask)[:, -1]  # (B, D)
            tokens = torch.cat([tokens, self._choose(self.model.logits(hidden))[:, None]], dim=1)
        return tokens[:, 1:]

    def _choose(self, logits: Tensor) -> Tensor:
        """The best that is a word: no special id."""
        special = self.tokenizer.eos_id + 1
        return logits[:, special:].argmax(dim=-1) + special

    def finish(self) -> Values:
        """Nothing more."""
        return {}
