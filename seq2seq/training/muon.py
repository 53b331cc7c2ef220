"""Muon, an optimiser for matrices: momentum, then a step whose singular values are all alike (Jordan et al. 2024)."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the Newton-Schulz polynomial; Jordan et al. 2024
ITERATIONS = 5


class Muon(torch.optim.Optimizer):
    """Nesterov momentum made orthogonal, for 2D weights only.

    Torch's own iterates in bfloat16 whatever the processor: without instructions for it, a hundred times as slow as
    float32 (a whole update: five times). Here `dtype` says in what.
    """

    def __init__(
        self,
        weights: Iterable[nn.Parameter],
        lr: float,
        weight_decay: float,
        momentum: float = 0.95,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(weights, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})
        self.dtype = dtype

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Move every weight that has a gradient. Steps have the size of AdamW's: Liu et al. 2025, section 2.2."""
        for group in self.param_groups:
            for weights in _by_shape(group["params"]):
                steps = orthogonal(torch.stack([self._direction(one, group) for one in weights]), self.dtype)
                size = 0.2 * max(weights[0].shape) ** 0.5
                for weight, step in zip(weights, steps.to(weights[0].dtype), strict=True):
                    weight.mul_(1 - group["lr"] * group["weight_decay"]).add_(step, alpha=-group["lr"] * size)

    def _direction(self, weight: Tensor, group: dict[str, Any]) -> Tensor:
        """The gradient and its moving average, mixed as Nesterov has it; the average is kept."""
        gradient, state = weight.grad, self.state[weight]
        assert gradient is not None
        average = state.setdefault("momentum_buffer", torch.zeros_like(weight))
        average.lerp_(gradient, 1 - group["momentum"])
        return gradient.lerp(average, group["momentum"])


def _by_shape(weights: list[nn.Parameter]) -> Iterable[list[nn.Parameter]]:
    """Those with a gradient, one list a shape: they go through the iteration together."""
    shapes: dict[torch.Size, list[nn.Parameter]] = defaultdict(list)
    for weight in weights:
        if weight.grad is not None:
            shapes[weight.shape].append(weight)
    return shapes.values()


def orthogonal(matrices: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """(N, rows, columns) with singular values between about 0.7 and 1.2 and the singular vectors as they were.

    Newton-Schulz iteration on each matrix, divided by its Frobenius norm, lying on its longer side.
    """
    a, b, c = COEFFICIENTS
    upright = matrices.size(-2) > matrices.size(-1)
    x = matrices.to(dtype)
    x = x.mT if upright else x
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)
    for _ in range(ITERATIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if upright else x
