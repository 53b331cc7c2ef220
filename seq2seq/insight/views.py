"""One attention map of an inspection, as text, JSON, picture or page."""

import json
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from seq2seq.insight.inspection import Inspection
from seq2seq.insight.scene import KINDS, Kind
from seq2seq.translation.result import check_number


@dataclass(frozen=True)
class View:
    """Weights (rows, columns) between labelled positions."""

    name: str
    layer: int
    head: int | None  # None is the mean over heads
    source: str
    translation: str
    weights: NDArray[np.float32]
    rows: list[str]
    columns: list[str]

    @property
    def title(self) -> str:
        """What is shown, in words."""
        head = "mean over heads" if self.head is None else f"head {self.head}"
        return f"{KINDS[cast(Kind, self.name)]}, layer {self.layer}, {head}"


def choose(inspection: Inspection, name: str, layer: int | None, head: int | None) -> View:
    """Pick attention, layer and head. Cross-attention is between words, self-attention between pieces."""
    weights, rows, columns = inspection.view(name)
    sentence = inspection.sentence
    if layer is None:
        layer, default_head = sentence.default_choice if name == "cross" else (len(weights) - 1, None)
        head = default_head if head is None else head
    check_number("layer", layer, weights.shape[0])
    if head is not None:
        check_number("head", head, weights.shape[1])
    if name == "cross":
        chosen = sentence.word_attention(layer, head)
        rows, columns = sentence.target_words, sentence.source_words
    else:
        chosen = weights[layer].mean(axis=0) if head is None else weights[layer, head]
    return View(name, layer, head, sentence.source, sentence.text, chosen, rows, columns)


def as_text(view: View) -> str:
    """A table for the terminal: rows down, columns across, weights in percent."""
    width = max((len(label) for label in view.rows), default=0)
    widths = [max(len(label), 3) for label in view.columns]
    head = " ".join(f"{label:>{size}}" for label, size in zip(view.columns, widths, strict=True))
    lines = [view.source, view.translation, "", f"{view.title}, percent", " " * width + " " + head]
    for label, weights in zip(view.rows, view.weights, strict=True):
        cells = " ".join(f"{100 * weight:{size}.0f}" for weight, size in zip(weights, widths, strict=True))
        lines.append(f"{label:>{width}} {cells}")
    return "\n".join(lines)


def as_json(view: View) -> bytes:
    """All that is shown, as numbers."""
    values = {
        "view": view.name,
        "layer": view.layer,
        "head": view.head,
        "source": view.source,
        "translation": view.translation,
        "rows": view.rows,
        "columns": view.columns,
        "weights": [[round(float(weight), 6) for weight in row] for row in view.weights],
    }
    return (json.dumps(values, ensure_ascii=False, indent=1) + "\n").encode()


def as_png(view: View) -> bytes:
    """A picture."""
    from seq2seq.insight.figures import attention_png

    return attention_png(view.weights, view.rows, view.columns, view.title)


def as_html(view: View) -> bytes:
    """A page of its own: hover a word to see what it attends to."""
    from seq2seq.insight.heatmap import HeatMap, heatmap_page

    heatmap = HeatMap(weights=view.weights, rows=view.rows, columns=view.columns, caption=view.title)
    page: str = heatmap_page(heatmap, heading=f"{view.source} → {view.translation}")
    return page.encode()
