"""Beam search against brute force; greedy search, sampling and beam search on a random Transformer."""

import random
from functools import cache
from itertools import product

import pytest
import torch
from small import VOCAB, random_model
from torch import Tensor

from seq2seq.data.batching import pad
from seq2seq.data.tokenizer import BOS, EOS, PAD
from seq2seq.model import Transformer
from seq2seq.translation.engine import Hypothesis
from seq2seq.translation.search import ModelStepper, beam_search, greedy_search, most_probable, sampled, top

WORDS = 4  # of the table: 0, 1, 2, 3
END, BEGIN = 4, 5
ENDS = {"bos_id": BEGIN, "eos_id": END}
SEEDS = range(4)
LIMITS = [4, 2, 3]
ALL = WORDS**3 + WORDS**2 + WORDS + 1  # translations of up to four tokens


@cache
def drawn(prefix: tuple[int, ...]) -> Tensor:
    """Log-probabilities of the next token, drawn at random for every prefix."""
    rng = random.Random(str(prefix))
    return torch.tensor([rng.gauss(0, 1.5) for _ in range(WORDS + 1)], dtype=torch.float64).log_softmax(0)


class TableStepper:
    """A model whose every translation can be listed; remembers how many rows it was asked for at every step."""

    def __init__(self, seed: int, sentences: int) -> None:
        self.prefixes = [(seed, sentence) for sentence in range(sentences)]
        self.rows: list[int] = []

    def advance(self, tokens: Tensor) -> Tensor:
        self.prefixes = [(*prefix, token) for prefix, token in zip(self.prefixes, tokens.tolist(), strict=True)]
        self.rows.append(len(self.prefixes))
        return torch.stack([self.next(prefix) for prefix in self.prefixes])

    def next(self, prefix: tuple[int, ...]) -> Tensor:
        return drawn(prefix)

    def select(self, rows: Tensor, sentences: Tensor | None) -> None:
        self.prefixes = [self.prefixes[row] for row in rows.tolist()]


class Scripted(TableStepper):
    """One sentence whose probabilities (of word 0, word 1, `</s>`) are given for every prefix of words."""

    def __init__(self, script: dict[tuple[int, ...], list[float]]) -> None:
        super().__init__(0, 1)
        self.script = script

    def next(self, prefix: tuple[int, ...]) -> Tensor:
        return torch.tensor(self.script[prefix[3:]]).log()  # without seed, sentence and <s>


def every_translation(seed: int, sentence: int, limit: int, alpha: float) -> list[tuple[float, tuple[int, ...]]]:
    """(score, tokens) of all translations within the limit, best first, by plain recursion."""
    found = []

    def grow(prefix: tuple[int, ...], total: float) -> None:
        row = drawn((seed, sentence, BEGIN, *prefix)).tolist()
        found.append(((total + row[END]) / (len(prefix) + 1) ** alpha, (*prefix, END)))
        if len(prefix) + 1 < limit:
            for word in range(WORDS):
                grow((*prefix, word), total + row[word])

    grow((), 0.0)
    return sorted(found, reverse=True)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_huge_beam_finds_every_translation_in_the_order_of_brute_force(seed, alpha):
    found = beam_search(TableStepper(seed, len(LIMITS)), LIMITS, beam_size=ALL, alpha=alpha, **ENDS)
    for sentence, limit in enumerate(LIMITS):
        expected = every_translation(seed, sentence, limit, alpha)
        assert [hypothesis.tokens for hypothesis in found[sentence]] == [tokens for _, tokens in expected]
        assert [hypothesis.score for hypothesis in found[sentence]] == pytest.approx([score for score, _ in expected])


@pytest.mark.parametrize("seed", SEEDS)
def test_greedy_takes_the_most_probable_token_at_every_step(seed):
    for sentence, hypothesis in enumerate(greedy_search(TableStepper(seed, 3), [8, 8, 8], **ENDS)):
        prefix, total = (), 0.0
        while not prefix or (prefix[-1] != END and len(prefix) < 8):
            row = drawn((seed, sentence, BEGIN, *prefix))
            token = int(row.argmax()) if len(prefix) < 7 else END
            prefix, total = (*prefix, token), total + row[token].item()
        assert hypothesis.tokens == prefix
        assert hypothesis.log_probability == pytest.approx(total)


@pytest.mark.parametrize("beam_size", [1, 2, 4])
@pytest.mark.parametrize("seed", SEEDS)
def test_hypotheses_come_best_first_without_repetition(seed, beam_size):
    for hypotheses in beam_search(TableStepper(seed, 3), [6, 6, 6], beam_size=beam_size, alpha=0.6, **ENDS):
        scores = [hypothesis.score for hypothesis in hypotheses]
        assert 1 <= len(hypotheses) <= beam_size
        assert scores == sorted(scores, reverse=True)
        assert len({hypothesis.tokens for hypothesis in hypotheses}) == len(hypotheses)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_the_score_is_the_log_probability_over_length_to_the_power_of_alpha(alpha):
    stepper = TableStepper(0, 2)
    found = [*greedy_search(stepper, [6, 6], alpha=alpha, **ENDS)]
    found += [best for best, *_ in beam_search(TableStepper(0, 2), [6, 6], beam_size=3, alpha=alpha, **ENDS)]
    for hypothesis in found:
        assert hypothesis.tokens.count(END) == 1  # it is the last token, and counted
        assert hypothesis.score == pytest.approx(hypothesis.log_probability / len(hypothesis.tokens) ** alpha)


def test_a_sentence_is_searched_until_as_many_hypotheses_as_the_beam_is_wide_have_finished():
    script = {
        (): [0.6, 0.1, 0.3],  # `</s>` at once: log 0.3 = -1.20, the first that has finished
        (0,): [0.55, 0.27, 0.18],  # word 0 and `</s>` is the third candidate: not finished
        (1,): [0.5, 0.5, 0.0],
        (0, 0): [0.02, 0.03, 0.95],  # log(0.6 * 0.55 * 0.95) / 3 = -0.387
        (0, 1): [0.1, 0.1, 0.8],  # log(0.6 * 0.27 * 0.8) / 3 = -0.681, at the same step: three have finished
    }
    stepper = Scripted(script)
    [found] = beam_search(stepper, [9], beam_size=2, alpha=1.0, **(ENDS | {"eos_id": 2}))
    assert [hypothesis.tokens for hypothesis in found] == [(0, 0, 2), (0, 1, 2)]
    assert [hypothesis.score for hypothesis in found] == pytest.approx([-0.387, -0.681], abs=1e-3)
    assert stepper.rows == [1, 2, 2]


def test_then_it_is_not_searched_further_though_an_open_hypothesis_could_still_win():
    script = {
        (): [0.45, 0.05, 0.5],  # `</s>` at once: log 0.5 = -0.69
        (0,): [0.5, 0.0, 0.5],  # word 0: log(0.45 * 0.5) / 2 = -0.75; word 0 0 could become log(0.225) / 3 = -0.50
        (1,): [0.5, 0.5, 0.0],
    }
    stepper = Scripted(script)
    [found] = beam_search(stepper, [9], beam_size=2, alpha=1.0, **(ENDS | {"eos_id": 2}))
    assert [hypothesis.tokens for hypothesis in found] == [(2,), (0, 2)]
    assert stepper.rows == [1, 2]


def test_alpha_decides_between_a_short_translation_and_a_longer_one():
    script = {(): [0.55, 0.05, 0.4], (0,): [0.1, 0.2, 0.7], (1,): [0.1, 0.1, 0.8]}
    best = {}
    for alpha in (0.0, 1.0):
        [found] = beam_search(Scripted(script), [2], beam_size=2, alpha=alpha, **(ENDS | {"eos_id": 2}))
        best[alpha] = found[0].tokens
    assert best == {0.0: (2,), 1.0: (0, 2)}  # 0.4 against 0.385, but -0.92 against -0.48 a token


@pytest.mark.parametrize("seed", SEEDS)
def test_finished_sentences_leave_the_batch_of_greedy_search(seed):
    stepper = TableStepper(seed, 5)
    lengths = [len(hypothesis.tokens) for hypothesis in greedy_search(stepper, [9] * 5, **ENDS)]
    assert len(set(lengths)) > 1
    assert stepper.rows == [sum(length > step for length in lengths) for step in range(max(lengths))]


def test_finished_sentences_leave_the_batch_of_beam_search():
    stepper = TableStepper(0, 4)
    found = beam_search(stepper, [2, 3, 5, 7], beam_size=2, **ENDS)
    assert stepper.rows[:2] == [4, 8]  # one row a sentence, then one a hypothesis
    assert stepper.rows[1:] == sorted(stepper.rows[1:], reverse=True)
    assert stepper.rows[-1] < 8
    assert len(stepper.rows) <= 7
    for limit, hypotheses in zip([2, 3, 5, 7], found, strict=True):
        assert all(len(hypothesis.tokens) <= limit for hypothesis in hypotheses)


@pytest.mark.parametrize("beam_size", [1, 2])
def test_the_length_limit_forces_the_end_and_says_so(beam_size):
    prefixes = [prefix for length in range(4) for prefix in product((0, 1), repeat=length)]
    script = {prefix: [0.6, 0.399, 0.001] for prefix in prefixes}
    ids = ENDS | {"eos_id": 2}
    if beam_size == 1:
        found = greedy_search(Scripted(script), [4], **ids)
    else:
        [found] = beam_search(Scripted(script), [4], beam_size=beam_size, **ids)
    assert found[0].tokens == (0, 0, 0, 2)
    assert found[0].truncated
    total = 3 * torch.tensor(0.6).log() + torch.tensor(0.001).log()
    assert found[0].log_probability == pytest.approx(total.item(), rel=1e-5)


@pytest.mark.parametrize("beam_size", [1, 2])
def test_a_translation_that_ends_by_itself_is_not_called_truncated(beam_size):
    prefixes = [prefix for length in range(1, 4) for prefix in product((0, 1), repeat=length)]
    script = {(): [0.8, 0.1, 0.1]} | {prefix: [0.1, 0.1, 0.8] for prefix in prefixes}
    ids = ENDS | {"eos_id": 2}
    if beam_size == 1:
        found = greedy_search(Scripted(script), [5], **ids)
    else:
        [found] = beam_search(Scripted(script), [5], beam_size=beam_size, **ids)
    assert found[0].tokens == (0, 2)
    assert not found[0].truncated


# The same searches over a Transformer.

SOURCES = [[5, 6, EOS], [7, 8, 9, 10, 4, EOS], [11, EOS], [4, 9, 6, 5, EOS], [10, 10, 8, 7, 6, 5, 4, EOS]]
LIMIT = 14
IDS = {"bos_id": BOS, "eos_id": EOS}


@pytest.fixture(scope="module")
def model() -> Transformer:
    """A random model; this seed is one whose translations of SOURCES end early, late and at the limit."""
    return random_model(dtype=torch.float32, seed=92).requires_grad_(False)


def greedy(model: Transformer, sources: list[list[int]], **options) -> list[Hypothesis]:
    return greedy_search(ModelStepper(model, pad(sources, PAD)), [LIMIT] * len(sources), **IDS, **options)


def beam(model: Transformer, sources: list[list[int]], beam_size: int, alpha: float = 1.0) -> list[list[Hypothesis]]:
    stepper = ModelStepper(model, pad(sources, PAD))
    return beam_search(stepper, [LIMIT] * len(sources), beam_size=beam_size, alpha=alpha, **IDS)


def tokens_of(hypotheses: list[Hypothesis]) -> list[tuple[int, ...]]:
    return [hypothesis.tokens for hypothesis in hypotheses]


def forced(model: Transformer, source: list[int], target: tuple[int, ...]) -> float:
    """Log-probability of a translation by teacher forcing."""
    hidden = model(torch.tensor([source]), torch.tensor([[BOS, *target[:-1]]]))[0]
    rows = model.logits(hidden).log_softmax(-1)
    return sum(rows[position, token].item() for position, token in enumerate(target))


def test_the_sentences_of_these_tests_end_at_different_lengths(model):
    found = greedy(model, SOURCES)
    assert len({len(hypothesis.tokens) for hypothesis in found}) > 2
    assert {hypothesis.truncated for hypothesis in found} == {True, False}


def test_a_beam_of_one_is_greedy_search(model):
    found = [best for [best] in beam(model, SOURCES, beam_size=1)]
    expected = greedy(model, SOURCES)
    assert tokens_of(found) == tokens_of(expected)
    assert [each.score for each in found] == pytest.approx([each.score for each in expected])


@pytest.mark.parametrize("index", range(len(SOURCES)))
def test_a_sentence_is_translated_alone_as_in_a_batch(model, index):
    assert tokens_of(greedy(model, [SOURCES[index]])) == [greedy(model, SOURCES)[index].tokens]
    [alone], together = beam(model, [SOURCES[index]], beam_size=4), beam(model, SOURCES, beam_size=4)[index]
    assert tokens_of(alone) == tokens_of(together)
    assert [each.score for each in alone] == pytest.approx([each.score for each in together], rel=1e-5)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("beam_size", [1, 5])
def test_the_score_is_that_of_a_forced_pass_over_the_translation(model, beam_size, alpha):
    for source, hypotheses in zip(SOURCES, beam(model, SOURCES, beam_size, alpha), strict=True):
        for hypothesis in hypotheses:
            total = forced(model, source, hypothesis.tokens)
            assert hypothesis.log_probability == pytest.approx(total, rel=1e-5)
            assert hypothesis.score == pytest.approx(total / len(hypothesis.tokens) ** alpha, rel=1e-5)


def test_sampling_is_reproducible_with_a_generator(model):
    def draw(seed: int) -> list[tuple[int, ...]]:
        return tokens_of(greedy(model, SOURCES, choice=sampled(1.0, torch.Generator().manual_seed(seed))))

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)


def test_sampling_at_a_temperature_near_zero_is_greedy_search(model):
    choice = sampled(1e-4, torch.Generator().manual_seed(0))
    assert greedy(model, SOURCES, choice=choice) == greedy(model, SOURCES, choice=most_probable)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_sampling_follows_the_distribution_at_its_temperature(temperature):
    probabilities = torch.tensor([0.1, 0.2, 0.3, 0.4])
    choice = sampled(temperature, torch.Generator().manual_seed(0))
    drawn_tokens = choice(probabilities.log().expand(20_000, 4))
    expected = probabilities ** (1 / temperature)
    found = torch.bincount(drawn_tokens[:, 0], minlength=4) / 20_000
    torch.testing.assert_close(found, expected / expected.sum(), atol=0.015, rtol=0)


def test_a_sampled_translation_carries_its_own_log_probability(model):
    found = greedy(model, SOURCES, choice=sampled(1.5, torch.Generator().manual_seed(3)))
    for source, hypothesis in zip(SOURCES, found, strict=True):
        assert hypothesis.log_probability == pytest.approx(forced(model, source, hypothesis.tokens), rel=1e-5)


def test_the_model_steps_over_log_probabilities(model):
    rows = ModelStepper(model, pad(SOURCES, PAD)).advance(torch.full((len(SOURCES),), BOS))
    torch.testing.assert_close(rows.exp().sum(-1), torch.ones(len(SOURCES)))
    assert rows.shape == (len(SOURCES), VOCAB)


@pytest.mark.parametrize("k", [1, 7, 20])
@pytest.mark.parametrize("length", [7, 640, 1013, 2048, 8000, 10_000, 50_005])
def test_top_is_topk(length, k):
    values = torch.randn(3, length, generator=torch.Generator().manual_seed(length))
    values[0, 5] = float("-inf")
    assert top(values, k).tolist() == values.topk(min(k, length), dim=1).indices.tolist()


def test_top_of_a_row_that_is_forced_to_its_end():
    values = torch.full((1, 4096), float("-inf"))
    values[0, 9] = 1.0
    where = top(values, 3)
    assert where[0, 0].item() == 9
    assert len(set(where[0].tolist())) == 3
