"""Learning rate, loss and one step of the optimiser: the small pure parts of the loop."""

import math
import time
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2seq.config import TrainConfig
from seq2seq.data.batching import Batch
from seq2seq.model import Transformer
from seq2seq.training.cross_entropy import summed_cross_entropy
from seq2seq.training.guidance import HEAD, STEP, guided_head, head_scores, link_loss
from seq2seq.training.muon import Muon


def lr_at(update: int, config: TrainConfig, updates: int | None) -> float:
    """Learning rate of update number `update` (from 1), given the number of updates in all.

    Linear warm-up to the peak; then either 1/sqrt(update) (Vaswani et al. 2017, section 5.3), or a line or half a
    cosine that reaches zero just after the last update. While `updates` is not known yet the peak is held.
    """
    peak, warmup = config.learning_rate, config.warmup
    if update <= warmup:
        return peak * update / warmup
    if config.schedule == "inverse_sqrt":
        return peak * math.sqrt(max(warmup, 1) / update)
    if updates is None:
        return peak
    left = max(0.0, (updates + 1 - update) / max(1, updates + 1 - warmup))
    return peak * (left if config.schedule == "linear" else 0.5 * (1 - math.cos(math.pi * left)))


def summed_loss(model: Transformer, batch: Batch, smoothing: float, consistency: float = 0.0) -> Tensor:
    """Label-smoothed cross-entropy of a batch in nats, summed over its target tokens.

    With `consistency` the batch holds every pair twice (`Batch.twice`), and the loss is that of one of them.
    """
    hidden = model(batch.src, batch.tgt_in)  # (B, T, D)
    real = batch.tgt_out != model.pad_id
    hidden, target = hidden[real], batch.tgt_out[real]  # (N, D), (N,)
    if consistency:
        hidden, target = hidden.unflatten(0, (2, len(hidden) // 2)), target[: len(target) // 2]
    return summed_cross_entropy(hidden, model.embedding.weight, target, smoothing, consistency)


class Objective(nn.Module):
    """The loss of a model as a module, which is what DistributedDataParallel takes."""

    def __init__(
        self, model: Transformer, smoothing: float, guided_alignment: float = 0.0, consistency: float = 0.0
    ) -> None:
        super().__init__()
        self.model = model
        self.smoothing, self.guided_alignment, self.consistency = smoothing, guided_alignment, consistency
        self.guided_layer = guided_head(model.config).layer

    def forward(self, batch: Batch) -> Tensor:
        """Summed loss of a batch, in nats; that of links, if the batch has them, times `guided_alignment`."""
        batch = batch.twice() if self.consistency else batch
        if batch.links is None:
            return summed_loss(self.model, batch, self.smoothing, self.consistency)
        with head_scores(self.model, self.guided_layer, HEAD) as seen:
            loss = summed_loss(self.model, batch, self.smoothing, self.consistency)
        weight = self.guided_alignment / (2 if self.consistency else 1)
        return loss + weight * link_loss(seen[0], batch.links, STEP)


class Optimisers:
    """Several optimisers, each with weights of its own, as one."""

    def __init__(self, *parts: torch.optim.Optimizer) -> None:
        self.parts = parts

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The groups of all of them."""
        return [group for part in self.parts for group in part.param_groups]

    def step(self) -> None:
        """One step of each."""
        for part in self.parts:
            part.step()

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for part in self.parts:
            part.zero_grad()

    def state_dict(self) -> dict[str, Any]:
        """The state of each, in order."""
        return {"parts": [part.state_dict() for part in self.parts]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go back to what `state_dict` gave."""
        for part, values in zip(self.parts, state["parts"], strict=True):
            part.load_state_dict(values)


def make_optimiser(
    model: nn.Module, config: TrainConfig, precision: str = "float32"
) -> "torch.optim.Optimizer | Optimisers":
    """AdamW with the Transformer's betas; or Muon for the matrices of the layers, and AdamW for the rest.

    Their steps have the same size, so one learning rate serves both. Weight decay is for matrices only.
    `precision` is that of the run's matrix products, Muon's included.
    """
    embeddings = {weight for part in model.modules() if isinstance(part, nn.Embedding) for weight in part.parameters()}
    matrices = [weight for weight in model.parameters() if weight.dim() > 1]
    vectors = [weight for weight in model.parameters() if weight.dim() <= 1]
    layers = [weight for weight in matrices if config.optimiser == "muon" and weight not in embeddings]
    rest = [weight for weight in matrices if config.optimiser == "adamw" or weight in embeddings]
    groups = [{"params": rest, "weight_decay": config.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    adamw = torch.optim.AdamW(groups, lr=config.learning_rate, betas=(0.9, 0.98), eps=1e-9, fused=True)
    if config.optimiser == "adamw":
        return adamw
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    return Optimisers(Muon(layers, config.learning_rate, config.weight_decay, dtype=dtype), adamw)


def pick_precision(config: TrainConfig, device: torch.device) -> str:
    """The precision asked for; on `auto` bfloat16 where the device has it and it is the faster."""
    if config.precision != "auto":
        return config.precision
    if device.type == "cuda":
        faster = torch.cuda.is_bf16_supported()
    else:
        faster = torch.cpu._is_avx512_bf16_supported() and _bfloat16_wins()
    return "bfloat16" if faster else "float32"


def _bfloat16_wins() -> bool:
    """Whether this processor multiplies matrices at least 1.2 times as fast in bfloat16 as in float32.

    Having the instructions says little: by measurement they are twice as fast on some processors and half as fast
    on others.
    """
    seconds = {}
    for dtype in (torch.float32, torch.bfloat16):
        x, weight = torch.ones(1024, 512, dtype=dtype), torch.ones(512, 512, dtype=dtype)
        times = []
        for _ in range(6):
            started = time.perf_counter()
            functional.linear(x, weight)
            times.append(time.perf_counter() - started)
        seconds[dtype] = min(times)
    return seconds[torch.float32] > 1.2 * seconds[torch.bfloat16]
