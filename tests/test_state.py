"""The state of a run: averaged weights, and a checkpoint that is whole, complete and kept in number."""

from pathlib import Path

import pytest
import torch
from small import loaded_model, model_info, random_model, tokenizer
from torch import nn

from seq2seq.checkpoint import load_model
from seq2seq.config import TrainConfig
from seq2seq.errors import UserError
from seq2seq.training import state as state_module
from seq2seq.training.objective import make_optimiser
from seq2seq.training.state import MovingAverage, Progress, TrainingState, checkpoints

CONFIG = TrainConfig(learning_rate=0.01)


def started(seed: int = 0, update: int = 0) -> TrainingState:
    """A run of a random model after two updates, with a progress that has something in every field."""
    model = random_model(len(tokenizer()), seed, torch.float32).train()
    state = TrainingState(
        model,
        make_optimiser(model, CONFIG),
        MovingAverage(model, 0.5),
        Progress(update, 3, 4, "bfloat16", 99, 1.5, 1234, -2.5, 7, 2),
    )
    for number in (1, 2):
        step(state, number)
    return state


def step(state: TrainingState, number: int) -> None:
    """An update towards random numbers, so that it depends on the random state."""
    sum((weight - torch.randn_like(weight)).square().sum() for weight in state.model.parameters()).backward()
    state.optimiser.step()
    state.optimiser.zero_grad()
    state.average.update(number)


def save(state: TrainingState, folder: Path, update: int, keep: int = 2) -> Path:
    state.progress.update = update
    state.save(folder, tokenizer(), model_info(state.model.config), keep)
    return folder / f"{update:08d}"


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
    averaged = average.weights[0].clone()

    def failing() -> None:
        with average.applied():
            assert torch.equal(layer.weight, averaged)
            raise ArithmeticError("while it was validated")

    with pytest.raises(ArithmeticError, match="while it was validated"):
        failing()
    assert torch.equal(layer.weight, torch.ones(2, 2))
    assert torch.equal(average.weights[0], averaged)


def test_a_checkpoint_brings_everything_back(tmp_path):
    saved = started(seed=0)
    path = save(saved, tmp_path, update=8)
    step(saved, 9)
    after = torch.rand(3)

    other = started(seed=1)
    other.load(path)
    assert other.progress == Progress(8, 3, 4, "bfloat16", 99, 1.5, 1234, -2.5, 7, 2)
    step(other, 9)
    assert torch.equal(torch.rand(3), after)
    for one, two in zip(saved.model.parameters(), other.model.parameters(), strict=True):
        assert torch.equal(one, two)
    for one, two in zip(saved.average.weights, other.average.weights, strict=True):
        assert torch.equal(one, two)
    assert torch.equal(saved.average._live[0], saved.model.embedding.weight)


def test_a_checkpoint_is_a_model_folder_with_the_averaged_weights(tmp_path):
    state = started()
    live = state.model.embedding.weight.clone()
    loaded = load_model(save(state, tmp_path, update=8))
    assert torch.equal(loaded.model.embedding.weight, state.average.weights[0].half().float())
    assert not torch.allclose(state.average.weights[0], live, atol=1e-3)
    assert torch.equal(state.model.embedding.weight, live)  # and training goes on with its own


def test_the_newest_checkpoints_are_kept(tmp_path):
    state = started()
    names = []
    for update in (10, 20, 30, 100):
        save(state, tmp_path, update, keep=2)
        names.append([path.name for path in checkpoints(tmp_path)])
    assert names == [
        ["00000010"],
        ["00000010", "00000020"],
        ["00000020", "00000030"],
        ["00000030", "00000100"],
    ]
    assert len(list(tmp_path.iterdir())) == 2


def test_a_checkpoint_of_the_same_update_is_replaced(tmp_path):
    save(started(seed=0), tmp_path, update=8)
    second = started(seed=1)
    save(second, tmp_path, update=8)
    assert len(list(tmp_path.iterdir())) == 1
    other = started(seed=0)
    other.load(tmp_path / "00000008")
    assert torch.equal(other.model.embedding.weight, second.model.embedding.weight)


def test_only_complete_checkpoints_are_counted(tmp_path):
    path = save(started(), tmp_path, update=8)
    (tmp_path / "00000009").mkdir()  # no state in it
    (tmp_path / ".00000010.1a2b3c4d.new").mkdir()
    (tmp_path / "best").mkdir()
    assert checkpoints(tmp_path) == [path]
    assert checkpoints(tmp_path / "nowhere") == []


def test_a_failed_save_leaves_the_checkpoints_as_they_were(tmp_path, monkeypatch):
    state = started()
    path = save(state, tmp_path, update=8)
    before = {file.name: file.read_bytes() for file in path.iterdir()}

    def full_disk(values, target):
        Path(target).write_bytes(b"the beginning of")
        raise OSError("No space left on device")

    monkeypatch.setattr(torch, "save", full_disk)
    with pytest.raises(OSError, match="No space left"):
        save(state, tmp_path, update=9, keep=1)
    assert list(tmp_path.iterdir()) == [path]
    assert {file.name: file.read_bytes() for file in path.iterdir()} == before


def truncated(path: Path) -> None:
    file = path / state_module.STATE
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def emptied(path: Path) -> None:
    (path / state_module.STATE).write_bytes(b"")


def unlike(path: Path) -> None:
    torch.save({"model": {}}, path / state_module.STATE)


def pickled(path: Path) -> None:
    torch.save({"model": Path("an object of any class")}, path / state_module.STATE)


@pytest.mark.parametrize("damage", [truncated, emptied, unlike, pickled])
def test_a_damaged_state_is_refused_by_name(tmp_path, damage):
    state = started()
    path = save(state, tmp_path, update=8)
    damage(path)
    with pytest.raises(UserError, match=r"checkpoint .*00000008 cannot be resumed from: ") as caught:
        state.load(path)
    assert "\n" not in str(caught.value)


def test_a_state_of_another_model_is_refused(tmp_path):
    path = save(started(), tmp_path, update=8)
    model = loaded_model(ffn=32).model.requires_grad_(True)
    other = TrainingState(model, make_optimiser(model, CONFIG), MovingAverage(model, 0.5), Progress())
    with pytest.raises(UserError, match=r"checkpoint .*00000008 cannot be resumed from: .*state_dict"):
        other.load(path)
