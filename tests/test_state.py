"""The state of a run: averaged weights, random numbers, and a way back to all of it."""

import copy

import pytest
import torch
from torch import nn
from trainings import PROGRESS, same, started, step

from seq2seq.training.state import MovingAverage, random_state, restore_random


def test_the_average_moves_as_its_formula_says():
    layer = nn.Linear(1, 1, bias=False)
    average = MovingAverage(layer, decay=0.25)
    start = layer.weight.item()
    with torch.no_grad():
        layer.weight.fill_(1.0)
    average.update(1)  # warmed up: (1 + 1) / (10 + 1) is below 0.25
    first = start * 2 / 11 + 1 - 2 / 11
    assert average.weights[0].item() == pytest.approx(first, rel=1e-5)
    average.update(100)  # 101 / 110 is above it
    assert average.weights[0].item() == pytest.approx(first * 0.25 + 0.75, rel=1e-5)


def test_a_decay_of_zero_follows_the_weights():
    layer = nn.Linear(2, 2)
    average = MovingAverage(layer, decay=0.0)
    nn.init.ones_(layer.weight)
    average.update(5)
    assert torch.equal(average.weights[0], torch.ones(2, 2))


def test_the_averaged_weights_stand_in_for_the_live_ones_and_give_way_again_even_after_an_error():
    layer = nn.Linear(2, 2)
    average = MovingAverage(layer, decay=0.5)
    nn.init.ones_(layer.weight)
    averaged = average.weights[0].half().float()  # as it would be saved

    def failing() -> None:
        with average.applied():
            assert torch.equal(layer.weight, averaged)
            raise ArithmeticError("while it was validated")

    with pytest.raises(ArithmeticError, match="while it was validated"):
        failing()
    assert torch.equal(layer.weight, torch.ones(2, 2))
    assert torch.equal(average.weights[0].half().float(), averaged)


def test_a_state_brings_everything_back():
    saved = started(seed=0)
    values, numbers = copy.deepcopy(saved.values()), random_state()
    step(saved, 9)
    after = torch.rand(3)

    other = started(seed=1)
    other.restore(values)
    restore_random(numbers)
    assert other.progress == PROGRESS
    step(other, 9)
    assert torch.equal(torch.rand(3), after)
    assert same(list(saved.model.parameters()), list(other.model.parameters()))
    assert same(saved.average.weights, other.average.weights)


def test_the_average_follows_the_weights_that_were_restored():
    state = started(seed=1)
    state.restore(started(seed=0).values())
    assert torch.equal(state.average._live[0], state.model.embedding.weight)
    assert torch.equal(state.average.weights[0], started(seed=0).average.weights[0])


def test_a_state_of_another_model_is_refused():
    with pytest.raises(RuntimeError, match="state_dict"):
        started().restore(started(ffn=32).values())
