"""Still pictures by matplotlib, as PNG bytes; no window, no global state."""

import io
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray

from seq2seq.errors import UserError
from seq2seq.insight.heatmap import HeatMap
from seq2seq.insight.panels import Bars, Cloud, Lines, Panel, SmallMaps, Tree, Vectors

Picture = HeatMap | Bars | Vectors | Lines | Cloud | SmallMaps | Tree
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


def panels_png(panels: Sequence[Panel], title: str) -> bytes:
    """The pictures of a view, one under the other; texts, tables and code are left to the other forms."""
    drawn = [panel for panel in panels if isinstance(panel, Picture)]
    if not drawn:
        raise UserError(f"{title}: this view is text and tables, so there is no picture of it: choose .html or .json")
    size = max(map(_width, drawn)), 0.6 + sum(map(_height, drawn))
    figure = Figure(figsize=size, dpi=110, layout="constrained")
    figure.suptitle(_literal(title), fontsize=11, wrap=True)
    parts = figure.subfigures(len(drawn), 1, squeeze=False, height_ratios=list(map(_height, drawn)))
    for part, panel in zip(parts[:, 0], drawn, strict=True):
        part.suptitle(_literal(panel.caption.replace("`", "")), fontsize=10, wrap=True)
        _DRAWN[type(panel)](part, panel)
    return _png(figure)


def _width(panel: Picture) -> float:
    """Inches: a tree grows with its steps."""
    return max(9.0, 1.1 * (1 + max(node.step for node in panel.nodes))) if isinstance(panel, Tree) else 9.0


def _height(panel: Picture) -> float:
    """Inches."""
    match panel:
        case HeatMap():
            height = 1.6 + 0.3 * len(panel.rows)
        case Bars():
            height = 1.0 + 0.22 * len(panel.labels) * len(panel.series)
        case Vectors():
            height = 1.3 + 0.22 * len(panel.labels)
        case SmallMaps():
            height = 0.6 + 1.15 * math.ceil(len(panel.names) / _MAPS_A_ROW)
        case Tree():
            height = 1.0 + 0.4 * max(Counter(node.step for node in panel.nodes).values(), default=1)
        case Cloud():
            height = 7.0
        case Lines():
            height = 3.5
    return height


def _draw_map(part: Any, panel: HeatMap) -> None:
    axes = part.subplots()
    axes.imshow(panel.weights, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    axes.set_xticks(range(len(panel.columns)), map(_literal, panel.columns), rotation=60, ha="right", fontsize=8)
    axes.set_yticks(range(len(panel.rows)), map(_literal, panel.rows), fontsize=8)


def _draw_bars(part: Any, panel: Bars) -> None:
    axes, width = part.subplots(), 0.8 / len(panel.series)
    for number, (name, values) in enumerate(panel.series.items()):
        places = [place + number * width for place in range(len(values))]
        axes.barh(places, values, width, label=_literal(name), color=_COLOURS[number % len(_COLOURS)])
    axes.set_yticks([place + 0.4 - width / 2 for place in range(len(panel.labels))], map(_literal, panel.labels))
    axes.invert_yaxis()
    if len(panel.series) > 1:
        axes.legend(fontsize=8)


def _draw_vectors(part: Any, panel: Vectors) -> None:
    axes = part.subplots()
    most = float(np.abs(panel.values).max(initial=0.0)) or 1.0
    colours = LinearSegmentedColormap.from_list("signs", ["#d55e00", "#f3f4f6", "#0072b2"])  # as on the page
    axes.imshow(panel.values, cmap=colours, vmin=-most, vmax=most, aspect="auto", interpolation="nearest")
    axes.set_xlabel(f"−{most:.3g} orange, 0, +{most:.3g} blue", fontsize=8)
    axes.set_yticks(range(len(panel.labels)), map(_literal, panel.labels), fontsize=8)


def _draw_lines(part: Any, panel: Lines) -> None:
    axes = part.subplots()
    for number, (name, values) in enumerate(panel.series.items()):
        style, colour = _STYLES[number % len(_STYLES)], _COLOURS[number % len(_COLOURS)]
        axes.plot(panel.x, values, style, marker="o", markersize=3, color=colour, label=_literal(name))
    axes.set_xlabel(_literal(panel.x_label))
    axes.set_ylabel(_literal(panel.y_label))
    axes.set_yscale("log" if panel.logarithmic else "linear")
    axes.legend(fontsize=8)


def _draw_cloud(part: Any, panel: Cloud) -> None:
    axes = part.subplots(subplot_kw={"projection": "3d"})
    for kind in dict.fromkeys(point.kind for point in panel.points):
        colour, mark, size = _POINTS.get(kind, ("#009e73", "o", 20))
        own = [point for point in panel.points if point.kind == kind]
        axes.scatter(*zip(*(point.place for point in own), strict=True), c=colour, marker=mark, s=size, label=kind)
        for point in own if kind != "word" else []:
            axes.text(*point.place, _literal(point.label), fontsize=7)
    axes.legend(fontsize=8)


def _draw_small_maps(part: Any, panel: SmallMaps) -> None:
    grid = part.subplots(math.ceil(len(panel.names) / _MAPS_A_ROW), _MAPS_A_ROW, squeeze=False)
    for axes in grid.flat:
        axes.set_axis_off()
    for axes, name, weights in zip(grid.flat, panel.names, panel.weights, strict=False):
        axes.imshow(weights, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
        axes.set_title(_literal(name), fontsize=6)


def _draw_tree(part: Any, panel: Tree) -> None:
    axes = part.subplots()
    axes.set_axis_off()
    used: Counter[int] = Counter()
    places = []
    for node in panel.nodes:
        places.append((node.step, -used[node.step]))
        used[node.step] += 1
    for node, (x, y) in zip(panel.nodes, places, strict=True):
        colour = {"kept": "#0072b2", "finished": "#b8860b"}.get(node.state, "#bbbbbb")
        if node.parent is not None:
            axes.plot([places[node.parent][0] + 0.3, x - 0.3], [places[node.parent][1], y], color=colour, linewidth=0.6)
        axes.text(x, y, f"{_literal(node.label)}\n{node.note}", ha="center", va="center", fontsize=7, color=colour)
    axes.set_xlim(-0.6, max(used, default=0) + 0.6)
    axes.set_ylim(-max(used.values(), default=1), 0.6)


_MAPS_A_ROW = 8
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")  # Okabe and Ito 2008
_STYLES = ("-", "--", ":", "-.")
_POINTS = {
    "word": ("#999999", ".", 8),
    "query": ("#d55e00", "D", 40),
    "key": ("#0072b2", "o", 24),
    "value": ("#009e73", "^", 24),
    "output": ("#b8860b", "*", 90),
}
_DRAWN: dict[type, Callable[[Any, Any], None]] = {
    HeatMap: _draw_map,
    Bars: _draw_bars,
    Vectors: _draw_vectors,
    Lines: _draw_lines,
    Cloud: _draw_cloud,
    SmallMaps: _draw_small_maps,
    Tree: _draw_tree,
}


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
