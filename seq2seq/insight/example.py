"""The chapter's worked example with its exact dimensions (section 8), and its row of scores (section 5).

Weights are random, drawn from a fixed seed: the example is about shapes, and about one word being one row.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from seq2seq.insight.panels import Bars, Panel, Prose, Table
from seq2seq.model import attend
from seq2seq.model.blocks import sinusoids

WORDS = ["the", "bank", "was", "crowded", "near", "river"]
VOCABULARY, D_MODEL, D_HEAD = 50_000, 128, 64
SCORES = [2.1, 1.7, 2.9, 0.6, 1.3, 0.2]
PRINTED = [0.10, 0.12, 0.38, 0.08, 0.25, 0.07]  # what the chapter says they become


@dataclass(frozen=True)
class Example:
    """The whole path of six words, and the row of "bank" by itself."""

    shapes: list[tuple[str, tuple[int, ...], str]]  # name, shape, what it is
    weights: Tensor  # (T, T) A
    output: Tensor  # (T, d_head) O
    one_word: Tensor  # (d_head,) O of "bank", computed for that word by itself
    softmax: list[float]  # of SCORES

    @property
    def distance(self) -> float:
        """The largest difference between the row of "bank" in O and the one-word computation."""
        return float((self.output[WORDS.index("bank")] - self.one_word).abs().max())


@torch.inference_mode()
def example(seed: int = 0) -> Example:
    """X, H = X + P, Q, K, V, S, A, O for six words; and q, scores, weights, O for "bank" by itself."""
    generator = torch.Generator().manual_seed(seed)
    embedding = torch.randn(VOCABULARY, D_MODEL, generator=generator)
    w_q, w_k, w_v = (torch.randn(D_HEAD, D_MODEL, generator=generator) / math.sqrt(D_MODEL) for _ in range(3))
    tokens = torch.randint(0, VOCABULARY, (len(WORDS),), generator=generator)
    x = embedding[tokens]  # (T, D)
    h = x + sinusoids(len(WORDS), D_MODEL)
    q, k, v = (h @ weight.T for weight in (w_q, w_k, w_v))  # (T, K) each
    output, scores, weights = (part[0, 0] for part in attend(q[None, None], k[None, None], v[None, None]))
    return Example(
        shapes=[
            ("E", tuple(embedding.shape), "an embedding for each of 50,000 words"),
            ("X", tuple(x.shape), "the embeddings of the six words"),
            ("H = X + P", tuple(h.shape), "with positions"),
            (
                "W_Q, W_K, W_V",
                tuple(w_q.shape),
                "as torch keeps them, for q = W h; the chapter prints 128 × 64, the shape for rows, Q = H W",
            ),
            ("Q, K, V", tuple(q.shape), "a query, key and value a word"),
            ("S", tuple(scores.shape), "each query against each key"),
            ("A", tuple(weights.shape), "each row sums to 1"),
            ("O", tuple(output.shape), "a mean of values a word"),
        ],
        weights=weights,
        output=output,
        one_word=_one_word(h, WORDS.index("bank"), w_q, w_k, w_v),
        softmax=torch.tensor(SCORES, dtype=torch.float64).softmax(dim=0).tolist(),
    )


def _one_word(h: Tensor, place: int, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> Tensor:
    """Section 8.1: one query against the key of each word, and the weighted mean of their values."""
    query = w_q @ h[place]  # (K,)
    scores = torch.stack([query @ (w_k @ word) for word in h]) / math.sqrt(D_HEAD)
    weights = scores.exp() / scores.exp().sum()
    return torch.stack([weight * (w_v @ word) for weight, word in zip(weights, h, strict=True)]).sum(dim=0)


def panels(found: Example) -> list[Panel]:
    """Shapes, the row of "bank", and the chapter's softmax put right."""
    bank = WORDS.index("bank")
    return [
        Prose(
            f"d_model {D_MODEL}, one head, d_head {D_HEAD}, a vocabulary of {VOCABULARY:,}, six tokens. "
            "The numbers are random: the example is about shapes."
        ),
        Table(
            "Shapes",
            ["what", "shape", "meaning"],
            [[name, " × ".join(f"{n:,}" for n in shape), what] for name, shape, what in found.shapes],
        ),
        Bars("The row of “bank” in A", WORDS, {"weight": found.weights[bank].tolist()}),
        Prose(
            f"The row of “bank” in O and the same computed for that word alone differ by {found.distance:.1e} at most."
        ),
        Table(
            "The chapter's row of scores",
            ["", *WORDS, "sum"],
            [
                ["scores", *SCORES, ""],
                ["softmax", *(round(weight, 2) for weight in found.softmax), round(sum(found.softmax), 2)],
                ["as printed", *PRINTED, round(sum(PRINTED), 2)],
            ],
        ),
        Prose(
            "The weights that the chapter prints for these scores do not follow from them: 1.7 is more than 1.3 "
            "and would weigh less (0.12 against 0.25). The line “softmax” has the right ones."
        ),
    ]
