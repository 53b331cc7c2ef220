"""Learning rate, loss and one step of the optimiser: the small pure parts of the loop."""

import math
import time

import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2seq.config import TrainConfig
from seq2seq.data.batching import Batch
from seq2seq.model import Transformer
from seq2seq.training.cross_entropy import summed_cross_entropy


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


def summed_loss(model: Transformer, batch: Batch, smoothing: float) -> Tensor:
    """Label-smoothed cross-entropy of a batch in nats, summed over its target tokens."""
    hidden = model(batch.src, batch.tgt_in)  # (B, T, D)
    real = batch.tgt_out != model.pad_id
    return summed_cross_entropy(hidden[real], model.embedding.weight, batch.tgt_out[real], smoothing)


class Objective(nn.Module):
    """The loss of a model as a module, which is what DistributedDataParallel takes."""

    def __init__(self, model: Transformer, smoothing: float) -> None:
        super().__init__()
        self.model = model
        self.smoothing = smoothing

    def forward(self, batch: Batch) -> Tensor:
        """Summed loss of a batch, in nats."""
        return summed_loss(self.model, batch, self.smoothing)


def make_optimiser(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """AdamW with the Transformer's betas; weight decay on matrices only."""
    matrices = [weight for weight in model.parameters() if weight.dim() > 1]
    vectors = [weight for weight in model.parameters() if weight.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": config.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=config.learning_rate, betas=(0.9, 0.98), eps=1e-9, fused=True)


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
