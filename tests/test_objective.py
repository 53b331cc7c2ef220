"""Learning rate, loss and optimiser, by hand."""

import math

import pytest
import torch
from small import VOCAB, decoder_input, random_model, random_words
from torch import nn

from seq2seq.config import TrainConfig
from seq2seq.data.batching import Batch
from seq2seq.data.tokenizer import PAD
from seq2seq.training import objective
from seq2seq.training.muon import Muon, orthogonal
from seq2seq.training.objective import Objective, lr_at, make_optimiser, pick_precision, summed_loss

SCHEDULES = ["inverse_sqrt", "linear", "cosine"]
CPU = torch.device("cpu")


def schedule(name: str, warmup: int = 10) -> TrainConfig:
    return TrainConfig(learning_rate=0.8, warmup=warmup, schedule=name)


@pytest.mark.parametrize("name", SCHEDULES)
def test_warm_up_is_a_line_to_the_peak_whatever_the_number_of_updates(name):
    for updates in (None, 20, 1000):
        rates = [lr_at(update, schedule(name), updates) for update in range(1, 11)]
        assert rates == pytest.approx([0.08 * update for update in range(1, 11)])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("linear", {11: 0.8 * 90 / 91, 55: 0.8 * 46 / 91, 100: 0.8 / 91}),
        ("cosine", {11: 0.4 * (1 - math.cos(math.pi * 90 / 91)), 100: 0.4 * (1 - math.cos(math.pi / 91))}),
        ("inverse_sqrt", {40: 0.4, 90: 0.8 / 3, 1000: 0.08}),
    ],
)
def test_the_decay_after_warm_up(name, expected):
    found = {update: lr_at(update, schedule(name), 100) for update in expected}
    assert found == pytest.approx(expected)


def test_a_cosine_is_at_half_the_peak_in_the_middle():
    assert lr_at(55, schedule("cosine"), 99) == pytest.approx(0.4)  # (10 + 100) / 2


@pytest.mark.parametrize("name", ["linear", "cosine"])
def test_the_rate_is_positive_at_the_last_update_and_zero_just_after(name):
    assert 0 < lr_at(100, schedule(name), 100) < 0.01
    assert lr_at(101, schedule(name), 100) == 0


@pytest.mark.parametrize("warmup", [0, 10, 100, 500])
@pytest.mark.parametrize("name", SCHEDULES)
def test_the_rate_is_never_negative_never_above_the_peak_and_falls_after_warm_up(name, warmup):
    rates = [lr_at(update, schedule(name, warmup), 100) for update in range(1, 200)]
    assert all(0 <= rate <= 0.8 for rate in rates)
    assert rates[warmup:] == sorted(rates[warmup:], reverse=True)


@pytest.mark.parametrize("name", ["linear", "cosine"])
def test_the_peak_is_held_until_the_number_of_updates_is_known(name):
    assert [lr_at(update, schedule(name), None) for update in (10, 11, 5000)] == [0.8, 0.8, 0.8]


@pytest.fixture
def batch() -> Batch:
    tgt_in = decoder_input(2, 5)
    tgt_out = random_words(2, 5, seed=1)
    tgt_in[1, 3:] = tgt_out[1, 3:] = PAD
    return Batch(random_words(2, 6), tgt_in, tgt_out)


def by_hand(model: nn.Module, batch: Batch, smoothing: float) -> float:
    """(1 - e) * -log p(right) + e * mean over the vocabulary of -log p, summed over real tokens."""
    total = 0.0
    rows = (model(batch.src, batch.tgt_in) @ model.embedding.weight.T).log_softmax(-1)
    for row, token in zip(rows.flatten(0, 1).tolist(), batch.tgt_out.flatten().tolist(), strict=True):
        if token != PAD:
            total += (1 - smoothing) * -row[token] + smoothing * -sum(row) / VOCAB
    return total


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.4])
def test_the_loss_is_label_smoothed_cross_entropy_summed_over_real_tokens(batch, smoothing):
    model = random_model()
    assert summed_loss(model, batch, smoothing).item() == pytest.approx(by_hand(model, batch, smoothing), rel=1e-6)


def test_two_passes_under_dropout_disagree_and_pay_for_it(batch):
    model = random_model(dropout=0.3).train()
    losses = []
    for consistency in (1e-9, 5.0):
        torch.manual_seed(1)
        losses.append(Objective(model, 0.1, consistency=consistency)(batch).item())
    assert losses[0] < losses[1] < 3 * losses[0]
    nothing = Batch(batch.src, batch.tgt_in, torch.full_like(batch.tgt_out, PAD))
    assert Objective(model, 0.1, consistency=5.0)(nothing).item() == 0


def test_more_padding_changes_neither_loss_nor_gradient(batch):
    model = random_model()
    wide = Batch(*(nn.functional.pad(ids, (0, 3), value=PAD) for ids in (batch.src, batch.tgt_in, batch.tgt_out)))
    narrow, wider = (summed_loss(model, each, 0.1) for each in (batch, wide))
    assert wider.item() == pytest.approx(narrow.item(), rel=1e-6)
    weights = list(model.parameters())
    for one, other in zip(*(torch.autograd.grad(loss, weights) for loss in (narrow, wider)), strict=True):
        torch.testing.assert_close(other, one, atol=1e-6, rtol=1e-6)


def test_weight_decay_shrinks_matrices_and_leaves_biases_and_norms_alone():
    model = random_model(dtype=torch.float32)
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    for weight in model.parameters():
        weight.grad = torch.zeros_like(weight)
    make_optimiser(model, TrainConfig(learning_rate=0.1, weight_decay=0.5)).step()
    for name, weight in model.named_parameters():
        factor = 0.95 if weight.dim() > 1 else 1.0  # 1 - learning rate * decay
        torch.testing.assert_close(weight.detach(), before[name] * factor, msg=name)


def test_the_first_step_of_the_optimiser_moves_every_weight_by_the_learning_rate():
    layer = nn.Linear(3, 2)
    before = layer.weight.detach().clone()
    layer.weight.grad = torch.tensor([[1.0, -2.0, 3.0], [-0.1, 0.2, 5.0]])
    make_optimiser(layer, TrainConfig(learning_rate=0.1)).step()
    torch.testing.assert_close(layer.weight.detach(), before - 0.1 * layer.weight.grad.sign())


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_precision_that_is_asked_for_is_taken(precision):
    assert pick_precision(TrainConfig(precision=precision), CPU) == precision


@pytest.mark.parametrize(
    ("has_instructions", "wins", "expected"),
    [(True, True, "bfloat16"), (True, False, "float32"), (False, True, "float32")],
)
def test_auto_takes_bfloat16_where_the_processor_has_it_and_it_is_faster(monkeypatch, has_instructions, wins, expected):
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: has_instructions)
    monkeypatch.setattr(objective, "_bfloat16_wins", lambda: wins)
    assert pick_precision(TrainConfig(precision="auto"), CPU) == expected


def muon(model, **settings):
    return make_optimiser(model, TrainConfig(optimiser="muon", **settings))


def test_muon_takes_the_matrices_of_the_layers_and_adamw_the_rest():
    model = random_model()
    parts = muon(model).parts
    held = [{id(weight) for group in part.param_groups for weight in group["params"]} for part in parts]
    names = [{name for name, weight in model.named_parameters() if id(weight) in ids} for ids in held]
    assert names[0] == {name for name, weight in model.named_parameters() if weight.dim() == 2} - {"embedding.weight"}
    assert names[1] == {name for name, _ in model.named_parameters()} - names[0]


def test_a_step_of_muon_has_like_singular_values_and_the_size_of_a_step_of_adamw():
    torch.manual_seed(0)
    layer = nn.Linear(64, 32)
    before = layer.weight.detach().clone()
    layer.weight.grad, layer.bias.grad = torch.randn(32, 64) * torch.logspace(-2, 2, 64), torch.ones(32)
    muon(layer, learning_rate=0.1).step()
    step = layer.weight.detach() - before
    singular = torch.linalg.svdvals(step)
    assert singular.max() < 2.5 * singular.min()  # of the gradient: 400 times
    assert step.square().mean().sqrt().item() == pytest.approx(0.2 * 0.1, rel=0.3)


def test_a_learning_rate_reaches_both_parts_and_a_state_comes_back():
    layer = nn.Linear(8, 8)
    optimiser = muon(layer)
    for group in optimiser.param_groups:
        group["lr"] = 0.0
    layer.weight.grad, layer.bias.grad = torch.ones(8, 8), torch.ones(8)
    before = [weight.detach().clone() for weight in layer.parameters()]
    optimiser.step()
    assert all(torch.equal(one, other) for one, other in zip(before, layer.parameters(), strict=True))
    optimiser.zero_grad()
    assert layer.weight.grad is None
    other = muon(layer)
    other.load_state_dict(optimiser.state_dict())
    momentum = [part.parts[0].state[layer.weight]["momentum_buffer"] for part in (optimiser, other)]
    assert torch.equal(*momentum)


@pytest.mark.parametrize("shape", [(16, 16), (8, 32), (32, 8)])
def test_steps_of_muon_are_those_of_torchs_but_for_its_bfloat16(shape):
    torchs = getattr(torch.optim, "Muon", None)
    if torchs is None:
        pytest.skip(f"torch {torch.__version__} has no Muon")
    torch.manual_seed(0)
    ours = nn.Parameter(torch.randn(shape))
    theirs = nn.Parameter(ours.detach().clone())
    optimisers = Muon([ours], 0.1, 0.01), torchs([theirs], 0.1, 0.01, adjust_lr_fn="match_rms_adamw")
    for _ in range(3):
        ours.grad = torch.randn(shape)
        theirs.grad = ours.grad.clone()
        for optimiser in optimisers:
            optimiser.step()
    torch.testing.assert_close(ours, theirs, atol=5e-3, rtol=0)


@pytest.mark.parametrize(("precision", "expected"), [("float32", torch.float32), ("bfloat16", torch.bfloat16)])
def test_muon_multiplies_in_the_precision_of_the_run(precision, expected, monkeypatch):
    """In bfloat16 a processor without instructions for it takes a hundred times as long."""
    seen = []
    baddbmm = torch.baddbmm
    monkeypatch.setattr(
        torch, "baddbmm", lambda x, *rest, **scales: seen.append(x.dtype) or baddbmm(x, *rest, **scales)
    )
    layer = nn.Linear(8, 8)
    layer.weight.grad = torch.ones(8, 8)
    make_optimiser(layer, TrainConfig(optimiser="muon"), precision).step()
    assert set(seen) == {expected}
    assert layer.weight.dtype == torch.float32


def test_matrices_of_one_shape_are_made_orthogonal_as_each_alone():
    torch.manual_seed(0)
    matrices = torch.randn(3, 12, 7)
    together = orthogonal(matrices)
    for one, alone in zip(together, matrices, strict=True):
        torch.testing.assert_close(one, orthogonal(alone[None])[0], atol=1e-5, rtol=0)
    assert 0.6 < torch.linalg.svdvals(together).min() <= torch.linalg.svdvals(together).max() < 1.3


def test_a_weight_without_a_gradient_stays():
    used, unused = nn.Parameter(torch.ones(4, 4)), nn.Parameter(torch.ones(4, 4))
    used.grad = torch.eye(4)
    Muon([used, unused], 0.1, 0.5).step()
    assert torch.equal(unused, torch.ones(4, 4))
    assert not torch.equal(used, torch.ones(4, 4))
