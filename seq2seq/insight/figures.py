"""Still pictures by matplotlib, as PNG bytes; no window, no global state."""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

_CELL = 0.42  # inches a word
_NUMBERS_UP_TO = 24  # words a side; in larger maps the numbers would not be readable


def attention_png(weights: NDArray[np.floating[Any]], rows: Sequence[str], columns: Sequence[str], title: str) -> bytes:
    """A heatmap of weights (rows, columns) in 0 to 1, row labels down, column labels across."""
    size = (3.0 + _CELL * len(columns), 2.2 + _CELL * len(rows))
    figure = Figure(figsize=size, dpi=150, layout="constrained")
    axes = figure.add_subplot()
    axes.imshow(weights, cmap="Blues", vmin=0.0, vmax=1.0, aspect="equal")
    axes.set_xticks(range(len(columns)), map(_literal, columns), rotation=60, ha="left", rotation_mode="anchor")
    axes.set_yticks(range(len(rows)), map(_literal, rows))
    axes.xaxis.tick_top()
    axes.set_xlabel(_literal(title))
    if max(len(rows), len(columns)) <= _NUMBERS_UP_TO:
        for (row, column), weight in np.ndenumerate(weights):
            if weight >= 0.01:
                colour = "white" if weight > 0.55 else "black"
                axes.text(column, row, f"{weight:.2f}", ha="center", va="center", fontsize=7, color=colour)
    return _png(figure)


def curves_png(rows: Sequence[dict[str, Any]]) -> bytes:
    """Training loss, dev loss and dev BLEU over updates, from the lines of `metrics.jsonl`."""
    figure = Figure(figsize=(8, 4.5), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    for name, style in (("loss", "-"), ("dev_loss", "o-")):
        updates, values = _series(rows, name)
        axes.plot(updates, values, style, label=f"{name.replace('_', ' ')} (nats a token)", markersize=4)
    axes.set_xlabel("update")
    axes.set_ylabel("cross-entropy")
    lines = list(axes.get_lines())
    updates, values = _series(rows, "dev_bleu")
    if updates:
        right = axes.twinx()
        lines += right.plot(updates, values, "s--", color="tab:green", label="dev BLEU (greedy)", markersize=4)
        right.set_ylabel("BLEU")
    axes.legend(lines, [str(line.get_label()) for line in lines], loc="center right")
    return _png(figure)


def _series(rows: Sequence[dict[str, Any]], name: str) -> tuple[list[int], list[float]]:
    found = [row for row in rows if name in row]
    return [row["update"] for row in found], [row[name] for row in found]


def _literal(text: str) -> str:
    """Text that matplotlib does not take for a formula."""
    return text.replace("$", r"\$")


def _png(figure: Figure) -> bytes:
    FigureCanvasAgg(figure)
    stream = io.BytesIO()
    figure.savefig(stream, format="png")
    return stream.getvalue()
