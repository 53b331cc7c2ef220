"""The engine: order kept whatever the lengths, hypotheses as alone, attention of a forced pass."""

import numpy as np
import pytest
import torch
from small import PAIRS, loaded_model, source_ids

from seq2seq import Translator
from seq2seq.config import DecodeConfig
from seq2seq.data.tokenizer import BOS, EOS
from seq2seq.translation import torch_engine as module
from seq2seq.translation.torch_engine import TorchEngine

SOURCES = [ids[start:] for ids, start in zip(source_ids(PAIRS[::7]), (0, 9, 3, 12, 5, 1, 8, 2, 10), strict=True)]


@pytest.fixture(scope="module")
def torch_engine() -> TorchEngine:
    return TorchEngine(loaded_model(decode=DecodeConfig(max_length_ratio=0.5)))


def test_the_sources_of_these_tests_have_many_lengths_in_no_order():
    lengths = [len(source) for source in SOURCES]
    assert len(set(lengths)) > 5
    assert lengths not in (sorted(lengths), sorted(lengths, reverse=True))


@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize("budget", [4096, 30], ids=["one batch", "several batches"])
def test_hypotheses_come_in_the_order_of_the_sources_and_as_alone(torch_engine, monkeypatch, beam_size, budget):
    monkeypatch.setattr(module, "BATCH_TOKENS", budget)
    together = torch_engine.search(SOURCES, beam_size, alpha=1.0)
    alone = [torch_engine.search([source], beam_size, alpha=1.0)[0] for source in SOURCES]
    assert len({hypotheses[0].tokens for hypotheses in together}) > 5
    for each, expected in zip(together, alone, strict=True):
        assert [hypothesis.tokens for hypothesis in each] == [hypothesis.tokens for hypothesis in expected]


def test_batches_keep_to_the_budget_of_tokens_times_beam(torch_engine, monkeypatch):
    sizes = []
    search = torch_engine._search

    def watched(sources, beam_size, alpha):
        sizes.append(len(sources) * max(map(len, sources)))
        return search(sources, beam_size, alpha)

    monkeypatch.setattr(torch_engine, "_search", watched)
    monkeypatch.setattr(module, "BATCH_TOKENS", 120)
    torch_engine.search(SOURCES, 3, alpha=1.0)
    assert len(sizes) > 1
    assert max(sizes) <= 40


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_beam_gives_as_many_hypotheses_as_it_is_wide(torch_engine, beam_size):
    assert [len(hypotheses) for hypotheses in torch_engine.search(SOURCES, beam_size, 1.0)] == [beam_size] * len(
        SOURCES
    )


def test_the_length_limit_is_the_ratio_of_the_recipe_and_ten_more(torch_engine):
    found = torch_engine.search(SOURCES, 1, 1.0)
    cut = [(source, best) for source, [best] in zip(SOURCES, found, strict=True) if best.truncated]
    assert cut
    for source, best in cut:
        assert len(best.tokens) == int(0.5 * len(source)) + 10
        assert best.tokens[-1] == EOS


@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize("budget", [4096, 30], ids=["one batch", "several batches"])
def test_attention_is_that_of_each_pair_alone(torch_engine, monkeypatch, beam_size, budget):
    monkeypatch.setattr(module, "BATCH_TOKENS", budget)
    targets = [hypotheses[0].tokens for hypotheses in torch_engine.search(SOURCES, beam_size, alpha=1.0)]
    maps = torch_engine.attention(SOURCES, targets)
    for source, target, weights in zip(SOURCES, targets, maps, strict=True):
        assert weights.shape == (2, 2, len(target), len(source))  # layers, heads, T, S
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
        trace = torch_engine.model.trace(torch.tensor([source]), torch.tensor([[BOS, *target[:-1]]]))
        for layer in range(2):
            np.testing.assert_allclose(weights[layer], trace.cross[layer].A[0], atol=1e-5)


def test_row_t_of_attention_belongs_to_the_query_that_predicts_token_t(torch_engine):
    source, target = SOURCES[0], [20, 21, 22, 23, EOS]
    other = [20, 21, 99, 23, EOS]
    [before], [after] = (torch_engine.attention([source], [each]) for each in (target, other))
    moved = np.abs(after - before).max(axis=(0, 1, 3))
    assert (moved[:3] == 0).all()  # tokens 0, 1 and 2 were predicted before the changed one was seen
    assert (moved[3:] > 1e-6).all()


def test_attention_refuses_unequal_lists(torch_engine):
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        torch_engine.attention(SOURCES, [[EOS]])


def test_nothing_in_gives_nothing_out(torch_engine):
    assert torch_engine.search([], 3, 1.0) == []
    assert torch_engine.attention([], []) == []


def test_in_bfloat16_the_search_is_rounded_and_what_is_looked_into_is_not(translator):
    rounded = Translator.from_pretrained(precision="bfloat16")
    text = "The dog sleeps under the table."
    one, other = rounded.translate(text), translator.translate(text)
    assert one.text == other.text
    assert one.score == pytest.approx(other.score, abs=0.05)
    assert one.score != other.score
    np.testing.assert_array_equal(one.attention, other.attention)
