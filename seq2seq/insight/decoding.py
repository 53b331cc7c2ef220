"""Decoding as it happens: the beam as a tree, and what becomes of it when words are forced or forbidden.

The search is `translation.search`, watched through its step function; it runs in torch, whatever engine serves.
Shapes: R rows (one a beam), V vocabulary.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from seq2seq.data.tokenizer import Tokenizer
from seq2seq.errors import UserError
from seq2seq.insight.cost import cache_bytes, step_products
from seq2seq.insight.panels import Cell, Lines, Node, Panel, Prose, Table, Tree
from seq2seq.insight.scene import Scene
from seq2seq.translation.engine import Engine, Hypothesis
from seq2seq.translation.search import ModelStepper, Stepper, beam_search, greedy_search, top
from seq2seq.translation.torch_engine import TorchEngine

END = "</s>"
WIDEST = 10  # beams that are drawn


@dataclass(frozen=True)
class Edits:
    """What is changed in a search: token ids by step, counted from 0."""

    forced: Mapping[int, int] = field(default_factory=dict)
    forbidden: Mapping[int, frozenset[int]] = field(default_factory=dict)
    typed: Mapping[int, str] = field(default_factory=dict)  # what was asked for, by the steps that it takes

    def said(self, step: int) -> str:
        """A step, and what was to happen at it."""
        return f"step {step}" + (f" (of “{self.typed[step]}”)" if step in self.typed else "")


NOTHING = Edits()


def read_edits(tokenizer: Tokenizer, force: str | None, forbid: str | None) -> Edits:
    """Edits as people write them: "1=rive, 4=pleine"; a forced word may have several pieces.

    To forbid a word is to forbid its first piece at that step: other words may begin with it, and the model may
    still spell the word in other pieces.
    """
    forced: dict[int, int] = {}
    typed: dict[int, str] = {}
    for step, ids, part in _read(tokenizer, force):
        for place, token in enumerate(ids, start=step):
            if place in forced:
                raise UserError(f"two words are forced at step {place}")
            forced[place], typed[place] = token, part
    forbidden: dict[int, frozenset[int]] = {}
    for step, ids, part in _read(tokenizer, forbid):
        forbidden[step] = forbidden.get(step, frozenset()) | {ids[0]}
        typed.setdefault(step, part)
    return Edits(forced, forbidden, typed)


def _read(tokenizer: Tokenizer, text: str | None) -> list[tuple[int, list[int], str]]:
    """Step, token ids and the text of each edit; `</s>` is the end of the translation."""
    found = []
    for part in filter(str.strip, (text or "").split(",")):
        step, equals, word = (one.strip() for one in part.partition("="))
        ids = [tokenizer.eos_id] if word == END else tokenizer.encode(word)
        if not (equals and step.isdecimal() and ids):
            raise UserError(f"{part.strip()!r} must read step=word, as in 1=rive")
        found.append((int(step), ids, part.strip()))
    return found


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
        offers = [list(zip(*row, strict=True)) for row in zip(chosen.tolist(), gains.tolist(), strict=True)]
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

    beam_size: int
    nodes: list[Node]
    forbidden: list[tuple[int, str]]  # steps, and the pieces that were not allowed at them
    texts: list[str]  # translations that were finished, best first
    hypotheses: list[Hypothesis]
    pieces: list[str]  # of the best
    products: list[tuple[int, int]]  # multiplications of each step with the cache, and without
    cached: list[int]  # bytes of the cache after each step


@torch.inference_mode()
def decoding(scene: Scene, beam_size: int, edits: Edits = NOTHING) -> Decoding:
    """Watch the search for the translation of a sentence."""
    if not 1 <= beam_size <= WIDEST:
        raise UserError(f"beam size {beam_size} is not one of 1 to {WIDEST}, which can be drawn")
    engine, source = scene.translator.engine, scene.sentence.source_ids
    limit = engine.limit(source)
    if (last := max((*edits.forced, *edits.forbidden), default=0)) > limit - 2:
        ends = f"0 to {limit - 2}, after which a translation of this sentence ends"
        raise UserError(f"{edits.said(last)} is not one of {ends}")
    watched = Watched(Edited(stepper_of(engine, source), edits), max(3, 2 * beam_size))
    found = _search(watched, engine, limit, beam_size)
    if not found or found[0].log_probability == -math.inf:
        raise UserError("no translation is left: everything at some step is forbidden")
    if last >= len(watched.steps):
        raise UserError(f"{edits.said(last)} was not reached: every translation ended before it")
    config, vocabulary = engine.model.config, len(engine.tokenizer)
    lengths = range(1, len(found[0].tokens) + 1)
    return Decoding(
        beam_size=beam_size,
        nodes=marked(tree_of(watched.steps, found, engine.tokenizer, max(3, 2 * beam_size)), edits),
        forbidden=[
            (step, piece)
            for step, tokens in sorted(edits.forbidden.items())
            for piece in engine.tokenizer.pieces(sorted(tokens))
        ],
        texts=[engine.tokenizer.decode(hypothesis.tokens[:-1]) for hypothesis in found],
        hypotheses=found,
        pieces=engine.tokenizer.pieces(found[0].tokens),
        products=[
            (
                step_products(config, vocabulary, prefix, len(source), cached=True),
                step_products(config, vocabulary, prefix, len(source), cached=False),
            )
            for prefix in lengths
        ],
        cached=[cache_bytes(config, prefix) for prefix in lengths],
    )


def marked(nodes: Sequence[Node], edits: Edits) -> list[Node]:
    """The same, with forced pieces named so."""
    return [replace(node, note=f"{node.note} forced") if node.step - 1 in edits.forced else node for node in nodes]


def _search(stepper: Stepper, engine: Engine, limit: int, beam_size: int) -> list[Hypothesis]:
    bos, eos, alpha = engine.tokenizer.bos_id, engine.tokenizer.eos_id, engine.info.decode.length_penalty
    if beam_size == 1:
        return greedy_search(stepper, [limit], bos_id=bos, eos_id=eos, alpha=alpha)
    return beam_search(stepper, [limit], beam_size=beam_size, bos_id=bos, eos_id=eos, alpha=alpha)[0]


def stepper_of(engine: Engine, source: Sequence[int]) -> Stepper:
    """The step function over one sentence of ids: that of the engine, if it searches in torch."""
    src = torch.tensor([list(source)], device=engine.model.embedding.weight.device)
    return engine.stepper(src) if isinstance(engine, TorchEngine) else ModelStepper(engine.model, src)


def tree_of(steps: Sequence[_Step], finished: Sequence[Hypothesis], tokenizer: Tokenizer, most: int) -> list[Node]:
    """The best `most` ways on of every step as nodes: kept by the search, finished, or dropped."""
    nodes = [Node("<s>", 0, None, "0", "kept")]
    ended = {hypothesis.tokens: hypothesis for hypothesis in finished}
    rows = [_Row(0, 0.0, ())]
    for number, step in enumerate(steps):
        following = steps[number + 1] if number + 1 < len(steps) else _Step([], [], [])
        kept = {key: row for row, key in enumerate(zip(following.parents, following.tokens, strict=True))}
        grown: dict[int, _Row] = {}
        for rank, (total, parent, token) in enumerate(_offers(step, rows)):
            tokens = (*rows[parent].tokens, token)
            hypothesis = ended.pop(tokens, None)
            if hypothesis is None and (parent, token) not in kept and rank >= most:
                continue
            if hypothesis is None and (parent, token) in kept:
                grown[kept[parent, token]] = _Row(len(nodes), total, tokens)
            nodes.append(_node(tokenizer, tokens, rows[parent].node, total, hypothesis, (parent, token) in kept))
        for row in rows:  # a hypothesis whose end was not offered but forced, at the length limit
            for tokens in [tokens for tokens in ended if tokens[:-1] == row.tokens]:
                hypothesis = ended.pop(tokens)
                nodes.append(_node(tokenizer, tokens, row.node, hypothesis.log_probability, hypothesis, False))
        # A row that has no way on and only fills the beam has none here either.
        rows = [grown.get(row, _Row(0, -math.inf, (-1,))) for row in range(len(following.tokens))]
    return nodes


@dataclass(frozen=True)
class _Row:
    """A row of the search: its node, the log-probability and the tokens of its beginning."""

    node: int
    total: float
    tokens: tuple[int, ...]


def _offers(step: _Step, rows: Sequence[_Row]) -> list[tuple[float, int, int]]:
    """All ways on of a step that are possible, the best first: log-probability of the whole, row, token."""
    found = [(rows[row].total + gain, row, token) for row, ways in enumerate(step.offers) for token, gain in ways]
    return sorted((offer for offer in found if offer[0] > -math.inf), key=lambda offer: -offer[0])


def _node(
    tokenizer: Tokenizer, tokens: tuple[int, ...], parent: int, total: float, ended: Hypothesis | None, kept: bool
) -> Node:
    """A way on; one that has ended shows the score that it is ranked by."""
    state = "finished" if ended is not None else "kept" if kept else "dropped"
    note = f"{total:.2f}" if ended is None else f"{total:.2f} score {ended.score:.3f}"
    return Node(tokenizer.pieces([tokens[-1]])[0], len(tokens), parent, note, state)


def panels(found: Decoding, until: int | None = None) -> list[Panel]:
    """The tree up to a step (None: all of it), the translations, and what the cache holds and saves."""
    if until is not None and until < 1:
        raise UserError(f"until {until} must be at least 1")
    shown = [node for node in found.nodes if until is None or node.step <= until]
    caption = (
        f"Beam {found.beam_size}: pieces, and the log-probability of the whole beginning (nats, natural logarithm)"
    )
    return [
        *_forbidden(found),
        Tree(f"{caption}. Framed: finished, with its score; faint: dropped", shown),
        Table("Finished translations", ["rank", "score", "log-probability", "pieces", "text"], _ranked(found)),
        *_cache_panels(found, len(found.products) if until is None else min(until, len(found.products))),
    ]


def _forbidden(found: Decoding) -> list[Prose]:
    if not found.forbidden:
        return []
    pieces = ", ".join(f"“{piece}” at step {step}" for step, piece in found.forbidden)
    return [
        Prose(
            f"Forbidden: {pieces}. A word that is made of other pieces may still be spelled with those, the same word "
            "among them."
        )
    ]


def _ranked(found: Decoding) -> list[list[Cell]]:
    """A row a translation; one that the length limit cut says so."""
    return [
        [
            rank,
            round(one.score, 4),
            round(one.log_probability, 4),
            len(one.tokens),
            text + " (cut short)" * one.truncated,
        ]
        for rank, (one, text) in enumerate(zip(found.hypotheses, found.texts, strict=True), start=1)
    ]


def _cache_panels(found: Decoding, until: int) -> list[Panel]:
    """The best hypothesis step by step: the cache grows, and what is computed with and without it."""
    with_cache, without = (sum(column) for column in zip(*found.products, strict=True))
    rows: list[list[Cell]] = [
        [step, found.pieces[step], step + 1, found.cached[step], *found.products[step]] for step in range(until)
    ]
    return [
        Table(
            "The cache grows by one piece a step; multiplications for one hypothesis",
            ["step, from 0", "writes", "pieces in the cache", "bytes", "with the cache", "without"],
            rows,
        ),
        Lines(
            "Multiplications of each step for one hypothesis",
            "step, from 0",
            "multiplications",
            [float(step) for step in range(until)],
            {
                "with the key-value cache": [float(own) for own, _ in found.products[:until]],
                "without: the whole beginning again": [float(other) for _, other in found.products[:until]],
            },
        ),
        Prose(
            f"For the whole translation that is {with_cache:,} multiplications instead of {without:,}: "
            f"{without / with_cache:.1f} times fewer. The first step also makes keys and values of the source."
        ),
    ]
