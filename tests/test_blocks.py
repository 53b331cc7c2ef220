"""Positions and dropout by hand; the two blocks against torch.nn's layers with the same weights."""

import math

import pytest
import torch
from small import random_model, torch_decoder_block, torch_encoder_block
from torch import Tensor

from seq2seq.model.attention import causal_mask, padding_mask
from seq2seq.model.blocks import Dropout, FeedForward, sinusoids


def draw(*size: int, seed: int = 0) -> Tensor:
    return torch.randn(*size, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def real(lengths: list[int], width: int) -> Tensor:
    return torch.arange(width) < torch.tensor(lengths)[:, None]


def test_positions_alternate_sine_and_cosine_of_falling_frequency():
    expected = [
        [0.0, 1.0, 0.0, 1.0],
        [math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01)],
        [math.sin(2), math.cos(2), math.sin(0.02), math.cos(0.02)],
    ]
    torch.testing.assert_close(sinusoids(3, 4), torch.tensor(expected), atol=1e-6, rtol=0)


def test_positions_that_start_later_are_the_later_rows():
    assert torch.equal(sinusoids(3, 8, start=5), sinusoids(8, 8)[5:])


def dropped(rate: float, size: int = 100_000) -> Tensor:
    torch.manual_seed(5)
    return Dropout(rate)(torch.ones(size))


def test_dropout_is_off_in_evaluation():
    x = draw(7, 3)
    assert Dropout(0.5).eval()(x) is x


def test_dropout_of_rate_zero_changes_nothing():
    x = draw(7, 3)
    assert Dropout(0.0)(x) is x


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.9])
def test_dropout_drops_at_its_rate_and_keeps_the_mean(rate):
    x = dropped(rate)
    assert x.eq(0).double().mean().item() == pytest.approx(rate, abs=0.01)
    assert x.mean().item() == pytest.approx(1, abs=0.03)


def test_dropout_scales_what_is_kept_by_the_inverse_of_the_rounded_rate():
    kept = 1 - round(0.3 * 256) / 256
    assert dropped(0.3).unique().tolist() == pytest.approx([0, 1 / kept])


def test_the_highest_rates_still_keep_something():
    assert sorted(dropped(0.999).unique().tolist()) == [0, 256]


@pytest.mark.parametrize("size", [1, 7, 8, 9])
def test_dropout_covers_sizes_that_are_no_multiple_of_eight(size):
    torch.manual_seed(0)
    layer, x = Dropout(0.5), torch.ones(size)
    outputs = torch.stack([layer(x) for _ in range(200)])
    assert outputs.eq(0).any(0).all()
    assert outputs.eq(2).any(0).all()


def test_dropout_follows_the_seed_and_a_saved_state_of_torch():
    layer, x = Dropout(0.5), torch.ones(1000)
    torch.manual_seed(3)
    first = layer(x)
    state = torch.get_rng_state()
    second = layer(x)
    torch.set_rng_state(state)
    assert torch.equal(layer(x), second)
    torch.manual_seed(3)
    assert torch.equal(layer(x), first)
    assert not torch.equal(first, second)


def test_the_gradient_of_dropout_is_its_mask():
    x = draw(500).requires_grad_()
    y = Dropout(0.5)(x)
    y.sum().backward()
    assert torch.equal(x.grad, (y != 0) * 2.0)


def test_the_feed_forward_layer_worked_by_hand():
    layer = FeedForward(2, 2)
    layer.w_1.load_state_dict({"weight": torch.tensor([[1.0, 1.0], [1.0, -1.0]]), "bias": torch.tensor([0.0, -1.0])})
    layer.w_2.load_state_dict({"weight": torch.tensor([[2.0, 0.0], [0.0, 3.0]]), "bias": torch.tensor([0.5, 0.0])})
    # W_1 x + b_1 = (3, -2) -> (3, 0) -> (6.5, 0); and (1, 2) -> (2.5, 6)
    assert layer(torch.tensor([[1.0, 2.0], [2.0, -1.0]])).tolist() == [[6.5, 0.0], [2.5, 6.0]]


@pytest.mark.parametrize("lengths", [[6, 6], [6, 4]], ids=["full", "padded"])
def test_the_encoder_block_equals_torch_with_the_same_weights(lengths):
    model, x, tokens = random_model(), draw(2, 6, 16), real(lengths, 6)
    ours = model.encoder[0]
    expected = torch_encoder_block(ours, model.config)(x, src_key_padding_mask=~tokens)
    for output in (ours(x, padding_mask(tokens)), ours.trace(x, padding_mask(tokens))[0]):
        torch.testing.assert_close(output, expected, atol=1e-12, rtol=1e-10)


@pytest.mark.parametrize("lengths", [[6, 6], [6, 4]], ids=["full", "padded"])
def test_the_decoder_block_equals_torch_with_the_same_weights(lengths):
    model, x, memory, tokens = random_model(), draw(2, 5, 16), draw(2, 6, 16, seed=1), real(lengths, 6)
    ours = model.decoder[0]
    expected = torch_decoder_block(ours, model.config)(
        x, memory, tgt_mask=causal_mask(5) < 0, memory_key_padding_mask=~tokens
    )
    inputs = (x, ours.cross_attention.keys_values(memory), causal_mask(5), padding_mask(tokens))
    for output in (ours(*inputs), ours.trace(*inputs)[0]):
        torch.testing.assert_close(output, expected, atol=1e-12, rtol=1e-10)


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_dropout_in_a_block_acts_on_every_sublayer_before_the_residual(side):
    model, x = random_model(), draw(2, 5, 16)
    block = getattr(model, side)[0].train()
    block.dropout = torch.nn.Module()
    block.dropout.forward = torch.zeros_like  # every sublayer's output is dropped, so only the residual is left
    inputs = (x, None) if side == "encoder" else (x, block.cross_attention.keys_values(x), None, None)
    assert torch.equal(block(*inputs), x)
