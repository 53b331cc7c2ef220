"""Whole trainings on sixty sentence pairs, made small and quiet, for the tests of loop, resume and faults."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from small import random_model, tokenizer

from seq2seq.config import Recipe, TrainConfig
from seq2seq.training import loop, metrics, validation
from seq2seq.training.distributed import Group
from seq2seq.training.metrics import read_metrics
from seq2seq.training.objective import make_optimiser
from seq2seq.training.run import Run, prepare
from seq2seq.training.state import MovingAverage, Progress, TrainingState

UPDATES = 30


class PowerCutError(Exception):
    """Ends a run at once."""


@contextmanager
def small_and_quiet() -> Iterator[pytest.MonkeyPatch]:
    """A line on training every five updates, no TensorBoard, and a text in place of the picture of the curves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "LOG_EVERY", 5)
        patch.setattr(metrics, "_tensorboard", lambda folder, first: None)
        patch.setattr(validation, "curves_png", lambda rows: f"picture of {len(rows)} lines".encode())
        yield patch


def prepared(recipe: Recipe, folder: Path) -> Run:
    """A run before its first update."""
    folder.mkdir(parents=True, exist_ok=True)
    return prepare(recipe, folder, Group())


def watch(patch: pytest.MonkeyPatch, before: Callable[[int, float], None]) -> None:
    """Call `before` with number and learning rate of every update."""
    step = loop.train_step

    def watched(run, chunk, lr):
        before(run.state.progress.update + 1, lr)
        return step(run, chunk, lr)

    patch.setattr(loop, "train_step", watched)


@contextmanager
def power_cut_before(update: int) -> Iterator[None]:
    """What trains inside dies before that update, and must have come so far."""

    def check(number: int, lr: float) -> None:
        if number == update:
            raise PowerCutError

    with pytest.MonkeyPatch.context() as patch:
        watch(patch, check)
        with pytest.raises(PowerCutError):
            yield


def state_of(folder: Path, update: int = UPDATES) -> dict[str, Any]:
    return torch.load(folder / "checkpoints" / f"{update:08d}" / "state.pt", weights_only=True)


def rows(folder: Path) -> list[dict[str, float]]:
    """Metrics without what depends on the clock."""
    found = read_metrics(folder / "metrics.jsonl")
    return [{name: row[name] for name in row if name not in ("seconds", "tokens_per_second")} for row in found]


def same(one: Any, other: Any) -> bool:
    """Whether two nested structures are equal to the last bit."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def same_run(one: Path, other: Path, update: int = UPDATES) -> bool:
    """Whether two runs ended in the same state to the last bit, but for the clock, and left the same model."""
    states = [state_of(folder, update) for folder in (one, other)]
    for state in states:
        state["progress"]["seconds"] = 0
        state["progress"]["since_log"] = state["progress"]["since_log"][:2]
    weights = [(folder / "model/model.safetensors").read_bytes() for folder in (one, other)]
    return same(*states) and weights[0] == weights[1] and rows(one) == rows(other)


# A state without a run.

CONFIG = TrainConfig(learning_rate=0.01)
PROGRESS = Progress(8, 3, 4, "0123abcd", "bfloat16", 99, 1.5, 1234, (1.0, 2, 3.0), -2.5, 7, 2)


def started(seed: int = 0, **shape: Any) -> TrainingState:
    """The state of a random model after two updates, with a progress that has something in every field."""
    model = random_model(len(tokenizer()), seed, torch.float32, **shape).train()
    state = TrainingState(model, make_optimiser(model, CONFIG), MovingAverage(model, 0.5), replace(PROGRESS))
    torch.manual_seed(seed)
    for number in (1, 2):
        step(state, number)
    return state


def step(state: TrainingState, number: int) -> None:
    """An update towards random numbers, so that it depends on the random state."""
    sum((weight - torch.randn_like(weight)).square().sum() for weight in state.model.parameters()).backward()
    state.optimiser.step()
    state.optimiser.zero_grad()
    state.average.update(number)
