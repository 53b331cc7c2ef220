"""What a run needs to go on exactly: weights, optimiser, random state, position in the data, best score so far."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from seq2seq.training.objective import Optimisers


@dataclass
class Progress:
    """How far a run has come. With the recipe it decides every batch and learning rate to come."""

    update: int = 0
    epoch: int = 0
    batch: int = 0  # batches of this epoch that are done
    data: str = ""  # SHA-256 of the training and dev pairs
    precision: str = "float32"  # of matrix products; measured once where the recipe says auto
    updates: int | None = None  # planned in all; None until `train.minutes` has been turned into a number
    seconds: float = 0.0  # spent so far, over all sessions of the run
    tokens: int = 0  # target tokens seen
    since_log: tuple[float, int, float] = (0.0, 0, 0.0)  # summed loss and tokens since the last line, its seconds
    best: float | None = None
    best_update: int = 0
    since_best: int = 0  # validations without a better score


class MovingAverage:
    """Exponential moving average of the weights (Polyak averaging), warmed up so that it forgets the start."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self._live: list[Tensor] = list(model.parameters())
        self.weights = [weight.detach().clone() for weight in self._live]

    def update(self, update: int) -> None:
        """Move towards the live weights after update number `update` (from 1)."""
        decay = min(self.decay, (1 + update) / (10 + update))
        with torch.no_grad():
            torch._foreach_lerp_(self.weights, self._live, 1 - decay)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The model with the averaged weights in place of the live ones, rounded as they are saved.

        So a validation measures the very model that the run leaves behind.
        """
        live = [weight.detach().clone() for weight in self._live]
        with torch.no_grad():
            torch._foreach_copy_(self._live, [weight.half() for weight in self.weights])
        try:
            yield
        finally:
            with torch.no_grad():
                torch._foreach_copy_(self._live, live)


@dataclass
class TrainingState:
    """All that changes while a run goes on, but for the random numbers, which each process has of its own."""

    model: nn.Module
    optimiser: torch.optim.Optimizer | Optimisers
    average: MovingAverage
    progress: Progress

    def values(self) -> dict[str, Any]:
        """The state as tensors, numbers and texts."""
        return {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "average": self.average.weights,
            "progress": asdict(self.progress),
        }

    def restore(self, values: dict[str, Any]) -> None:
        """Go back to a state that `values` gave."""
        self.model.load_state_dict(values["model"])
        self.optimiser.load_state_dict(values["optimiser"])
        with torch.no_grad():
            torch._foreach_copy_(self.average.weights, values["average"])
        self.progress = Progress(**values["progress"])


RandomState = dict[str, Tensor]


def random_state() -> RandomState:
    """The state of this process's random numbers (dropout), on its processor and its GPU."""
    state = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state()
    return state


def restore_random(state: RandomState) -> None:
    """Go on with the random numbers where `random_state` was taken."""
    torch.set_rng_state(state["cpu"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])
