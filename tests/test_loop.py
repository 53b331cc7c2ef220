"""A whole training on sixty sentence pairs: it learns, steps as it should, and keeps to its time."""

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from small import DEV, TRAIN, shape, tiny_recipe
from trainings import UPDATES, power_cut_before, prepared, rows, same, state_of, watch

from seq2seq.checkpoint import load_model
from seq2seq.data.batching import Batch, collate
from seq2seq.data.encoding import encode_pairs
from seq2seq.data.tokenizer import BOS, PAD
from seq2seq.errors import UserError
from seq2seq.training import loop, validation
from seq2seq.training import run as run_module
from seq2seq.training.checkpoints import checkpoints
from seq2seq.training.loop import Part, stream, train, train_step
from seq2seq.training.objective import Objective, lr_at, summed_loss
from seq2seq.training.run import Run, pick_device
from seq2seq.training.state import MovingAverage, Progress

pytestmark = pytest.mark.usefixtures("quiet")
curves_png = validation.curves_png


# It learns.


def test_the_loss_falls_on_train_and_on_dev(unbroken):
    losses = [row["loss"] for row in rows(unbroken) if "loss" in row]
    dev_losses = [row["dev_loss"] for row in rows(unbroken) if "dev_loss" in row]
    assert len(losses) == UPDATES / 5
    assert losses[-1] < 0.7 * losses[0]
    assert len(dev_losses) == UPDATES / 10
    assert dev_losses == sorted(dev_losses, reverse=True)


def test_the_perplexity_is_the_exponential_of_the_loss(unbroken):
    for row in rows(unbroken):
        if "dev_loss" in row:
            assert row["dev_perplexity"] == pytest.approx(math.exp(row["dev_loss"]), rel=1e-4)


def test_the_learning_rates_written_down_are_those_of_the_schedule(unbroken, recipe):
    found = {row["update"]: row["learning_rate"] for row in rows(unbroken) if "loss" in row}
    assert found == pytest.approx({u: lr_at(u, recipe.train, UPDATES) for u in range(5, 31, 5)}, abs=1e-6)


def test_the_newest_checkpoints_and_the_best_model_are_kept(unbroken):
    assert [path.name for path in checkpoints(unbroken / "checkpoints")] == ["00000020", "00000030"]
    best, last = load_model(unbroken / "model").model, load_model(unbroken / "checkpoints/00000030").model
    assert torch.equal(best.embedding.weight, last.embedding.weight)  # the last validation was the best
    assert state_of(unbroken)["progress"]["best_update"] == UPDATES


def test_a_run_ends_with_its_own_recipe_beside_it(unbroken, recipe):
    assert json.loads((unbroken / "recipe.json").read_text(encoding="utf-8")) == recipe.model_dump(mode="json")


def test_the_best_model_has_a_card_a_layer_to_align_by_and_the_curves(unbroken):
    card = (unbroken / "model/README.md").read_text(encoding="utf-8")
    assert "30 updates" in card
    assert '"batch_tokens": 128' in card
    assert load_model(unbroken / "model").info.alignment.layer == 0  # there is but one
    for folder in (unbroken, unbroken / "model"):
        assert (folder / "curves.png").read_bytes() == b"picture of 9 lines"


def test_the_curves_are_a_picture(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(validation, "curves_png", curves_png)
    train(tiny_recipe(corpus, updates=1), tmp_path / "run")
    assert (tmp_path / "run/curves.png").read_bytes().startswith(b"\x89PNG")


def test_translations_of_dev_sentences_are_scored_and_decide_which_model_is_best(corpus, tmp_path, monkeypatch):
    asked = []
    bleu = iter([5.0, 9.0, 7.0])

    def scored(hypotheses, references):
        asked.append((len(hypotheses), references))
        return SimpleNamespace(bleu=next(bleu))

    monkeypatch.setattr(validation, "score", scored)
    train(tiny_recipe(corpus, updates=6, validate_every=2, validation_sentences=4, keep=3), tmp_path / "run")
    assert asked == [(4, [(DEV[len(DEV) * quarter // 4].target,) for quarter in range(4)])] * 3
    assert [row["dev_bleu"] for row in rows(tmp_path / "run") if "dev_bleu" in row] == [5.0, 9.0, 7.0]
    best = load_model(tmp_path / "run/model").model.embedding.weight
    second = load_model(tmp_path / "run/checkpoints/00000004").model.embedding.weight
    assert torch.equal(best, second)


# What it refuses.


def test_without_a_dev_pair_there_is_no_training(corpus, tmp_path):
    (tmp_path / "two.tsv").write_text("one word\tun mot\ntwo words\tdeux mots\n", encoding="utf-8")
    recipe = tiny_recipe(corpus)
    data = recipe.data.model_copy(update={"train": [str(tmp_path / "two.tsv")], "dev": []})
    with pytest.raises(UserError, match=r"data\.dev: there is no dev pair"):
        train(recipe.model_copy(update={"data": data}), tmp_path / "run")


def test_a_loss_that_is_no_number_ends_the_run_by_name(recipe, tmp_path, monkeypatch):
    monkeypatch.setattr(Objective, "forward", lambda self, batch: self.model.embedding.weight.sum() * math.nan)
    with pytest.raises(UserError, match=r"the loss is nan at update 1: lower train\.learning_rate"):
        train(recipe, tmp_path / "run")


def test_a_device_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UserError, match=r"train\.device = 'cuda', but torch finds no CUDA device"):
        pick_device(tiny_recipe(Path(), device="cuda").train)
    assert pick_device(tiny_recipe(Path(), device="auto").train) == torch.device("cpu")


# One update.


@pytest.fixture
def run(corpus: Path, tmp_path: Path) -> Run:
    """A run before its first update: no dropout, double precision, plain gradient descent."""
    recipe = tiny_recipe(corpus, model=shape(encoder_layers=1, decoder_layers=1), clip_norm=1e9)
    run = prepared(recipe, tmp_path / "run")
    run.model.double()
    run.state.average = MovingAverage(run.model, 0.5)
    run.state.optimiser = torch.optim.SGD(run.model.parameters(), lr=1.0)
    return run


def batch_of(run: Run, start: int, stop: int) -> Part:
    batch = collate(encode_pairs(TRAIN[start:stop], run.tokenizer), PAD, BOS)
    return Part(batch, int((batch.tgt_out != PAD).sum()))


def update_of(run: Run, chunk: list[Part]) -> tuple[tuple[float, int, float], list[torch.Tensor]]:
    """What a step returns and by how much it moved every weight; the weights are put back."""
    before = [weight.detach().clone() for weight in run.model.parameters()]
    result = train_step(run, chunk, lr=1.0)
    moves = []
    with torch.no_grad():
        for weight, old in zip(run.model.parameters(), before, strict=True):
            moves.append(weight - old)
            weight.copy_(old)
    return result, moves


def test_accumulated_batches_make_the_update_of_one_large_batch(run):
    whole, expected = update_of(run, [batch_of(run, 0, 9)])
    parts, found = update_of(run, [batch_of(run, 0, 2), batch_of(run, 2, 9)])
    assert parts == pytest.approx(whole, rel=1e-6)
    assert max(move.abs().max().item() for move in expected) > 1e-2
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(other, one, atol=1e-6, rtol=1e-6)


def test_a_step_returns_the_summed_loss_and_counts_real_target_tokens(run):
    part = batch_of(run, 0, 9)
    (loss, tokens, _), _ = update_of(run, [part])
    assert tokens == sum(len(pair.tgt) for pair in encode_pairs(TRAIN[:9], run.tokenizer))
    assert tokens < part.batch.tgt_out.numel()
    assert loss == pytest.approx(summed_loss(run.model, part.batch, 0.1).item(), rel=1e-6)


def test_the_gradient_is_clipped_to_the_norm_of_the_recipe(run):
    batch = batch_of(run, 0, 9)
    (_, _, norm), free = update_of(run, [batch])
    assert norm == pytest.approx(torch.cat([move.flatten() for move in free]).norm().item(), rel=1e-5)
    limit = norm / 4
    run.recipe = run.recipe.model_copy(update={"train": run.recipe.train.model_copy(update={"clip_norm": limit})})
    (_, _, reported), clipped = update_of(run, [batch])
    assert reported == pytest.approx(norm)  # as it was before clipping
    assert torch.cat([move.flatten() for move in clipped]).norm().item() == pytest.approx(limit, rel=1e-4)


def test_the_recipe_accumulates_that_many_batches_an_update(corpus, tmp_path, monkeypatch):
    sizes = []
    step = loop.train_step

    def watched(run, chunk, lr):
        sizes.append(len(chunk))
        return step(run, chunk, lr)

    monkeypatch.setattr(loop, "train_step", watched)
    train(tiny_recipe(corpus, updates=4, accumulate=3), tmp_path / "run")
    assert sizes == [3, 3, 3, 3]
    progress = Progress(**state_of(tmp_path / "run", 4)["progress"])
    per_epoch = len(list(epoch_of(prepared(tiny_recipe(corpus), tmp_path / "another"))))
    assert progress.epoch * per_epoch + progress.batch == 12


def epoch_of(run: Run, epoch: int = 0, batch: int = 0) -> Iterator[Batch]:
    """The batches that are left of an epoch."""
    progress = run.state.progress
    progress.epoch, progress.batch = epoch, batch
    for part in stream(run):
        if progress.epoch > epoch:
            return
        yield part.batch


def test_every_pair_comes_once_an_epoch_in_another_order(run):
    orders = []
    for epoch in (0, 1):
        rows_ = [tuple(row) for batch in epoch_of(run, epoch) for row in batch.src.tolist()]
        orders.append([tuple(token for token in row if token != PAD) for row in rows_])
        assert sorted(orders[-1]) == sorted(tuple(pair.src) for pair in run.train)
    assert orders[0] != orders[1]


def test_the_stream_goes_on_from_a_position(run):
    whole, rest = list(epoch_of(run, epoch=1)), list(epoch_of(run, epoch=1, batch=2))
    assert len(rest) == len(whole) - 2 > 0
    assert all(torch.equal(one.src, other.src) for one, other in zip(whole[2:], rest, strict=True))


# Time.


class Clock:
    """A clock on which update n takes `pace(n)` seconds and validation takes none; stands for the module `time`."""

    def __init__(self, patch: pytest.MonkeyPatch, pace: Callable[[int], float]) -> None:
        self.now, self.pace = 100.0, pace
        self.rates: list[float] = []
        patch.setattr(loop, "time", self)
        watch(patch, self.update)

    def update(self, number: int, lr: float) -> None:
        self.now += self.pace(number)
        self.rates.append(lr)

    def perf_counter(self) -> float:
        return self.now


# Half a minute less a share for validation, at one update a second: 28 updates, planned after 20.
TIMED = {"minutes": 0.5, "warmup": 20, "updates": 10_000, "validate_every": 22}


def timed(corpus: Path, folder: Path, pace: Callable[[int], float], resume: bool = False) -> list[float]:
    """Train by the minute on such a clock; returns the learning rate of every update."""
    with pytest.MonkeyPatch.context() as patch:
        clock = Clock(patch, pace)
        train(tiny_recipe(corpus, **TIMED), folder, resume)
    return clock.rates


@pytest.fixture(scope="module")
def steady(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[float]]:
    folder = tmp_path_factory.mktemp("runs") / "steady"
    return folder, timed(corpus, folder, lambda update: 1.0)


def test_minutes_become_a_number_of_updates_that_is_stored(steady, corpus):
    folder, rates = steady
    planned = round(loop.STEP_SHARE * 30)
    progress = state_of(folder, planned)["progress"]
    assert progress["updates"] == progress["update"] == planned == 28
    assert rates == [lr_at(update, tiny_recipe(corpus, **TIMED).train, 28) for update in range(1, 29)]


def test_a_machine_that_slows_down_later_changes_no_learning_rate(steady, corpus, tmp_path):
    rates = timed(corpus, tmp_path / "slow", lambda update: 1.0 if update <= 20 else 1.5)
    assert rates == steady[1]


def test_a_machine_that_slows_down_much_ends_the_run_and_changes_no_learning_rate(steady, corpus, tmp_path, capsys):
    rates = timed(corpus, tmp_path / "slow", lambda update: 1.0 if update <= 20 else 5.0)
    assert rates == steady[1][:23]  # 20 + 3 * 5 seconds are more than 33
    assert "0.5 minutes are over after 23 of 28 updates" in capsys.readouterr().err
    assert state_of(tmp_path / "slow", 23)["progress"]["update"] == 23


def test_a_run_by_the_minute_keeps_its_plan_when_it_is_resumed(steady, corpus, tmp_path):
    with power_cut_before(25):
        timed(corpus, tmp_path / "run", lambda update: 1.0)
    assert state_of(tmp_path / "run", 20)["progress"]["updates"] == 28  # written down as soon as it was known
    rates = timed(corpus, tmp_path / "run", lambda update: 0.1, resume=True)  # on a faster machine
    assert rates == steady[1][22:]
    assert same(state_of(tmp_path / "run", 28)["model"], state_of(steady[0], 28)["model"])


def test_a_machine_ten_times_as_fast_plans_ten_times_the_updates():
    for seconds, updates in ((20.0, 28), (2.0, 276)):
        progress = Progress(update=20, seconds=seconds)
        loop.plan_updates(tiny_recipe(Path(), **TIMED).train, progress)
        assert progress.updates == updates


def test_nothing_is_planned_before_the_speed_is_known_nor_twice():
    config = tiny_recipe(Path(), **TIMED).train
    early, late = Progress(update=19, seconds=19.0), Progress(update=25, seconds=500.0, updates=28)
    loop.plan_updates(config, early)
    loop.plan_updates(config, late)
    assert (early.updates, late.updates) == (None, 28)


# Patience and precision.


def test_patience_ends_a_run_that_no_longer_gets_better_and_the_best_model_stays(corpus, tmp_path, monkeypatch):
    losses = iter([3.0, 2.0, 2.5, 2.1, 1.0])
    monkeypatch.setattr(validation, "dev_loss", lambda run: next(losses))
    recipe = tiny_recipe(corpus, updates=100, validate_every=3, patience=2, keep=9)
    model = train(recipe, tmp_path / "run")
    assert [row["dev_loss"] for row in rows(tmp_path / "run") if "dev_loss" in row] == [3.0, 2.0, 2.5, 2.1]
    progress = state_of(tmp_path / "run", 12)["progress"]
    assert (progress["update"], progress["best_update"], progress["since_best"]) == (12, 6, 2)
    second = load_model(tmp_path / "run/checkpoints/00000006").model
    assert torch.equal(load_model(model).model.embedding.weight, second.embedding.weight)


def test_without_patience_a_run_goes_on(corpus, tmp_path, monkeypatch):
    losses = iter([1.0, 2.0, 3.0, 4.0])
    monkeypatch.setattr(validation, "dev_loss", lambda run: next(losses))
    train(tiny_recipe(corpus, updates=12, validate_every=3), tmp_path / "run")
    assert state_of(tmp_path / "run", 12)["progress"]["since_best"] == 3


def test_bfloat16_trains_nearly_as_float32_does(corpus, tmp_path, unbroken):
    train(tiny_recipe(corpus, updates=UPDATES, precision="bfloat16"), tmp_path / "run")
    assert state_of(tmp_path / "run")["progress"]["precision"] == "bfloat16"
    assert all(weight.dtype == torch.float32 for weight in state_of(tmp_path / "run")["model"].values())
    losses = [[row["loss"] for row in rows(folder) if "loss" in row] for folder in (tmp_path / "run", unbroken)]
    assert losses[0] != losses[1]
    assert losses[0] == pytest.approx(losses[1], rel=0.03)


def test_the_precision_of_a_run_is_measured_once(corpus, tmp_path, monkeypatch):
    recipe = tiny_recipe(corpus, updates=8, validate_every=4, precision="auto")
    monkeypatch.setattr(run_module, "pick_precision", lambda config, device: "bfloat16")
    with power_cut_before(6):
        train(recipe, tmp_path / "run")
    monkeypatch.setattr(run_module, "pick_precision", lambda config, device: "float32")  # another machine
    train(recipe, tmp_path / "run", resume=True)
    assert state_of(tmp_path / "run", 8)["progress"]["precision"] == "bfloat16"


@pytest.mark.parametrize(
    ("count", "expected"), [(1, [0]), (3, [0, 1, 3]), (4, [0, 1, 2, 3]), (5, [0, 1, 2, 3, 4]), (9, [0, 1, 2, 3, 4])]
)
def test_what_is_judged_is_spread_over_the_whole_dev_split(count, expected):
    assert validation.spread(range(5), count) == expected
