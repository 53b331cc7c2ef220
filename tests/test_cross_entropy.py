"""The loss that never holds all scores at once equals the plain one, gradients included."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from seq2seq.training import cross_entropy
from seq2seq.training.cross_entropy import summed_cross_entropy

Problem = tuple[Tensor, Tensor, Tensor]
VOCABULARY = 11


@pytest.fixture(params=[1, 3, 100], ids=lambda rows: f"{rows} rows a chunk")
def chunked(request, monkeypatch):
    monkeypatch.setitem(cross_entropy.CHUNK, "cpu", request.param * VOCABULARY)


def problem(tokens: int = 7, dtype: torch.dtype = torch.float64) -> Problem:
    generator = torch.Generator().manual_seed(tokens)
    hidden = torch.randn(tokens, 6, dtype=dtype, generator=generator).requires_grad_()
    weight = torch.randn(VOCABULARY, 6, dtype=dtype, generator=generator).requires_grad_()
    return hidden, weight, torch.randint(VOCABULARY, (tokens,), generator=generator)


def plain(hidden: Tensor, weight: Tensor, target: Tensor, smoothing: float) -> Tensor:
    return functional.cross_entropy(hidden @ weight.T, target, label_smoothing=smoothing, reduction="sum")


@pytest.mark.usefixtures("chunked")
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_loss_and_gradients_are_those_of_the_plain_formula(smoothing):
    hidden, weight, target = problem()
    found, wanted = (formula(hidden, weight, target, smoothing) for formula in (summed_cross_entropy, plain))
    torch.testing.assert_close(found, wanted)
    # a factor such as 1 / tokens reaches the gradients
    ours, theirs = (torch.autograd.grad(loss / 3, (hidden, weight)) for loss in (found, wanted))
    torch.testing.assert_close(ours, theirs)


@pytest.mark.usefixtures("chunked")
def test_the_gradients_are_the_slopes_of_the_loss():
    hidden, weight, target = problem()
    assert torch.autograd.gradcheck(lambda h, w: summed_cross_entropy(h, w, target, 0.1), (hidden, weight))


def both_ways(hidden: Tensor, weight: Tensor, target: Tensor, smoothing: float, consistency: float) -> Tensor:
    """R-Drop's formula, halved."""
    first, second = ((each @ weight.T).log_softmax(dim=-1) for each in hidden)
    apart = functional.kl_div(first, second, reduction="sum", log_target=True)
    apart = apart + functional.kl_div(second, first, reduction="sum", log_target=True)
    mean = sum(plain(each, weight, target, smoothing) for each in hidden) / 2
    return mean + consistency / 4 * apart


@pytest.mark.usefixtures("chunked")
@pytest.mark.parametrize("consistency", [0.0, 5.0])
def test_two_passes_pay_for_their_disagreement(consistency):
    hidden, weight, target = problem(14)
    passes, target = hidden.detach().view(2, 7, 6).clone().requires_grad_(), target[:7]
    found, wanted = (formula(passes, weight, target, 0.1, consistency) for formula in (summed_cross_entropy, both_ways))
    torch.testing.assert_close(found, wanted)
    ours, theirs = (torch.autograd.grad(loss / 3, (passes, weight)) for loss in (found, wanted))
    torch.testing.assert_close(ours, theirs)
    assert torch.autograd.gradcheck(lambda h, w: summed_cross_entropy(h, w, target, 0.1, consistency), (passes, weight))


@pytest.mark.usefixtures("chunked")
def test_two_passes_in_bfloat16_are_near_enough():
    hidden, weight, target = problem(14, dtype=torch.float32)
    passes, target = hidden.detach().view(2, 7, 6).clone().requires_grad_(), target[:7]
    wanted = torch.autograd.grad(both_ways(passes, weight, target, 0.1, 5.0), (passes, weight))
    with torch.autocast("cpu", torch.bfloat16):
        loss = summed_cross_entropy(passes, weight, target, 0.1, 5.0)
    for ours, theirs in zip(torch.autograd.grad(loss, (passes, weight)), wanted, strict=True):
        assert ((ours - theirs).norm() / theirs.norm()).item() < 0.05


def test_without_gradients_the_loss_is_the_same():
    hidden, weight, target = problem()
    with torch.no_grad():
        quiet = summed_cross_entropy(hidden, weight, target, 0.1)
    torch.testing.assert_close(quiet, summed_cross_entropy(hidden, weight, target, 0.1).detach())


def test_no_tokens_cost_nothing():
    hidden, weight, target = problem(tokens=0)
    loss = summed_cross_entropy(hidden, weight, target, 0.1)
    loss.backward()
    assert loss.item() == 0
    assert weight.grad.abs().max().item() == 0


def test_a_target_without_any_probability_costs_a_finite_loss():
    hidden, weight, target = problem(dtype=torch.float32)
    loss = summed_cross_entropy(hidden * 1e4, weight, target, 0.1)
    assert loss.isfinite()


@pytest.mark.usefixtures("chunked")
def test_in_bfloat16_only_the_products_are_rounded():
    hidden, weight, target = problem(dtype=torch.float32)
    wanted = torch.autograd.grad(plain(hidden, weight, target, 0.1), (hidden, weight))
    with torch.autocast("cpu", torch.bfloat16):
        loss = summed_cross_entropy(hidden, weight, target, 0.1)
    found = torch.autograd.grad(loss, (hidden, weight))
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(plain(hidden, weight, target, 0.1).item(), rel=0.01)
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.dtype == torch.float32
        assert ((ours - theirs).norm() / theirs.norm()).item() < 0.02
