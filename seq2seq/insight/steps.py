"""Query, key and value step by step (sections 3 to 7): one row of one head, recomputed from the weights.

Nothing is taken from the trace but what goes in; at the end the result is held against the layer's own.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from seq2seq.insight.panels import Bars, Cell, Panel, Prose, Table, Vectors, number
from seq2seq.insight.scene import KINDS, Inputs, Kind, Scene
from seq2seq.model import AttentionTrace, MultiHeadAttention
from seq2seq.model.attention import causal_mask


@dataclass(frozen=True)
class Steps:
    """Every quantity on the way from one state to the next; D d_model, K d_head, H heads, T queries, S keys."""

    kind: Kind
    layer: int
    head: int
    asking: int
    answering: int
    labels: tuple[list[str], list[str]]  # of queries and keys
    scaled: bool
    shapes: dict[str, tuple[int, ...]]
    x: Tensor  # (D,) LN(h) of the one that asks
    w_q: Tensor  # (K, D) this head's rows of W_Q,
    b_q: Tensor  # (K,) and of b_Q
    query: Tensor  # (K,)
    key: Tensor  # (K,) of the one that answers
    products: Tensor  # (K,) their products, number by number
    raw: Tensor  # (S,) q . k for every key
    scores: Tensor  # (S,) divided by sqrt(d_head), if `scaled`
    mask: Tensor  # (S,) 0 where allowed, -inf where not
    exponentials: Tensor  # (S,) of masked scores less the largest, so that none overflows
    weights: Tensor  # (S,)
    values: Tensor  # (S, K)
    output: Tensor  # (K,) O
    projected: Tensor  # (D,) W_O of the O of all heads, joined, and b_O
    residual: Tensor  # (D,) h
    result: Tensor  # (D,) h' = h + W_O O + b_O
    distance: float  # the largest difference between `projected` and what the layer itself gives,
    largest: float  # and the largest number in that: float32 holds seven digits of it

    @property
    def relative(self) -> float:
        """The distance as a share of the largest number, or of 1 if that is smaller."""
        return self.distance / max(self.largest, 1.0)


@torch.inference_mode()
def steps(
    scene: Scene, kind: Kind, layer: int, head: int, asking: int, answering: int, *, scaled: bool = True
) -> Steps:
    """Recompute what one head makes of one query; `scaled=False` leaves out the division by sqrt(d_head)."""
    scene.check(layer, head, kind)
    given, attention = scene.inputs(kind, layer), scene.module(kind, layer)
    x, context = given.x[asking], given.context
    d_head = attention.w_q.out_features // attention.heads
    q = (attention.w_q.weight @ x + attention.w_q.bias).view(attention.heads, d_head)  # (H, K)
    k, v = (
        (context @ part.weight.T + part.bias).view(len(context), attention.heads, d_head).transpose(0, 1)
        for part in (attention.w_k, attention.w_v)
    )  # (H, S, K)
    raw = (k @ q[:, :, None])[:, :, 0]  # (H, S)
    scores = raw / math.sqrt(d_head) if scaled else raw
    mask = causal_mask(len(context))[asking] if kind == "decoder" else torch.zeros(len(context))
    exponentials = (scores + mask - (scores + mask).amax(dim=1, keepdim=True)).exp()
    weights = exponentials / exponentials.sum(dim=1, keepdim=True)
    outputs = (weights[:, None, :] @ v)[:, 0]  # (H, K)
    projected = attention.w_o.weight @ outputs.flatten() + attention.w_o.bias
    result, own = given.residual[asking] + projected, layer_output(attention, given, kind)[asking]
    return Steps(
        kind=kind,
        layer=layer,
        head=head,
        asking=asking,
        answering=answering,
        labels=scene.labels(kind),
        scaled=scaled,
        shapes=_shapes(scene.attentions(kind)[layer], attention, given, kind),
        x=x,
        w_q=attention.w_q.weight.view(attention.heads, d_head, -1)[head],
        b_q=attention.w_q.bias.view(attention.heads, d_head)[head],
        query=q[head],
        key=k[head, answering],
        products=q[head] * k[head, answering],
        raw=raw[head],
        scores=scores[head],
        mask=mask,
        exponentials=exponentials[head],
        weights=weights[head],
        values=v[head],
        output=outputs[head],
        projected=projected,
        residual=given.residual[asking],
        result=result,
        distance=float((projected - own).abs().max()),
        largest=float(own.abs().max()),
    )


@torch.inference_mode()
def layer_output(attention: MultiHeadAttention, given: Inputs, kind: Kind) -> Tensor:
    """MHA(LN(h)) by the layer itself, on the path by which it translates: (T, D)."""
    keys_values = attention.keys_values(given.context[None]) if kind == "cross" else None
    mask = causal_mask(len(given.x)) if kind == "decoder" else None
    output: Tensor = attention(given.x[None], keys_values=keys_values, mask=mask)
    return output[0]


def _shapes(
    trace: AttentionTrace, attention: MultiHeadAttention, given: Inputs, kind: Kind
) -> dict[str, tuple[int, ...]]:
    d_head = attention.w_q.out_features // attention.heads
    asks, answers = ("X", "X") if kind != "cross" else ("X (decoder)", "memory (encoder)")
    found = {asks: tuple(given.x.shape), answers: tuple(given.context.shape)}
    found |= {f"W_{letter} of a head": (d_head, given.x.size(1)) for letter in "QKV"}
    found |= {letter: tuple(getattr(trace, letter).shape[2:]) for letter in ("Q", "K", "V", "S", "A", "O")}
    return found | {"W_O": tuple(attention.w_o.weight.shape)}


def entropy(weights: Tensor) -> float:
    """How spread out a row of weights is, in bits: 0 for a single key."""
    positive = weights[weights > 0]
    return float(-(positive * positive.log2()).sum())


def panels(found: Steps) -> list[Panel]:
    """The walk from X to h', a panel a step."""
    return [
        _question(found),
        Table(
            "1. Shapes", ["what", "shape"], [[name, " × ".join(map(str, size))] for name, size in found.shapes.items()]
        ),
        *_one_number(found),
        *_one_score(found),
        _all_weights(found),
        _division(found),
        *_output(found),
        Prose(_verdict(found)),
    ]


def _question(found: Steps) -> Prose:
    asks, answers = found.labels[0][found.asking], found.labels[1][found.answering]
    seen = int((found.mask == 0).sum())
    hidden = "" if found.mask[found.answering] == 0 else f"; the mask hides “{answers}” from it"
    where = f"{KINDS[found.kind].capitalize()}, layer {found.layer}, head {found.head}"
    return Prose(
        f"{where}: “{asks}” asks, {seen} of {len(found.mask)} pieces may answer; “{answers}” is looked at{hidden}."
    )


def _one_number(found: Steps) -> list[Panel]:
    """How one number of q, the largest, comes out of x."""
    place = int(found.query.abs().argmax())
    products = found.w_q[place] * found.x
    return [
        Vectors(
            f"From `x` to `q`: number {place} of `q`, the largest, is row {place} of this head's `W_Q` times `x`",
            ["x = LN(h)", f"W_Q[{place}]", "products"],
            torch.stack([found.x, found.w_q[place], products]).numpy(),
        ),
        Prose(
            f"The {len(products)} products sum to {number(float(products.sum()))}; with `b_Q[{place}]` = "
            f"{number(float(found.b_q[place]))} that is `q[{place}]` = {number(float(found.query[place]))}. So with "
            "every number of `q`, `k` and `v`; `k` and `v` are made of the states that answer."
        ),
    ]


def _one_score(found: Steps) -> list[Panel]:
    """q, k and their products, which sum to one score."""
    asks, answers = found.labels[0][found.asking], found.labels[1][found.answering]
    d_head, total = len(found.query), float(found.products.sum())
    would = "that is" if found.scaled else "that would be"
    divided = f"Divided by sqrt({d_head}) = {number(math.sqrt(d_head))} {would} {number(total / math.sqrt(d_head))}."
    divided += "" if found.scaled else " Here it is not divided."
    return [
        Vectors(
            f"2. `q` of “{asks}”, `k` of “{answers}”, and their products, number by number",
            ["q", "k", "q · k"],
            torch.stack([found.query, found.key, found.products]).numpy(),
        ),
        Prose(f"3. The {d_head} products sum to {number(total)}. {divided}"),
    ]


def _all_weights(found: Steps) -> Table:
    """From scores to weights, a key a row."""
    divided = "divided by `sqrt(d_head)`" if found.scaled else "not divided"
    columns = (found.raw, found.scores, found.mask, found.exponentials, found.weights)
    rows: list[list[Cell]] = [
        [label, *(float(column[place]) for column in columns)] for place, label in enumerate(found.labels[1])
    ]
    total = number(float(found.exponentials.sum()))
    return Table(
        f"4. From scores to weights: scores are {divided}, masked, exponentiated, and divided by their sum ({total})",
        ["key", "q · k", "score", "mask", "exp(score − largest)", "weight"],
        rows,
    )


def _division(found: Steps) -> Bars:
    """The row with the division by sqrt(d_head) and without."""
    with_it = (found.raw / math.sqrt(len(found.query)) + found.mask).softmax(dim=0)
    without = (found.raw + found.mask).softmax(dim=0)
    bits = f"{entropy(with_it):.2f} bits with the division, {entropy(without):.2f} without"
    sharper = ": without it the row is sharper" if entropy(without) < entropy(with_it) else ""
    series = {"divided by sqrt(d_head)": with_it.tolist(), "not divided": without.tolist()}
    return Bars(f"5. Weights: {bits}{sharper}", found.labels[1], series)


def _output(found: Steps) -> list[Panel]:
    """Values mixed, heads joined and projected, and the sum with the state."""
    answers, weight = found.labels[1][found.answering], float(found.weights[found.answering])
    own = found.values[found.answering]
    return [
        Vectors(
            f"`v` of “{answers}”, and that times its weight, {number(weight)}",
            ["v", "weight · v"],
            torch.stack([own, weight * own]).numpy(),
        ),
        Vectors(
            "6. Values times weights; their sum is `O`",
            [*found.labels[1], "O"],
            torch.cat([found.weights[:, None] * found.values, found.output[None]]).numpy(),
        ),
        Vectors(
            "7. `O` of all heads joined and projected, and added to the state: `h' = h + W_O O + b_O`",
            ["h", "W_O O + b_O", "h'"],
            torch.stack([found.residual, found.projected, found.result]).numpy(),
        ),
    ]


def _verdict(found: Steps) -> str:
    """How far the walk has come from what the model did."""
    if found.scaled:
        return (
            f"Recomputed from the weights, the output `W_O O + b_O` is {found.distance:.1e} away from the layer's own "
            f"in the worst of its {len(found.result)} numbers; the largest of them is {number(found.largest)}, so that "
            f"is {found.relative:.1e} of it."
        )
    return (
        f"Without the division the output is up to {number(found.distance)} away from the layer's own: this is not "
        "what the model did, but what it would have done."
    )
