"""Several models with one tokenizer that translate together: the mean of their probabilities at every step."""

import math
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from seq2seq.checkpoint import LoadedModel
from seq2seq.errors import UserError
from seq2seq.translation.search import Stepper
from seq2seq.translation.torch_engine import TorchEngine


class EnsembleStepper:
    """Several step functions as one."""

    def __init__(self, steppers: Sequence[Stepper]) -> None:
        self.steppers = steppers

    def advance(self, tokens: Tensor) -> Tensor:
        """See Stepper; log-probabilities of the mean of the probabilities."""
        found = torch.stack([stepper.advance(tokens) for stepper in self.steppers])  # (models, R, V)
        return found.logsumexp(dim=0) - math.log(len(self.steppers))

    def select(self, rows: Tensor, sentences: Tensor | None) -> None:
        """See Stepper."""
        for stepper in self.steppers:
            stepper.select(rows, sentences)


class Ensemble(TorchEngine):
    """The first model's engine, whose search asks all the models; attention is the first one's."""

    def __init__(self, models: Sequence[LoadedModel], precision: str = "float32") -> None:
        first, *others = models
        super().__init__(first, precision)
        for other in others:
            if other.tokenizer.model != first.tokenizer.model:
                raise UserError(f"{other.folder} has another tokenizer than {first.folder}: they are no ensemble")
            if (other.info.source, other.info.target) != (first.info.source, first.info.target):
                raise UserError(f"{other.folder} translates between other languages than {first.folder}")
        self._others = [TorchEngine(other, precision) for other in others]

    def stepper(self, src: Tensor) -> Stepper:
        """See TorchEngine."""
        return EnsembleStepper([super().stepper(src), *(other.stepper(src) for other in self._others)])

    def save(self, folder: Path) -> None:
        """Refused: an ensemble is no model."""
        raise UserError("an ensemble is not one model that could be saved: distil it, or save each by itself")
