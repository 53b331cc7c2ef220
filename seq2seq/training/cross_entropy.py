"""Label-smoothed cross-entropy of a tied output layer, without ever holding all scores over the vocabulary.

Shapes: P passes over the same tokens (1, or 2 that are to agree), N target tokens, D d_model, V vocabulary, C tokens of
one chunk.
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

    The loss is the mean over the passes. Two of them also pay for their disagreement (see `_disagreement`).
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        target: Tensor,
        smoothing: float,
        consistency: float,
        dtype: torch.dtype,
    ) -> Tensor:
        passes, vocabulary = hidden.size(0), weight.size(0)
        h, w = hidden.to(dtype), weight.to(dtype)
        grad_hidden, grad_weight = torch.empty_like(hidden), torch.zeros_like(weight)
        total = torch.zeros((), dtype=weight.dtype, device=weight.device)
        rows = max(1, CHUNK[h.device.type] // (passes * vocabulary))
        for chunk in range(0, len(target), rows):
            part = h[:, chunk : chunk + rows]  # (P, C, D)
            wanted = target[chunk : chunk + rows, None].expand(passes, -1, -1)
            z = part @ w.T  # (P, C, V)
            p = z.softmax(dim=-1)
            apart, slope = _disagreement(z, p) if consistency else (0.0, None)
            del z
            of_target = p.gather(2, wanted)  # (P, C, 1)
            total -= of_target.to(weight.dtype).clamp_min(TINY).log().sum()
            p.scatter_(2, wanted, of_target - (1 - smoothing))
            if slope is not None:
                total += passes * consistency / 4 * apart
                p += passes * consistency / 4 * slope
            grad_hidden[:, chunk : chunk + rows] = p @ w
            grad_weight += p.flatten(0, 1).T @ part.flatten(0, 1)
        if smoothing:
            hidden, mean = hidden.to(weight.dtype), weight.mean(dim=0)
            total += smoothing * (hidden * (weight[target] - mean)).sum()
            grad_hidden -= smoothing * mean
            grad_weight -= smoothing / vocabulary * hidden.sum(dim=(0, 1))
        if passes > 1:
            grad_hidden, grad_weight, total = grad_hidden / passes, grad_weight / passes, total / passes
        ctx.save_for_backward(grad_hidden, grad_weight)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        grad_hidden, grad_weight = ctx.saved_tensors
        return grad_hidden * grad, grad_weight * grad, None, None, None, None


def _disagreement(z: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
    """KL(p1 || p2) + KL(p2 || p1) of two passes, summed, and its gradient by their scores: z, p (2, C, V).

    As the normalisers cancel out, it is sum (p1 - p2) (z1 - z2), whose slope by z1 is

        (p1 - p2) + p1 (z1 - z2 - sum p1 (z1 - z2)).
    """
    apart, moved = z[0] - z[1], p[0] - p[1]
    slopes = [
        sign * moved + own * (sign * apart - (sign * own * apart).sum(dim=-1, keepdim=True))
        for sign, own in ((1, p[0]), (-1, p[1]))
    ]
    return (moved * apart).sum(), torch.stack(slopes)


def summed_cross_entropy(
    hidden: Tensor, weight: Tensor, target: Tensor, smoothing: float, consistency: float = 0.0
) -> Tensor:
    """Label-smoothed cross-entropy (Szegedy et al. 2016, section 7) in nats, summed over tokens.

    hidden (N, D), or (2, N, D) of two passes under other dropout, weight (V, D) the tied embedding, target (N,) -> a
    scalar. With two passes, the mean of both, and `consistency` / 4 times their divergence in both directions: half
    the loss of R-Drop (Liang et al. 2021, equation 4). Products are taken in autocast's precision where that is on,
    sums in the weight's own.
    """
    kind = hidden.device.type
    if torch.is_grad_enabled():
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype
        passes = hidden if hidden.dim() == 3 else hidden[None]
        with torch.autocast(kind, enabled=False):
            return _ChunkedCrossEntropy.apply(passes, weight, target, smoothing, consistency, dtype)  # type: ignore[no-any-return, no-untyped-call]
    return functional.cross_entropy(
        (hidden @ weight.T).to(weight.dtype), target, label_smoothing=smoothing, reduction="sum"
    )
