"""The numeric recipe (section 14 and others): each step, its equation, and the function that computes it."""

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import seq2seq
from seq2seq.insight.panels import Cell, Code, Docs, Link, Panel, Prose, Table
from seq2seq.model import AttentionTrace, KVCache, MultiHeadAttention, Transformer, attend, attend_fused
from seq2seq.model.attention import causal_mask, padding_mask
from seq2seq.model.blocks import DecoderBlock, EncoderBlock, FeedForward, sinusoids
from seq2seq.translation.search import beam_search
from seq2seq.translation.torch_engine import TorchEngine

ROOT = Path(seq2seq.__file__).resolve().parents[1]
PAGE = ROOT / "docs/attention.md"


@dataclass(frozen=True)
class Step:
    """A step of the chapter: section of docs/attention.md, what is done, equation, function."""

    section: str
    name: str
    equation: str
    function: Callable[..., Any] | type


def place_of(function: Callable[..., Any] | type) -> str:
    """File, line and name of a function, as an editor opens it."""
    function = inspect.unwrap(function)
    path = Path(inspect.getsourcefile(function) or "").resolve()
    return f"{path.relative_to(ROOT).as_posix()}:{inspect.getsourcelines(function)[1]} {function.__qualname__}"


STEPS = (
    Step("Embedding and position", "a piece is looked up", "H = X + P, X = sqrt(D) E[piece]", Transformer.embed),
    Step("Embedding and position", "positions", "P[p, 2i] = sin(p / 10000^(2i/D)), P[p, 2i+1] = cos(…)", sinusoids),
    Step("Query, key, value", "three projections", "q = W_Q x + b_Q, and so k and v", MultiHeadAttention.forward),
    Step("Scores and weights", "scores, mask, softmax, mixing", "softmax(Q K^T / sqrt(d_head) + M) V", attend),
    Step("Scores and weights", "the same as one kernel", "the same", attend_fused),
    Step("Scores and weights", "everything that one layer computed", "Q, K, V, S, A, O", AttentionTrace),
    Step("Masks", "no position sees the future", "M[i, j] = 0 for j <= i, -inf for j > i", causal_mask),
    Step("Masks", "padding is hidden", "M[j] = -inf where j is padding", padding_mask),
    Step("Heads", "heads joined and projected", "W_O Concat(head_1 … head_H) + b_O", MultiHeadAttention.project),
    Step("Residual", "encoder block", "X <- X + MHA(LN(X)); X <- X + FFN(LN(X))", EncoderBlock.forward),
    Step("Residual", "decoder block", "X <- X + MHA(LN(X), memory) between the two", DecoderBlock.forward),
    Step("Residual", "feed-forward layer", "FFN(x) = W_2 max(0, W_1 x + b_1) + b_2", FeedForward),
    Step("Cache", "keys and values of the past are kept", "O(T d) for the newest piece", KVCache),
    Step("Explanation", "a word is left out", "log P(t | x) - log P(t | x without s)", TorchEngine.likelihood),
    Step("Search", "log-probability / length ** alpha", "the best of some beginnings at each step", beam_search),
)  # fmt: skip


@cache
def sections() -> dict[str, str]:
    """The sections of docs/attention.md by name; none where the package was installed without its docs."""
    if not PAGE.is_file():
        return {}
    parts = re.split(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def panels() -> list[Panel]:
    """All steps, the section that explains each, and its code."""
    said = "These functions are the model. What a view makes of their numbers is done by the function below it."
    return [Prose(said), *sources(tuple(dict.fromkeys(step.section for step in STEPS)))]


def sources(names: Sequence[str], own: Callable[..., Any] | None = None) -> list[Panel]:
    """The steps of some sections of docs/attention.md as a table with links, then these sections and the code.

    `own` is the function that makes a view of them.
    """
    chosen = [step for step in STEPS if step.section in names]
    explained = [name for name in names if name in sections()]
    functions = [step.function for step in chosen] + ([] if own is None else [own])
    rows: list[list[Cell]] = [
        [
            step.name,
            f"`{step.equation}`",
            _link(step.section) if step.section in explained else step.section,
            _link(place_of(step.function)),
        ]
        for step in chosen
    ]
    if own is not None:
        rows.append(["this view", "", "", _link(place_of(functions[-1]))])
    return [
        Table(
            "Where this is computed, and explained",
            ["step", "equation", "section of docs/attention.md", "function"],
            rows,
        ),
        *(Docs(f"docs/attention.md: {name}", sections()[name], _anchor(name)) for name in explained),
        *(Code(place_of(one), _source(one), _anchor(place_of(one))) for one in functions),
    ]


def _source(function: Callable[..., Any] | type) -> str:
    return inspect.cleandoc("\n" + inspect.getsource(inspect.unwrap(function)))


def _link(name: str) -> Link:
    return Link(name, _anchor(name))


def _anchor(name: str) -> str:
    return "recipe-" + re.sub(r"\W+", "-", name.casefold()).strip("-")
