"""The formula, its fused twin, and several heads of it against torch.nn.MultiheadAttention."""

import math

import pytest
import torch
from small import randomise, torch_attention
from torch import Tensor

from seq2seq.model.attention import (
    AttentionTrace,
    KVCache,
    MultiHeadAttention,
    attend,
    attend_fastest,
    attend_fused,
    causal_mask,
    padding_mask,
)

INF = math.inf


def draw(*size: int, seed: int = 0) -> Tensor:
    return torch.randn(*size, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def layer(d_model: int = 12, heads: int = 3, d_head: int = 4) -> MultiHeadAttention:
    return randomise(MultiHeadAttention(d_model, heads, d_head).double())


def real(lengths: list[int], width: int) -> Tensor:
    return torch.arange(width) < torch.tensor(lengths)[:, None]


def masks(queries: int, keys: int) -> dict[str, Tensor | None]:
    hidden = padding_mask(real([keys, keys - 2], keys))
    causal = causal_mask(max(queries, keys))[:queries, :keys]
    return {"none": None, "padding": hidden, "causal": causal, "both": hidden + causal}


def test_attend_is_the_formula_worked_by_hand_on_two_positions():
    q, k = torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    v = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    output, scores, weights = attend(q, k, v)
    # q k^T = [[1, 0], [0, 2]], over sqrt(2); e^0.70711 = 2.02811, e^1.41421 = 4.11325
    torch.testing.assert_close(scores, torch.tensor([[0.70711, 0.0], [0.0, 1.41421]]), atol=1e-5, rtol=0)
    torch.testing.assert_close(weights, torch.tensor([[0.66976, 0.33024], [0.19557, 0.80443]]), atol=1e-5, rtol=0)
    torch.testing.assert_close(output, torch.tensor([[1.66048, 2.66048], [2.60886, 3.60886]]), atol=1e-5, rtol=0)


def test_the_mask_is_added_before_the_softmax():
    q, k = torch.ones(2, 1), torch.tensor([[1.0], [2.0]])
    _, scores, weights = attend(q, k, torch.eye(2), causal_mask(2))
    assert scores.tolist() == [[1.0, -INF], [1.0, 2.0]]
    assert weights[0].tolist() == [1.0, 0.0]
    assert weights[1].tolist() == pytest.approx([1 / (1 + math.e), math.e / (1 + math.e)])


def test_the_softmax_row_of_the_chapter():
    scores = torch.tensor([2.1, 1.7, 2.9, 0.6, 1.3, 0.2])
    output, _, weights = attend(torch.ones(1, 1), scores[:, None], torch.eye(6))
    assert [round(weight, 2) for weight in weights[0].tolist()] == [0.21, 0.14, 0.47, 0.05, 0.10, 0.03]
    torch.testing.assert_close(output, weights)


def test_the_causal_mask_hides_exactly_the_future():
    assert causal_mask(3).tolist() == [[0, -INF, -INF], [0, 0, -INF], [0, 0, 0]]


def test_the_padding_mask_hides_exactly_the_padding():
    mask = padding_mask(torch.tensor([[True, True, False], [True, False, False]]))
    assert mask.tolist() == [[[[0, 0, -INF]]], [[[0, -INF, -INF]]]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize(("rows", "keys"), [(1, 8), (300, 8), (300, 65)])
def test_the_faster_of_the_two_gives_what_both_give(rows, keys, dtype):
    q, k, v = (draw(rows, 2, length, 8, seed=length).to(dtype) for length in (7, keys, keys))
    mask = padding_mask(real([keys - 2] * rows, keys))
    expected = attend(q.double(), k.double(), v.double(), mask)[0]
    error = (attend_fastest(q, k, v, mask).double() - expected).abs().max().item()
    assert error < {torch.float32: 1e-5, torch.bfloat16: 0.05, torch.float64: 1e-12}[dtype]


@pytest.mark.parametrize("name", ["none", "padding", "causal", "both"])
@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (3, 7)])
def test_the_fused_kernel_equals_the_formula_forward_and_backward(name, queries, keys):
    mask = masks(queries, keys)[name]
    inputs = [draw(2, 3, queries, 4), draw(2, 3, keys, 4, seed=1), draw(2, 3, keys, 4, seed=2)]
    direction = draw(2, 3, queries, 4, seed=3)
    results = []
    for function in (lambda *qkv: attend(*qkv)[0], attend_fused):
        leaves = [tensor.clone().requires_grad_() for tensor in inputs]
        output = function(*leaves, mask)
        results.append([output, *torch.autograd.grad((output * direction).sum(), leaves)])
    for explicit, fused in zip(*results, strict=True):
        assert explicit.abs().max() > 0.01
        torch.testing.assert_close(fused, explicit, atol=1e-12, rtol=1e-10)


@pytest.mark.parametrize("name", ["none", "padding", "causal", "both"])
def test_every_row_of_weights_sums_to_one_and_gives_nothing_to_what_is_hidden(name):
    mask = masks(5, 5)[name]
    weights = attend(draw(2, 3, 5, 4), draw(2, 3, 5, 4, seed=1), draw(2, 3, 5, 4, seed=2), mask)[2]
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 5, dtype=torch.float64))
    if mask is not None:
        hidden = (mask == -INF).expand_as(weights)
        assert hidden.any()
        assert weights[hidden].eq(0).all()
        assert weights[~hidden].gt(0).all()


def recomputed(trace: AttentionTrace, mask: Tensor | None) -> list[Tensor]:
    scores = trace.Q @ trace.K.mT / math.sqrt(trace.Q.size(-1))
    return [scores if mask is None else scores + mask, trace.S.softmax(-1), trace.A @ trace.V]


@pytest.mark.parametrize("name", ["none", "padding", "causal", "both"])
def test_scores_weights_and_output_follow_from_the_other_parts_of_a_trace(name):
    mask = masks(5, 5)[name]
    _, trace = layer().trace(draw(2, 5, 12), mask=mask)
    for found, expected in zip([trace.S, trace.A, trace.O], recomputed(trace, mask), strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("lengths", [[6, 6], [6, 3]], ids=["full", "padded"])
@pytest.mark.parametrize("cross", [False, True], ids=["self", "cross"])
def test_several_heads_equal_torch_with_the_same_weights(cross, lengths, causal):
    ours, tokens = layer(), real(lengths, 6)
    x, memory = draw(2, 6, 12), draw(2, 6, 12, seed=1)
    attended = memory if cross else x
    mask = padding_mask(tokens).double() + (causal_mask(6) if causal else 0)
    expected, weights = torch_attention(ours)(
        x, attended, attended, ~tokens, attn_mask=causal_mask(6) < 0 if causal else None, average_attn_weights=False
    )
    keys_values = ours.keys_values(memory) if cross else None
    traced, trace = ours.trace(x, keys_values, mask)
    for output in (ours(x, keys_values, mask), traced):
        torch.testing.assert_close(output, expected, atol=1e-12, rtol=1e-10)
    torch.testing.assert_close(trace.A, weights, atol=1e-12, rtol=1e-10)


def test_the_width_of_a_head_is_free_as_in_the_chapter():
    ours, x = layer(d_model=128, heads=1, d_head=64), draw(1, 4, 128)
    q, k, v = (x @ w.weight.T + w.bias for w in (ours.w_q, ours.w_k, ours.w_v))
    assert q.shape == (1, 4, 64)
    expected = (q @ k.mT / 8).softmax(-1) @ v @ ours.w_o.weight.T + ours.w_o.bias
    torch.testing.assert_close(ours(x), expected)


def test_heads_are_consecutive_slices_of_the_projection():
    ours, x = layer(), draw(2, 5, 12)
    _, trace = ours.trace(x)
    for head in range(3):
        torch.testing.assert_close(trace.Q[:, head], ours.w_q(x)[..., 4 * head : 4 * head + 4])


def test_the_cache_gives_at_every_step_the_row_of_the_causal_pass():
    ours, x, cache = layer(), draw(2, 5, 12), KVCache()
    rows = [ours(x[:, [position]], cache=cache) for position in range(5)]
    torch.testing.assert_close(torch.cat(rows, dim=1), ours(x, mask=causal_mask(5)), atol=1e-12, rtol=1e-10)


def test_the_cache_keeps_the_chosen_rows_in_the_chosen_order():
    cache, k, v = KVCache(), draw(3, 2, 1, 4), draw(3, 2, 1, 4, seed=1)
    cache.append(k, v)
    cache.select(torch.tensor([2, 0, 2]))
    assert torch.equal(cache.k, k[[2, 0, 2]])
    assert torch.equal(cache.v, v[[2, 0, 2]])
