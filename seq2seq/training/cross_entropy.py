"""Label-smoothed cross-entropy of a tied output layer, without ever holding all scores over the vocabulary.

Shapes: N target tokens, D d_model, V vocabulary, C tokens of one chunk.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

CHUNK = {"cpu": 4 * 2**20, "cuda": 128 * 2**20}  # scores at a time; on a CPU what its cache holds
TINY = 1e-38  # a probability below it counts as this


class _ChunkedCrossEntropy(torch.autograd.Function):
    """The loss and, in the same pass over the scores, its gradients.

    With z = W h the scores of a token, p = softmax(z), t the target and e the smoothing,

        loss = log sum exp(z) - (1 - e) z_t - e mean(z),    d loss / d z = p - (1 - e) [v = t] - e / V.

    Scores are made, used for loss and both gradients, and dropped, chunk by chunk (as in Hsu et al. 2024,
    "Liger Kernel", and Wijmans et al. 2024, "Cut your losses"). The smoothing's share does not need them at all:
    mean(z) = mean(W) h, and its gradient is the same for every entry.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, target: Tensor, smoothing: float, dtype: torch.dtype
    ) -> Tensor:
        vocabulary = weight.size(0)
        h, w = hidden.to(dtype), weight.to(dtype)
        grad_hidden, grad_weight = torch.empty_like(hidden), torch.zeros_like(weight)
        total = torch.zeros((), dtype=weight.dtype, device=weight.device)
        rows = max(1, CHUNK[h.device.type] // vocabulary)
        for chunk in range(0, len(h), rows):
            part, wanted = h[chunk : chunk + rows], target[chunk : chunk + rows, None]
            p = (part @ w.T).softmax(dim=-1)  # (C, V)
            of_target = p.gather(1, wanted)  # (C, 1)
            total -= of_target.to(weight.dtype).clamp_min(TINY).log().sum()
            p.scatter_(1, wanted, of_target - (1 - smoothing))
            grad_hidden[chunk : chunk + rows] = p @ w
            grad_weight += p.T @ part
        if smoothing:
            hidden, mean = hidden.to(weight.dtype), weight.mean(dim=0)
            total += smoothing * (hidden * (weight[target] - mean)).sum()
            grad_hidden -= smoothing * mean
            grad_weight -= smoothing / vocabulary * hidden.sum(dim=0)
        ctx.save_for_backward(grad_hidden, grad_weight)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        grad_hidden, grad_weight = ctx.saved_tensors
        return grad_hidden * grad, grad_weight * grad, None, None, None


def summed_cross_entropy(hidden: Tensor, weight: Tensor, target: Tensor, smoothing: float) -> Tensor:
    """Label-smoothed cross-entropy (Szegedy et al. 2016, section 7) in nats, summed over tokens.

    hidden (N, D), weight (V, D) the tied embedding, target (N,) -> a scalar. Products are taken in autocast's
    precision where that is on, sums in the weight's own.
    """
    kind = hidden.device.type
    if torch.is_grad_enabled():
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype
        with torch.autocast(kind, enabled=False):
            return _ChunkedCrossEntropy.apply(hidden, weight, target, smoothing, dtype)  # type: ignore[no-any-return, no-untyped-call]
    return functional.cross_entropy(
        (hidden @ weight.T).to(weight.dtype), target, label_smoothing=smoothing, reduction="sum"
    )
