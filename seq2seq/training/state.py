"""What a run needs to go on exactly: weights, optimiser, random state, position in the data, best score so far."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from seq2seq.checkpoint import ModelInfo, save_model
from seq2seq.data.tokenizer import Tokenizer
from seq2seq.errors import UserError
from seq2seq.storage import discard, replacing

STATE = "state.pt"


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
        """The model with the averaged weights in place of the live ones."""
        live = [weight.detach().clone() for weight in self._live]
        with torch.no_grad():
            torch._foreach_copy_(self._live, self.weights)
        try:
            yield
        finally:
            with torch.no_grad():
                torch._foreach_copy_(self._live, live)


@dataclass
class TrainingState:
    """All that changes while a run goes on."""

    model: nn.Module
    optimiser: torch.optim.Optimizer
    average: MovingAverage
    progress: Progress

    def save(self, folder: Path, tokenizer: Tokenizer, info: ModelInfo, keep: int) -> None:
        """Write `folder/NNNNNNNN/`, a model folder with the averaged weights and the state beside it."""
        path = folder / f"{self.progress.update:08d}"
        with self.average.applied():
            weights = {name: value.clone() for name, value in self.model.state_dict().items()}
        with replacing(path) as temporary:
            save_model(temporary / "model", weights, tokenizer, info)
            for file in (temporary / "model").iterdir():
                file.rename(temporary / file.name)
            (temporary / "model").rmdir()
            torch.save(self._values(), temporary / STATE)
        for old in checkpoints(folder)[:-keep]:
            discard(old)

    def _values(self) -> dict[str, object]:
        values: dict[str, object] = {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "average": self.average.weights,
            "progress": asdict(self.progress),
            "random": torch.get_rng_state(),
        }
        if torch.cuda.is_available():
            values["random_cuda"] = torch.cuda.get_rng_state_all()
        return values

    def load(self, path: Path) -> None:
        """Go back to a saved state."""
        try:
            values = torch.load(path / STATE, map_location="cpu", weights_only=True)
            self.model.load_state_dict(values["model"])
            self.optimiser.load_state_dict(values["optimiser"])
            average: list[Tensor] = values["average"]
            torch._foreach_copy_(self.average.weights, average)
            self.progress = Progress(**values["progress"])
            torch.set_rng_state(values["random"])
            if "random_cuda" in values and torch.cuda.is_available():
                torch.cuda.set_rng_state_all(values["random_cuda"])
        except Exception as error:  # torch.load raises many kinds for a damaged file
            reason = str(error).strip().split("\n")[0]
            raise UserError(f"checkpoint {path} cannot be resumed from: {reason}") from None


def checkpoints(folder: Path) -> list[Path]:
    """Complete checkpoints of a run, oldest first."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if re.fullmatch(r"\d{8}", path.name) and (path / STATE).is_file())
