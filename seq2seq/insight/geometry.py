"""The geometric picture (section 2 and the figure of section 8): a query among keys, and what comes of it.

Query, keys, values and output of one head are vectors of d_head numbers; a principal component analysis of them all
gives the three directions that keep most of their variance.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from seq2seq.insight.panels import Bars, Cloud, Panel, Point, Prose
from seq2seq.insight.scene import KINDS, Kind, Scene
from seq2seq.insight.vocabulary import frequent_words

WORDS = 300
Place = tuple[float, float, float]


@dataclass(frozen=True)
class Geometry:
    """Places of one query, all keys and values, its output and frequent words in one projection."""

    kind: Kind
    layer: int
    head: int
    asking: str
    answering: list[str]
    query: Place
    keys: list[Place]
    values: list[Place]
    output: Place
    words: list[tuple[str, Place]]  # their embeddings, as keys of this head
    weights: list[float]  # the softmax row, a key each
    kept: float  # share of the variance that three dimensions keep, 0 to 1


@torch.inference_mode()
def geometry(scene: Scene, kind: Kind, layer: int, head: int, asking: int) -> Geometry:
    """Look at one query of one head."""
    scene.check(layer, head, kind)
    trace = scene.attentions(kind)[layer]
    query, output = trace.Q[0, head, asking], trace.O[0, head, asking]
    rows, columns = scene.labels(kind)
    seen = asking + 1 if kind == "decoder" else len(columns)  # the mask hides later ones
    keys, values = trace.K[0, head, :seen], trace.V[0, head, :seen]
    centre, axes, kept = principal(torch.cat([query[None], keys, values, output[None]]))

    def place(vector: Tensor) -> Place:
        x, y, z = ((vector - centre) @ axes).tolist()
        return x, y, z

    tokens, words = frequent_words(scene.translator.tokenizer, WORDS)
    grey = word_keys(scene, kind, layer, tokens)[:, head].unbind() if tokens else ()
    return Geometry(
        kind=kind,
        layer=layer,
        head=head,
        asking=rows[asking],
        answering=columns[:seen],
        query=place(query),
        keys=list(map(place, keys)),
        values=list(map(place, values)),
        output=place(output),
        words=list(zip(words, map(place, grey), strict=True)),
        weights=trace.A[0, head, asking, :seen].tolist(),
        kept=kept,
    )


def principal(vectors: Tensor) -> tuple[Tensor, Tensor, float]:
    """Principal component analysis of vectors (N, K): their mean (K,), three axes (K, 3), the variance kept, 0 to 1.

    Vectors of fewer than three numbers have axes of zeros beside their own.
    """
    centre = vectors.mean(dim=0)
    _, spread, axes = torch.linalg.svd(vectors - centre, full_matrices=True)
    variance = spread.square()
    return centre, functional.pad(axes[:3].T, (0, max(0, 3 - len(axes)))), float(variance[:3].sum() / variance.sum())


def word_keys(scene: Scene, kind: Kind, layer: int, tokens: list[int]) -> Tensor:
    """What a layer's heads would have for keys if they were given bare embeddings: (N, H, K)."""
    model = scene.model
    bare = model.embedding.weight[tokens] * model.config.d_model**0.5
    attention = scene.module(kind, layer)
    return attention.split(attention.w_k(scene.context_norm(kind, layer)(bare))[None])[0].transpose(0, 1)


def panels(found: Geometry) -> list[Panel]:
    """The cloud, and the softmax row beside it."""
    points = [
        *(Point(word, "word", place) for word, place in found.words),
        *(Point(f"k {label}", "key", place) for label, place in zip(found.answering, found.keys, strict=True)),
        *(Point(f"v {label}", "value", place) for label, place in zip(found.answering, found.values, strict=True)),
        Point(f"q {found.asking}", "query", found.query),
        Point(f"o {found.asking}", "output", found.output),
    ]
    where = f"{KINDS[found.kind]}, layer {found.layer}, head {found.head}"
    return [
        Cloud(f"“{found.asking}” asks: {where}", points),
        Bars("Softmax row: how much each key's value counts", found.answering, {"weight": found.weights}),
        Prose(
            f"The projection keeps {100 * found.kept:.0f} % of the variance of query, keys, values and output. What "
            "counts for a weight is the dot product of `q` and `k` in all dimensions: how long `k` is, and how far it "
            "points the way of `q`. So the key that lies nearest in the picture need not have the largest weight. "
            "The output is the mean of the values, weighted by the bars. Words: the embeddings of "
            f"{len(found.words)} frequent words as keys of this head, without any context."
        ),
    ]
