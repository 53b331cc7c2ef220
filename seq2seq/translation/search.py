"""Greedy search, sampling and beam search over a step function; nothing here knows the model.

Shapes: N sentences still open, W beam width, R rows = N * W, V vocabulary.
"""

import math
from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from seq2seq.model import Transformer
from seq2seq.translation.engine import Hypothesis


class Stepper(Protocol):
    """Partial translations, one a row, that grow by one token a step."""

    def advance(self, tokens: Tensor) -> Tensor:
        """Append the newest token of every row, (R,); return log-probabilities of the next one, (R, V), to keep."""

    def select(self, rows: Tensor, sentences: Tensor | None) -> None:
        """Keep these rows in this order; `sentences` names the sentences that stay open, None if all do."""


class ModelStepper:
    """The Transformer with its key-value cache as a step function."""

    def __init__(self, model: Transformer, src: Tensor) -> None:
        self.model = model
        self.state = model.start(src)

    def advance(self, tokens: Tensor) -> Tensor:
        """See Stepper."""
        device = self.model.embedding.weight.device
        return self.model.step(tokens.to(device), self.state).float().log_softmax(dim=-1)

    def select(self, rows: Tensor, sentences: Tensor | None) -> None:
        """See Stepper."""
        self.state.select(rows, sentences)


Choice = Callable[[Tensor], Tensor]  # log-probabilities (R, V) -> chosen tokens (R,)


def most_probable(log_probabilities: Tensor) -> Tensor:
    """The greedy choice."""
    return log_probabilities.argmax(dim=-1)


def sampled(temperature: float, generator: torch.Generator | None = None) -> Choice:
    """Draw from the distribution sharpened (below 1) or flattened (above 1) by a temperature."""

    def choose(log_probabilities: Tensor) -> Tensor:
        weights = (log_probabilities / temperature).softmax(dim=-1)
        return torch.multinomial(weights, 1, generator=generator).squeeze(-1)

    return choose


def greedy_search(
    stepper: Stepper,
    limits: Sequence[int],
    *,
    bos_id: int,
    eos_id: int,
    alpha: float = 1.0,
    choose: Choice = most_probable,
) -> list[Hypothesis]:
    """One token a step, by `choose`, until `</s>`.

    limits[n] is the longest translation of sentence n, `</s>` included.
    """
    tokens: list[list[int]] = [[] for _ in limits]
    totals = [0.0] * len(limits)
    truncated = [False] * len(limits)
    opened = list(range(len(limits)))
    newest = torch.full((len(opened),), bos_id)
    while opened:
        log_probabilities = stepper.advance(newest)
        newest = choose(log_probabilities)
        for row, (sentence, token) in enumerate(zip(opened, newest.tolist(), strict=True)):
            if len(tokens[sentence]) + 1 == limits[sentence] and token != eos_id:
                newest[row], truncated[sentence] = eos_id, True
        gained = log_probabilities.gather(1, newest[:, None]).squeeze(1).tolist()
        for sentence, token, gain in zip(opened, newest.tolist(), gained, strict=True):
            tokens[sentence].append(token)
            totals[sentence] += gain
        left = [row for row, sentence in enumerate(opened) if tokens[sentence][-1] != eos_id]
        if len(left) < len(opened):
            rows = torch.tensor(left, dtype=torch.long, device=newest.device)
            opened = [opened[row] for row in left]
            newest = newest[rows]
            stepper.select(rows, rows)
    return [
        Hypothesis(tuple(ids), total, total / len(ids) ** alpha, cut)
        for ids, total, cut in zip(tokens, totals, truncated, strict=True)
    ]


def top(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k greatest of every row (N, L), greatest first, and where they are: as `topk`, but quicker on long rows.

    They lie in the k blocks with the greatest maxima, so only these are sorted.
    """
    length = values.size(1)
    block = next((size for size in range(256, 31, -1) if length % size == 0), length)
    if length <= 4 * k * block:
        return values.topk(k, dim=1)
    blocks = values.reshape(len(values), -1, block)  # (N, L / block, block)
    chosen = blocks.amax(dim=2).topk(k, dim=1).indices  # (N, k)
    kept = blocks.gather(1, chosen[:, :, None].expand(-1, -1, block)).flatten(1)  # (N, k * block)
    best, index = kept.topk(k, dim=1)
    return best, chosen.gather(1, index // block) * block + index % block


class _Sentence:
    """The finished hypotheses of one sentence, best first, at most `width` of them."""

    def __init__(self, limit: int, width: int, alpha: float) -> None:
        self.limit, self.width, self.alpha = limit, width, alpha
        self.finished: list[Hypothesis] = []

    def add(self, tokens: list[int], total: float, truncated: bool) -> None:
        score = total / len(tokens) ** self.alpha
        self.finished.append(Hypothesis(tuple(tokens), total, score, truncated))
        self.finished.sort(key=lambda hypothesis: -hypothesis.score)
        del self.finished[self.width :]

    def closed(self, best_open: float, length: int) -> bool:
        """Whether `width` hypotheses have finished, or nothing is left that could go on."""
        return len(self.finished) == self.width or length >= self.limit or best_open == -math.inf


def beam_search(
    stepper: Stepper, limits: Sequence[int], *, beam_size: int, bos_id: int, eos_id: int, alpha: float = 1.0
) -> list[list[Hypothesis]]:
    """The best hypotheses of every sentence, best first, at most `beam_size` each.

    The stepper starts with one row a sentence; after the first step every sentence owns `beam_size` rows. A
    hypothesis that ends with `</s>` among the best `beam_size` candidates is finished; a sentence with `beam_size`
    finished hypotheses leaves the batch. This is the rule of CTranslate2, fairseq and OpenNMT.
    """
    sentences = [_Sentence(limit, beam_size, alpha) for limit in limits]
    opened = list(range(len(limits)))
    log_probabilities = stepper.advance(torch.full((len(opened),), bos_id))  # (N, V)
    device = log_probabilities.device
    totals = torch.zeros(len(opened), 1, device=device)  # (N, W), W = 1 at first
    prefixes = torch.empty(len(opened), 1, 0, dtype=torch.long, device=device)  # (N, W, length)
    while opened:
        length = prefixes.size(2) + 1
        width = totals.size(1)
        log_probabilities = log_probabilities.view(len(opened), width, -1)  # (N, W, V)
        log_probabilities += totals[:, :, None]  # of each hypothesis and its next token together
        candidates = _force_end(log_probabilities, [sentences[n].limit <= length for n in opened], eos_id)
        vocabulary = candidates.size(2)
        values, flat = top(candidates.flatten(1), min(2 * beam_size, width * vocabulary))
        parents, tokens = flat // vocabulary, flat % vocabulary
        _collect(sentences, opened, prefixes, values, parents, tokens, log_probabilities, eos_id, beam_size)

        # The best beam_size candidates that go on: sorting by "is </s>" is stable, so scores stay in order.
        values = values.masked_fill(tokens == eos_id, -math.inf)
        order = (tokens == eos_id).long().argsort(dim=1, stable=True)[:, :beam_size]
        totals, parents, tokens = values.gather(1, order), parents.gather(1, order), tokens.gather(1, order)
        best = totals[:, 0].tolist()
        left = [i for i, n in enumerate(opened) if not sentences[n].closed(best[i], length)]
        if not left:
            break
        keep = torch.tensor(left, device=device)
        totals, parents, tokens = totals[keep], parents[keep], tokens[keep]
        history = prefixes[keep].gather(1, parents[:, :, None].expand(-1, -1, length - 1))
        prefixes = torch.cat([history, tokens[:, :, None]], dim=2)
        stepper.select((keep[:, None] * width + parents).flatten(), keep if len(left) < len(opened) else None)
        opened = [opened[i] for i in left]
        log_probabilities = stepper.advance(tokens.flatten())
    return [sentence.finished for sentence in sentences]


def _force_end(candidates: Tensor, at_limit: list[bool], eos_id: int) -> Tensor:
    """Candidates with `</s>` as the only way on where the length limit is reached."""
    if not any(at_limit):
        return candidates
    forced = torch.full_like(candidates[0, 0], -math.inf)
    forced[eos_id] = 0.0
    limited = candidates.clone()
    limited[torch.tensor(at_limit, device=candidates.device)] += forced
    return limited


def _collect(
    sentences: list[_Sentence],
    opened: list[int],
    prefixes: Tensor,
    values: Tensor,
    parents: Tensor,
    tokens: Tensor,
    log_probabilities: Tensor,
    eos_id: int,
    beam_size: int,
) -> None:
    """Hand every `</s>` among a sentence's best `beam_size` candidates to its finished hypotheses."""
    ended = (tokens[:, :beam_size] == eos_id) & (values[:, :beam_size] > -math.inf)
    length = prefixes.size(2) + 1
    for i, rank in ended.nonzero().tolist():
        sentence = sentences[opened[i]]
        parent = parents[i, rank]
        # Where the limit forced `</s>` upon a hypothesis that would have gone on, its translation is cut.
        truncated = length >= sentence.limit and int(log_probabilities[i, parent].argmax()) != eos_id
        sentence.add([*prefixes[i, parent].tolist(), eos_id], values[i, rank].item(), truncated)
