"""What a view shows: a few kinds of panel, each of them numbers with labels, as they are drawn, printed or saved.

A view is a list of panels. `drawing` makes HTML of them, `figures` a still picture; here they become text and JSON.
"""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seq2seq.insight.heatmap import HeatMap


@dataclass(frozen=True)
class Link:
    """A cell that leads to a panel of code."""

    text: str
    anchor: str


Cell = str | int | float | Link
SHOWN = 8  # numbers of a vector in a terminal


@dataclass(frozen=True)
class Prose:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Table:
    """Rows of cells; numbers stand to the right."""

    caption: str
    head: list[str]
    rows: list[list[Cell]]


@dataclass(frozen=True)
class Vectors:
    """Vectors of one length, one a row: positive numbers in blue, negative ones in orange."""

    caption: str
    labels: list[str]
    values: NDArray[np.floating[Any]]  # (rows, length)


@dataclass(frozen=True)
class Bars:
    """Numbers from 0 up, one a label, for one or more series."""

    caption: str
    labels: list[str]
    series: dict[str, list[float]]


@dataclass(frozen=True)
class Lines:
    """Values of some series over the same x; `logarithmic` is for values of many sizes."""

    caption: str
    x_label: str
    y_label: str
    x: list[float]
    series: dict[str, list[float]]
    logarithmic: bool = False


@dataclass(frozen=True)
class Point:
    """A labelled place in three dimensions; `kind` decides its colour and shape."""

    label: str
    kind: str
    place: tuple[float, float, float]


@dataclass(frozen=True)
class Cloud:
    """Points in three dimensions that can be turned."""

    caption: str
    points: list[Point]


@dataclass(frozen=True)
class SmallMaps:
    """Many attention maps between the same rows and columns, each with a name."""

    caption: str
    names: list[str]
    weights: NDArray[np.floating[Any]]  # (maps, rows, columns)
    rows: list[str]
    columns: list[str]


@dataclass(frozen=True)
class Node:
    """A step of a search: a piece that continues the node `parent` (None: the root)."""

    label: str
    step: int
    parent: int | None
    note: str  # its score, for instance
    state: str  # kept, dropped or finished


@dataclass(frozen=True)
class Tree:
    """Beginnings of translations as they branch; nodes come after their parents."""

    caption: str
    nodes: list[Node]


@dataclass(frozen=True)
class Code:
    """A function or a page of the docs as it stands in the project; links lead to its anchor."""

    caption: str
    text: str
    anchor: str


@dataclass(frozen=True)
class Docs:
    """A section of the docs, in Markdown; links lead to its anchor."""

    caption: str
    text: str
    anchor: str


Panel = Prose | Table | HeatMap | Vectors | Bars | Lines | Cloud | SmallMaps | Tree | Code | Docs


def number(value: float) -> str:
    """A number as people read it: four digits that count."""
    if not math.isfinite(value):
        return {"nan": "–", "inf": "∞", "-inf": "−∞"}[str(value)]
    if abs(value) >= 1e6:
        return f"{value / 1e6:,.4g} M"
    if value == 0 or abs(value) >= 0.001:
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:.2e}"


def cell_text(cell: Cell) -> str:
    """A cell as it is read."""
    if isinstance(cell, Link):
        return cell.text
    if isinstance(cell, int):
        return f"{cell:,}"
    return cell if isinstance(cell, str) else number(cell)


def as_json(view: str, title: str, panels: Sequence[Panel]) -> bytes:
    """All numbers of a view, in full."""
    values = {
        "view": view,
        "title": title,
        "panels": [{"kind": type(panel).__name__, **_plain(panel)} for panel in panels],
    }
    return (json.dumps(values, ensure_ascii=False, indent=1) + "\n").encode()


def _plain(value: Any) -> Any:
    """Dataclasses, arrays and numbers as JSON has them; what is not finite is a text."""
    if hasattr(value, "__dataclass_fields__"):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


def as_text(panels: Iterable[Panel]) -> str:
    """A view for the terminal."""
    return "\n\n".join("\n".join(_text(panel)) for panel in panels)


def _text(panel: Panel) -> list[str]:
    """Lines: the caption, if there is one, and what it is about."""
    match panel:
        case Prose():
            lines = []
        case Table():
            lines = _columns([panel.head, *([cell_text(cell) for cell in row] for row in panel.rows)])
        case HeatMap():
            lines = _grid(panel.rows, panel.columns, [[f"{weight:.2f}" for weight in row] for row in panel.weights])
        case Vectors():
            shown = [[*map(number, row[:SHOWN]), *["…"] * (len(row) > SHOWN)] for row in panel.values.tolist()]
            lines = _columns([[label, *row] for label, row in zip(panel.labels, shown, strict=True)])
        case Bars():
            lines = _grid(panel.labels, list(panel.series), _by_label(panel.series))
        case Lines():
            lines = _grid(list(map(number, panel.x)), list(panel.series), _by_label(panel.series))
        case Cloud():
            named = [point for point in panel.points if point.kind != "word"]
            lines = _columns(
                [["", "", "x", "y", "z"], *([one.kind, one.label, *map(number, one.place)] for one in named)]
            )
            lines += [f"and {len(panel.points) - len(named)} words"] * (len(named) < len(panel.points))
        case SmallMaps():
            lines = [f"{len(panel.names)} maps, from {panel.names[0]} to {panel.names[-1]}: see .html, .png or .json"]
        case Tree():
            lines = list(_branches(panel.nodes, None))
        case Code() | Docs():
            lines = panel.text.splitlines()
    return [panel.text if isinstance(panel, Prose) else panel.caption, *lines]


def _branches(nodes: Sequence[Node], parent: int | None) -> Iterator[str]:
    """Nodes under their parents, each with all that comes of it."""
    for place, node in enumerate(nodes):
        if node.parent == parent:
            yield f"{'  ' * node.step}{node.label}  {node.note} {node.state}"
            yield from _branches(nodes, place)


def _by_label(series: dict[str, list[float]]) -> list[list[str]]:
    return [[number(value) for value in values] for values in zip(*series.values(), strict=True)]


def _grid(rows: Sequence[str], columns: Sequence[str], cells: Sequence[Sequence[str]]) -> list[str]:
    return _columns([["", *columns], *([row, *values] for row, values in zip(rows, cells, strict=True))])


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Cells under one another, the first column to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        " ".join(
            [f"{row[0]:<{widths[0]}}", *(f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]
