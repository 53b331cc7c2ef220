"""The numeric recipe (section 14 and others): each step, its equation, and the function that computes it."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import seq2seq
from seq2seq.insight.panels import Code, Panel, Prose, Table
from seq2seq.model import AttentionTrace, KVCache, MultiHeadAttention, Transformer, attend, attend_fused
from seq2seq.model.attention import causal_mask, padding_mask
from seq2seq.model.blocks import DecoderBlock, EncoderBlock, FeedForward, sinusoids
from seq2seq.translation.search import beam_search


@dataclass(frozen=True)
class Step:
    """A step of the chapter: section of docs/attention.md, equation, function."""

    section: str
    name: str
    equation: str
    function: Callable[..., Any] | type

    @property
    def place(self) -> str:
        """File, line and name of the function, as an editor opens it."""
        path = Path(inspect.getsourcefile(self.function) or "").resolve()
        root = Path(seq2seq.__file__).resolve().parents[1]
        line = inspect.getsourcelines(self.function)[1]
        return f"{path.relative_to(root).as_posix()}:{line} {self.function.__qualname__}"


STEPS = (
    Step("Embedding and position", "a piece is looked up", "H = X + P, X = sqrt(D) E[piece]", Transformer.embed),
    Step("Embedding and position", "positions", "P[p, 2i] = sin(p / 10000^(2i/D)), P[p, 2i+1] = cos(…)", sinusoids),
    Step("Query, key, value", "three projections", "q = W_Q x, k = W_K x, v = W_V x", MultiHeadAttention.forward),
    Step("Scores and weights", "scores, mask, softmax, mixing", "softmax(Q K^T / sqrt(d_head) + M) V", attend),
    Step("Scores and weights", "the same as one kernel", "the same", attend_fused),
    Step("Scores and weights", "everything that one layer computed", "Q, K, V, S, A, O", AttentionTrace),
    Step("Masks", "no position sees the future", "M[i, j] = 0 for j <= i, -inf for j > i", causal_mask),
    Step("Masks", "padding is hidden", "M[j] = -inf where j is padding", padding_mask),
    Step("Heads", "heads joined and projected", "Concat(head_1 … head_H) W_O", MultiHeadAttention.project),
    Step("Residual", "encoder block", "X <- X + MHA(LN(X)); X <- X + FFN(LN(X))", EncoderBlock.forward),
    Step("Residual", "decoder block", "X <- X + MHA(LN(X), memory) between the two", DecoderBlock.forward),
    Step("Residual", "feed-forward layer", "FFN(x) = W_2 max(0, W_1 x + b_1) + b_2", FeedForward),
    Step("Cache", "keys and values of the past are kept", "O(T d) for the newest piece", KVCache),
    Step("Search", "log-probability / length ** alpha", "the best of some beginnings at each step", beam_search),
)  # fmt: skip


def panels() -> list[Panel]:
    """All steps, and the code of each."""
    return [
        Prose(
            "Every number on these pages is computed by one of these functions; the equations are explained in "
            "`docs/attention.md`."
        ),
        Table(
            "Equation and function of each step",
            ["section of docs/attention.md", "step", "equation", "function"],
            [[step.section, step.name, f"`{step.equation}`", f"`{step.place}`"] for step in STEPS],
        ),
        *(Code(step.place, inspect.cleandoc("\n" + inspect.getsource(step.function))) for step in STEPS),
    ]
