"""Greedy search, sampling and beam search over a step function; nothing here knows the model.

Shapes: N sentences still open, W beam width, R rows = N * W, V vocabulary, k ways on of a row that are looked at.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from seq2seq.model import Transformer
from seq2seq.translation.engine import Hypothesis


class Stepper(Protocol):
    """Partial translations, one a row, that grow by one token a step."""

    def advance(self, tokens: Tensor) -> Tensor:
        """Append the newest token of every row, (R,); return log-probabilities of the next one, (R, V)."""

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


Choice = Callable[[Tensor], Tensor]  # log-probabilities (R, V) -> k chosen tokens of every row (R, k)


class Ways(NamedTuple):
    """The ways on that were chosen: all that is kept of a step's log-probabilities."""

    tokens: Tensor  # (R, k)
    gains: Tensor  # (R, k) their log-probabilities
    end: Tensor  # (R,) that of `</s>`, chosen or not


def ways_on(log_probabilities: Tensor, choice: Choice, eos_id: int) -> Ways:
    """(R, V) -> what is chosen of every row."""
    tokens = choice(log_probabilities)
    return Ways(tokens, log_probabilities.gather(1, tokens), log_probabilities[:, eos_id].clone())


def top(values: Tensor, k: int) -> Tensor:
    """Where the k greatest of every row (R, V) are, greatest first: as `topk`, but quicker on long rows.

    They lie in the k groups with the greatest maxima, so only these are looked at.
    """
    groups = next((n for n in range(100, 1100) if n >= 10 * k and values.size(1) % n == 0), None)
    if groups is None:
        return values.topk(min(k, values.size(1)), dim=1).indices
    grouped = values.view(len(values), -1, groups)  # (R, V / groups, groups); group g holds g, g + groups, ...
    chosen = grouped.amax(dim=1).topk(k, dim=1).indices  # (R, k)
    kept = grouped.gather(2, chosen[:, None, :].expand(-1, grouped.size(1), -1)).flatten(1)  # (R, V / groups * k)
    best = kept.topk(k, dim=1).indices  # of a row's survivors: group chosen[best % k], place best // k
    return best // k * groups + chosen.gather(1, best % k)


def most_probable(log_probabilities: Tensor) -> Tensor:
    """The greedy choice."""
    return top(log_probabilities, 1)


def sampled(temperature: float, generator: torch.Generator | None = None) -> Choice:
    """Draw from the distribution sharpened (below 1) or flattened (above 1) by a temperature."""

    def choose(log_probabilities: Tensor) -> Tensor:
        weights = (log_probabilities / temperature).softmax(dim=-1)
        return torch.multinomial(weights, 1, generator=generator)

    return choose


def greedy_search(
    stepper: Stepper,
    limits: Sequence[int],
    *,
    bos_id: int,
    eos_id: int,
    alpha: float = 1.0,
    choice: Choice = most_probable,
) -> list[Hypothesis]:
    """One token a step, by `choice`, until `</s>`.

    limits[n] is the longest translation of sentence n, `</s>` included.
    """
    tokens: list[list[int]] = [[] for _ in limits]
    totals = [0.0] * len(limits)
    truncated = [False] * len(limits)
    opened = list(range(len(limits)))
    newest = torch.full((len(opened),), bos_id)
    while opened:
        ways = ways_on(stepper.advance(newest), choice, eos_id)
        newest = ways.tokens[:, 0]
        options = zip(newest.tolist(), ways.gains[:, 0].tolist(), ways.end.tolist(), strict=True)
        for sentence, (token, gain, end) in zip(opened, options, strict=True):
            at_limit = len(tokens[sentence]) + 1 == limits[sentence]
            truncated[sentence] = at_limit and token != eos_id
            tokens[sentence].append(eos_id if at_limit else token)
            totals[sentence] += end if at_limit else gain
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
    choice = partial(top, k=2 * beam_size)  # a row has at most one way on that is `</s>`, so a full beam goes on
    chosen = ways_on(stepper.advance(torch.full((len(opened),), bos_id)), choice, eos_id)
    device = chosen.gains.device
    totals = torch.zeros(len(opened), 1, device=device)  # (N, W), W = 1 at first
    prefixes = torch.empty(len(opened), 1, 0, dtype=torch.long, device=device)  # (N, W, length)
    while opened:
        length, width = prefixes.size(2) + 1, totals.size(1)
        at_limit = torch.tensor([sentences[n].limit <= length for n in opened], device=device)
        allowed = _force_end(chosen, at_limit.repeat_interleave(width), eos_id)
        k = allowed.tokens.size(1)
        candidates = (totals[:, :, None] + allowed.gains.view(-1, width, k)).flatten(1)  # (N, W * k)
        values, flat = candidates.topk(min(2 * beam_size, width * k), dim=1)
        parents, tokens = flat // k, allowed.tokens.view(-1, width * k).gather(1, flat)
        _collect(sentences, opened, prefixes, values, parents, tokens, chosen.tokens[:, 0], eos_id, beam_size)

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
        chosen = ways_on(stepper.advance(tokens.flatten()), choice, eos_id)
    return [sentence.finished for sentence in sentences]


def _force_end(chosen: Ways, at_limit: Tensor, eos_id: int) -> Ways:
    """`</s>` as the only way on of the rows, at_limit (R,), that have come to their length limit."""
    if not at_limit.any():
        return chosen
    tokens, gains = chosen.tokens.clone(), chosen.gains.masked_fill(at_limit[:, None], -math.inf)
    tokens[at_limit, 0] = eos_id
    gains[at_limit, 0] = chosen.end[at_limit]
    return Ways(tokens, gains, chosen.end)


def _collect(
    sentences: list[_Sentence],
    opened: list[int],
    prefixes: Tensor,
    values: Tensor,
    parents: Tensor,
    tokens: Tensor,
    favourites: Tensor,
    eos_id: int,
    beam_size: int,
) -> None:
    """Hand every `</s>` among a sentence's best `beam_size` candidates to its finished hypotheses.

    favourites (R,): the most probable token of every row, whatever its length limit forces upon it.
    """
    ended = (tokens[:, :beam_size] == eos_id) & (values[:, :beam_size] > -math.inf)
    length, width = prefixes.size(2) + 1, prefixes.size(1)
    for i, rank in ended.nonzero().tolist():
        sentence = sentences[opened[i]]
        parent = int(parents[i, rank])
        # Where the limit forced `</s>` upon a hypothesis that would have gone on, its translation is cut.
        truncated = length >= sentence.limit and int(favourites[i * width + parent]) != eos_id
        sentence.add([*prefixes[i, parent].tolist(), eos_id], values[i, rank].item(), truncated)
