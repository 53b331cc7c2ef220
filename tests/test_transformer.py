"""The whole model: against torch.nn's stacks, and what must not change its output."""

import math

import pytest
import torch
from small import VOCAB, decoder_input, random_model, random_words, shape, torch_decoder_block, torch_encoder_block
from torch import Tensor, nn

from seq2seq.data.tokenizer import EOS, PAD
from seq2seq.model import Transformer
from seq2seq.model.attention import causal_mask
from seq2seq.model.blocks import sinusoids

TIGHT = {"atol": 1e-12, "rtol": 1e-10}


@pytest.fixture(scope="module")
def model() -> Transformer:
    return random_model().requires_grad_(False)


@pytest.fixture(scope="module")
def src() -> Tensor:
    """Two sentences, the second of them two tokens shorter."""
    src = random_words(2, 6)
    src[1, 3:] = torch.tensor([EOS, PAD, PAD])
    return src


@pytest.fixture(scope="module")
def tgt() -> Tensor:
    return decoder_input(2, 5)


def padded(tokens: Tensor, more: int = 3) -> Tensor:
    return nn.functional.pad(tokens, (0, more), value=PAD)


def test_embeddings_are_scaled_and_positions_added(model, src):
    expected = model.embedding.weight[src] * 4 + sinusoids(6, 16).double()
    torch.testing.assert_close(model.embed(src), expected)


def test_the_encoder_equals_torch_with_the_same_weights(model, src):
    layers = [torch_encoder_block(block, model.config) for block in model.encoder]
    theirs = nn.TransformerEncoder(layers[0], len(layers), norm=model.encoder_norm, enable_nested_tensor=False)
    theirs.layers = nn.ModuleList(layers)
    expected = theirs(model.embed(src), src_key_padding_mask=src == PAD)
    torch.testing.assert_close(model.encode(src), expected, **TIGHT)


def test_the_decoder_equals_torch_with_the_same_weights(model, src, tgt):
    layers = [torch_decoder_block(block, model.config) for block in model.decoder]
    theirs = nn.TransformerDecoder(layers[0], len(layers), norm=model.decoder_norm)
    theirs.layers = nn.ModuleList(layers)
    memory = model.encode(src)
    expected = theirs(
        model.embed(tgt), memory, tgt_mask=causal_mask(5) < 0, memory_key_padding_mask=src == PAD, tgt_is_causal=False
    )
    torch.testing.assert_close(model.decode(tgt, memory, model.source_mask(src)), expected, **TIGHT)


@pytest.mark.parametrize("position", range(1, 5))
def test_no_target_position_sees_the_future(model, src, tgt, position):
    changed = tgt.clone()
    changed[:, position] = torch.where(tgt[:, position] == VOCAB - 1, EOS + 1, VOCAB - 1)
    before, after = model(src, tgt), model(src, changed)
    torch.testing.assert_close(after[:, :position], before[:, :position], atol=1e-12, rtol=0)
    differs = (after[:, position:] - before[:, position:]).abs().amax(-1)
    assert differs.min() > 1e-6  # the change is seen from its own position on


def test_padding_added_to_the_source_changes_nothing(model, src, tgt):
    torch.testing.assert_close(model(padded(src), tgt), model(src, tgt), **TIGHT)
    torch.testing.assert_close(model.encode(padded(src))[:, :6], model.encode(src), **TIGHT)


def test_padding_added_to_the_target_changes_nothing(model, src, tgt):
    torch.testing.assert_close(model(src, padded(tgt))[:, :5], model(src, tgt), **TIGHT)


def test_another_sentence_in_the_batch_changes_nothing(model, src, tgt):
    alone = model(src[1:, :4], tgt[1:])  # the second sentence without its padding
    torch.testing.assert_close(model(src, tgt)[1:], alone, **TIGHT)
    other = torch.cat([random_words(1, 6, seed=9), src[1:]])
    torch.testing.assert_close(model(other, tgt)[1:], alone, **TIGHT)


def test_the_source_matters_to_every_target_position(model, src, tgt):
    other = src.clone()
    other[:, 0] = torch.where(src[:, 0] == VOCAB - 1, EOS + 1, VOCAB - 1)
    assert (model(other, tgt) - model(src, tgt)).abs().amax(-1).min() > 1e-6


def step_by_step(model: Transformer, src: Tensor, tgt: Tensor) -> Tensor:
    state = model.start(src)
    return torch.stack([model.step(column, state) for column in tgt.unbind(1)], dim=1)


def test_decoding_with_the_cache_equals_teacher_forcing(model, src, tgt):
    torch.testing.assert_close(step_by_step(model, src, tgt), model.logits(model(src, tgt)), **TIGHT)


def test_the_beams_of_a_sentence_share_its_memory(model, src):
    tgt = decoder_input(2 * 3, 5)  # three rows a sentence
    expected = model.logits(model(src.repeat_interleave(3, dim=0), tgt))
    torch.testing.assert_close(step_by_step(model, src, tgt), expected, **TIGHT)


def test_rows_that_change_places_take_their_prefix_along(model, src):
    tgt, rows = decoder_input(4, 4), torch.tensor([1, 1, 3, 2])  # two beams for each of two sentences
    state = model.start(src)
    for column in tgt.unbind(1):
        model.step(column, state)
    state.select(rows)
    newest = torch.tensor([5, 6, 7, 8])
    grown = torch.cat([tgt[rows], newest[:, None]], dim=1)
    expected = model.logits(model(src.repeat_interleave(2, dim=0), grown))[:, -1]
    torch.testing.assert_close(model.step(newest, state), expected, **TIGHT)


def test_sentences_that_leave_take_memory_and_mask_along(model):
    src = random_words(3, 6)
    src[2, 3:] = torch.tensor([EOS, PAD, PAD])
    tgt = decoder_input(3, 3)
    state = model.start(src)
    for column in tgt.unbind(1):
        model.step(column, state)
    left = torch.tensor([2, 0])
    state.select(left, left)
    newest = torch.tensor([5, 6])
    expected = model.logits(model(src[left], torch.cat([tgt[left], newest[:, None]], dim=1)))[:, -1]
    torch.testing.assert_close(model.step(newest, state), expected, **TIGHT)


def test_a_trace_equals_the_forward_pass(model, src, tgt):
    trace = model.trace(src, tgt)
    torch.testing.assert_close(trace.hidden, model(src, tgt), **TIGHT)
    torch.testing.assert_close(trace.memory, model.encode(src), **TIGHT)
    torch.testing.assert_close(model.encoder_norm(trace.encoder_states[-1]), model.encode(src), **TIGHT)


def test_a_trace_has_the_state_between_any_two_blocks(model, src, tgt):
    trace = model.trace(src, tgt)
    assert (len(trace.encoder_states), len(trace.decoder_states)) == (3, 3)
    torch.testing.assert_close(trace.encoder_states[0], model.embed(src), **TIGHT)
    torch.testing.assert_close(trace.decoder_states[0], model.embed(tgt), **TIGHT)
    after = model.encoder[0](trace.encoder_states[0], model.source_mask(src))
    torch.testing.assert_close(trace.encoder_states[1], after, **TIGHT)
    torch.testing.assert_close(model.decoder_norm(trace.decoder_states[-1]), trace.hidden, **TIGHT)


def test_a_trace_has_every_layer_of_every_kind_of_attention(model, src, tgt):
    trace = model.trace(src, tgt)
    kinds = {"encoder": (2, 2, 6, 6), "decoder": (2, 2, 5, 5), "cross": (2, 2, 5, 6)}
    for kind, size in kinds.items():
        layers = getattr(trace, kind)
        assert [layer.A.shape for layer in layers] == [size, size]
        assert not torch.allclose(layers[0].A, layers[1].A)
        for layer in layers:
            torch.testing.assert_close(layer.A.sum(-1), torch.ones(size[:3], dtype=torch.float64))
    assert all(layer.A[1, :, :, 4:].eq(0).all() for layer in trace.encoder + trace.cross)  # padding
    assert all(layer.A.triu(diagonal=1).eq(0).all() for layer in trace.decoder)


def test_source_target_and_output_share_one_embedding():
    model = random_model()
    with_vocabulary = [name for name, weight in model.named_parameters() if VOCAB in weight.shape]
    assert with_vocabulary == ["embedding.weight"]
    hidden = torch.randn(3, 16, dtype=torch.float64)
    torch.testing.assert_close(model.logits(hidden), nn.functional.linear(hidden, model.embedding.weight))


def test_the_gradient_reaches_every_parameter(src, tgt):
    model = random_model()
    model.logits(model(src, tgt)).square().sum().backward()
    silent = [name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()]
    # A key's bias adds the same to all scores of a row, which the softmax takes away again.
    assert [name for name in silent if not name.endswith("w_k.bias")] == []


def test_embeddings_start_with_variance_one_after_scaling_and_padding_at_zero():
    torch.manual_seed(0)
    model = Transformer(shape(d_model=64), 2000)
    assert model.embedding.weight.std().item() * math.sqrt(64) == pytest.approx(1, abs=0.02)
    assert model.embedding.weight[PAD].eq(0).all()


def test_what_writes_into_the_residual_starts_smaller_by_the_root_of_the_number_of_writers():
    torch.manual_seed(0)
    model = Transformer(shape(d_model=64, encoder_layers=3, decoder_layers=2), VOCAB)
    limit = math.sqrt(6 / (64 + 64))  # Xavier's uniform bound of a square matrix
    assert model.encoder[0].attention.w_q.weight.abs().max().item() == pytest.approx(limit, rel=0.01)
    assert model.encoder[0].attention.w_o.weight.abs().max().item() == pytest.approx(limit / math.sqrt(6), rel=0.01)
    assert model.decoder[0].attention.w_o.weight.abs().max().item() == pytest.approx(limit / math.sqrt(6), rel=0.01)


def test_the_same_seed_gives_the_same_model():
    weights = []
    for seed in (4, 4, 5):
        torch.manual_seed(seed)
        weights.append(Transformer(shape(), VOCAB).encoder[0].attention.w_q.weight)
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
