"""Decoding as it happens: the beam as a tree, and what becomes of it when a word is forbidden or forced.

The search is the one that translates (`translation.search`); it is watched through its step function.
Shapes: R rows (one a beam), V vocabulary.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from seq2seq.data.tokenizer import Tokenizer
from seq2seq.errors import UserError
from seq2seq.insight.cost import step_products
from seq2seq.insight.panels import Lines, Node, Panel, Prose, Table, Tree
from seq2seq.translation.engine import Hypothesis
from seq2seq.translation.search import ModelStepper, Stepper, beam_search, greedy_search, top
from seq2seq.translation.translator import Translator

WIDEST = 10  # beams that are drawn


@dataclass(frozen=True)
class Edits:
    """What is changed in a search: token ids by step, counted from 0."""

    forced: Mapping[int, int] = field(default_factory=dict)
    forbidden: Mapping[int, frozenset[int]] = field(default_factory=dict)


class Edited:
    """A step function that leaves out what is forbidden, and all but what is forced."""

    def __init__(self, stepper: Stepper, edits: Edits) -> None:
        self.stepper, self.edits, self.step = stepper, edits, 0

    def advance(self, tokens: Tensor) -> Tensor:
        """See Stepper; what is left keeps the model's log-probability."""
        found = self.stepper.advance(tokens)
        for token in self.edits.forbidden.get(self.step, ()):
            found[:, token] = -math.inf
        if (only := self.edits.forced.get(self.step)) is not None:
            kept = found[:, only].clone()
            found = torch.full_like(found, -math.inf)
            found[:, only] = kept
        self.step += 1
        return found

    def select(self, rows: Tensor, sentences: Tensor | None) -> None:
        """See Stepper."""
        self.stepper.select(rows, sentences)


@dataclass
class _Step:
    """What the search did at one step: the rows it went on with, and what each of them offered next."""

    parents: list[int]  # rows of the step before
    tokens: list[int]
    offers: list[list[tuple[int, float]]]  # per row, the most probable next tokens with their log-probabilities


class Watched:
    """A step function that remembers what it was asked for and what it answered."""

    def __init__(self, stepper: Stepper, offers: int) -> None:
        self.stepper, self.offers = stepper, offers
        self.steps: list[_Step] = []
        self._parents: list[int] | None = None

    def advance(self, tokens: Tensor) -> Tensor:
        """See Stepper."""
        found = self.stepper.advance(tokens)
        chosen = top(found, self.offers)
        gains = found.gather(1, chosen)
        offers = [
            list(zip(ids, values, strict=True)) for ids, values in zip(chosen.tolist(), gains.tolist(), strict=True)
        ]
        parents = self._parents if self._parents is not None else list(range(len(tokens)))
        self.steps.append(_Step(parents, tokens.tolist(), offers))
        self._parents = None
        return found

    def select(self, rows: Tensor, sentences: Tensor | None) -> None:
        """See Stepper."""
        self._parents = rows.tolist()
        self.stepper.select(rows, sentences)


@dataclass(frozen=True)
class Decoding:
    """A search that was watched."""

    source: str
    beam_size: int
    nodes: list[Node]
    texts: list[str]  # translations that were finished, best first
    hypotheses: list[Hypothesis]
    pieces: list[str]  # of the best
    saved: list[tuple[int, int]]  # products of each step with the cache, and without


@torch.inference_mode()
def decoding(translator: Translator, text: str, beam_size: int, edits: Edits = Edits()) -> Decoding:
    """Watch the search for the translation of a text of one sentence."""
    if not 1 <= beam_size <= WIDEST:
        raise UserError(f"beam size {beam_size} is not one of 1 to {WIDEST}, which can be drawn")
    engine, tokenizer = translator.engine, translator.tokenizer
    source = [*tokenizer.encode(text), tokenizer.eos_id]
    limit, alpha = engine.limit(source), translator.info.decode.length_penalty
    watched = Watched(Edited(stepper_of(translator, source), edits), 2 * beam_size)
    bos, eos = tokenizer.bos_id, tokenizer.eos_id
    if beam_size == 1:
        found = greedy_search(watched, [limit], bos_id=bos, eos_id=eos, alpha=alpha)
    else:
        found = beam_search(watched, [limit], beam_size=beam_size, bos_id=bos, eos_id=eos, alpha=alpha)[0]
    if not found:
        raise UserError("no translation is left: everything at some step is forbidden")
    config = engine.model.config
    best = found[0].tokens
    products = [
        (
            step_products(config, len(tokenizer), prefix, len(source), cached=True),
            step_products(config, len(tokenizer), prefix, len(source), cached=False),
        )
        for prefix in range(1, len(best) + 1)
    ]
    return Decoding(
        source=text,
        beam_size=beam_size,
        nodes=tree_of(watched.steps, found, tokenizer, 2 * beam_size if beam_size > 1 else 3),
        texts=[tokenizer.decode(hypothesis.tokens[:-1]) for hypothesis in found],
        hypotheses=found,
        pieces=tokenizer.pieces(best),
        saved=products,
    )


def stepper_of(translator: Translator, source: Sequence[int]) -> Stepper:
    """The step function over one sentence of ids, in float32 as it is looked into."""
    model = translator.engine.model
    return ModelStepper(model, torch.tensor([list(source)], device=model.embedding.weight.device))


def tree_of(steps: Sequence[_Step], finished: Sequence[Hypothesis], tokenizer: Tokenizer, most: int) -> list[Node]:
    """The best `most` ways on of every step as nodes: kept by the search, finished, or dropped."""
    nodes = [Node("<s>", 0, None, "0", "kept")]
    rows, totals, prefixes = [0], [0.0], [()]  # per row of the search: its node, log-probability and tokens
    ended = {hypothesis.tokens for hypothesis in finished}
    for number, step in enumerate(steps):
        offers = sorted(
            ((totals[row] + gain, row, token) for row, ways in enumerate(step.offers) for token, gain in ways),
            key=lambda offer: -offer[0],
        )
        following = steps[number + 1] if number + 1 < len(steps) else None
        kept = (
            {}
            if following is None
            else {key: row for row, key in enumerate(zip(following.parents, following.tokens, strict=True))}
        )
        grown: dict[int, tuple[int, float, tuple[int, ...]]] = {}
        for rank, (total, row, token) in enumerate(offers):
            tokens = (*prefixes[row], token)
            state = "finished" if tokens in ended else "kept" if (row, token) in kept else "dropped"
            if total == -math.inf or (rank >= most and state == "dropped"):
                continue
            if state == "kept":
                grown[kept[row, token]] = (len(nodes), total, tokens)
            nodes.append(Node(tokenizer.pieces([token])[0], number + 1, rows[row], f"{total:.2f}", state))
        if following is None:
            break
        lost = (0, -math.inf, ())  # a row that has no way on and only fills the beam
        rows, totals, prefixes = map(
            list, zip(*(grown.get(row, lost) for row in range(len(following.tokens))), strict=True)
        )
    return nodes


def force_word(tokenizer: Tokenizer, word: str, step: int) -> Edits:
    """A word that is to be written from a step on."""
    return Edits(forced={step + n: token for n, token in enumerate(_ids(tokenizer, word))})


def forbid_word(tokenizer: Tokenizer, word: str, step: int) -> Edits:
    """A word that may not be begun at a step: its first piece, whether or not other words begin with it."""
    return Edits(forbidden={step: frozenset(_ids(tokenizer, word)[:1])})


def _ids(tokenizer: Tokenizer, word: str) -> list[int]:
    found = tokenizer.encode(word.strip())
    if not found:
        raise UserError(f"{word!r} is no word: name one to force or forbid")
    return found


def panels(found: Decoding, until: int | None = None) -> list[Panel]:
    """The tree up to a step (None: all of it), the translations, and what the cache saved."""
    shown = [node for node in found.nodes if until is None or node.step <= until]
    with_cache, without = (sum(column) for column in zip(*found.saved, strict=True))
    rows: list[list[str | int | float]] = [
        [rank, round(hypothesis.score, 4), round(hypothesis.log_probability, 4), len(hypothesis.tokens), text]
        for rank, (hypothesis, text) in enumerate(zip(found.hypotheses, found.texts, strict=True), start=1)
    ]
    return [
        Tree(
            f"Beam {found.beam_size}: pieces with the log-probability of the whole beginning (nats). Framed: "
            "finished; faint: dropped",
            shown,
        ),
        Table("Finished translations", ["rank", "score", "log-probability", "pieces with </s>", "text"], rows),
        Lines(
            "Multiplications of each step for one hypothesis",
            "step",
            "multiplications",
            [float(step) for step in range(1, len(found.saved) + 1)],
            {
                "with the key-value cache": [float(own) for own, _ in found.saved],
                "without: the whole beginning again": [float(other) for _, other in found.saved],
            },
        ),
        Prose(
            "The cache holds keys and values of the pieces written so far and grows by one a step. In all "
            f"{with_cache:,} multiplications "
            f"instead of {without:,}: {without / with_cache:.1f} times less."
        ),
    ]
