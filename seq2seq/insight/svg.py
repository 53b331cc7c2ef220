"""Panels that are pictures, as SVG: lines, clouds of points, small maps, trees. Colours come from the style sheet."""

import math
from collections.abc import Callable, Sequence
from html import escape

from seq2seq.insight.panels import Cloud, Lines, Point, SmallMaps, Tree, number

WIDTH, HEIGHT = 640, 360
LEFT, BOTTOM, EDGE = 96, 44, 12  # room for the labels of the axes
TURN = (0.5, 0.35)  # radians, about the upright axis and towards the eye: how a cloud lies at first
STEP, ROW = 118, 30  # of a tree, in pixels
FAINT = 0.02  # weights below it are not drawn in a small map
SHAPES = {"query": "diamond", "output": "star", "word": "dot"}  # of points; others are discs


def lines(panel: Lines) -> str:
    """Series over one x, with axes and a key."""
    values = [value for series in panel.series.values() for value in series]
    scale_x = _scale(panel.x, LEFT, WIDTH - EDGE, panel.logarithmic)
    scale_y = _scale(values, HEIGHT - BOTTOM, EDGE, panel.logarithmic)
    ticks = "".join(
        f'<text x="{scale_x(x):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{number(x)}</text>'
        for x in _thinned(panel.x, 8)
    ) + "".join(
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - EDGE}" y1="{scale_y(y):.1f}" y2="{scale_y(y):.1f}"/>'
        f'<text x="{LEFT - 6}" y="{scale_y(y) + 4:.1f}" text-anchor="end">{number(y)}</text>'
        for y in _ticks(values, panel.logarithmic)
    )
    drawn = ""
    for n, (name, series) in enumerate(panel.series.items()):
        places = [(scale_x(x), scale_y(y)) for x, y in zip(panel.x, series, strict=True)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        dots = "".join(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{escape(name)}, {number(at)}: '
            f"{number(value)}</title></circle>"
            for (x, y), at, value in zip(places, panel.x, series, strict=True)
        )
        drawn += f'<g class="series-{n}"><polyline points="{path}"/>{dots}</g>'
    axes = (
        f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{escape(panel.x_label)}</text>'
        f'<text x="14" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 14 '
        f'{HEIGHT / 2})">{escape(panel.y_label)}</text>'
    )
    key = "".join(f'<span class="series-{n}">{escape(name)}</span>' for n, name in enumerate(panel.series))
    return f'<div class="key">{key}</div>{_svg(WIDTH, HEIGHT, ticks + axes + drawn, panel.caption)}'


def _scale(values: Sequence[float], low: float, high: float, logarithmic: bool) -> Callable[[float], float]:
    """A function from values to pixels."""
    change = math.log10 if logarithmic else float
    least, most = (change(min(values)), change(max(values))) if logarithmic else (min(0.0, *values), max(values))
    span = (most - least) or 1.0
    return lambda value: low + (change(value) - least) / span * (high - low)


def _ticks(values: Sequence[float], logarithmic: bool) -> list[float]:
    if logarithmic:
        first, last = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        inside = [10.0**power for power in range(first, last + 1)]
        return [tick for tick in inside if min(values) <= tick <= max(values)] or [min(values), max(values)]
    least, most = min(0.0, *values), max(values)
    size = (most - least) / 4 or 1.0
    unit = 10.0 ** math.floor(math.log10(size))
    size = next(unit * m for m in (1, 2, 5, 10) if unit * m >= size)
    return [size * n for n in range(math.ceil(least / size), math.floor(most / size) + 1)]


def _thinned(values: Sequence[float], most: int) -> list[float]:
    step = max(1, math.ceil(len(values) / most))
    return list(values)[::step]


def cloud(panel: Cloud) -> str:
    """Points seen from one side; the script turns them by their `data-` places."""
    # However it is turned, the farthest point stays inside.
    size = max((math.hypot(*point.place) for point in panel.points), default=1.0) or 1.0
    drawn = "".join(_point(point, size) for point in sorted(panel.points, key=lambda point: point.kind != "word"))
    kinds = dict.fromkeys(point.kind for point in panel.points)
    key = "".join(f'<span class="point-{escape(kind)}">{escape(kind)}</span>' for kind in kinds)
    hint = "Drag with mouse or finger to turn it, or use the arrow keys."
    return (
        f'<div class="key">{key}</div>'
        '<svg class="turning" viewBox="-140 -108 280 216" tabindex="0" role="img" '
        f'aria-label="{escape(panel.caption)}" '
        f'data-turn="{TURN[0]} {TURN[1]}"><circle class="origin" r="1.5"/>{drawn}</svg><small>{hint}</small>'
    )


def _point(point: Point, size: float) -> str:
    x, y, z = (value / size for value in point.place)
    across, up = turned(x, y, z, *TURN)
    name = escape(point.label)
    label = "" if point.kind == "word" else f'<text x="4" y="1.5">{name}</text>'
    mark = {
        "diamond": '<path d="M0-4 4 0 0 4-4 0z"/>',
        "star": '<path d="M0-5 1.5-1.5 5 0 1.5 1.5 0 5-1.5 1.5-5 0-1.5-1.5z"/>',
        "dot": '<circle r="1"/>',
    }.get(SHAPES.get(point.kind, ""), '<circle r="2.6"/>')
    return (
        f'<g class="point point-{escape(point.kind)}" data-place="{x:.4f} {y:.4f} {z:.4f}" '
        f'transform="translate({100 * across:.2f} {-100 * up:.2f})"><title>{escape(point.kind)}: '
        f"{name}</title>{mark}{label}</g>"
    )


def turned(x: float, y: float, z: float, about: float, towards: float) -> tuple[float, float]:
    """Where a point appears, across and up, after a turn about the upright axis and one towards the eye."""
    across = x * math.cos(about) + z * math.sin(about)
    depth = -x * math.sin(about) + z * math.cos(about)
    return across, y * math.cos(towards) - depth * math.sin(towards)


def small_maps(panel: SmallMaps) -> str:
    """A grid of maps; one that is clicked grows and shows its words."""
    rows, columns = len(panel.rows), len(panel.columns)
    words = "".join(
        f'<text x="-0.3" y="{n + 0.7}" text-anchor="end">{escape(word)}</text>' for n, word in enumerate(panel.rows)
    ) + "".join(
        f'<text transform="translate({n + 0.7} -0.3) rotate(-60)">{escape(word)}</text>'
        for n, word in enumerate(panel.columns)
    )
    maps = ""
    for name, weights in zip(panel.names, panel.weights, strict=True):
        cells = "".join(
            f'<rect x="{j}" y="{i}" width="1" height="1" style="opacity:{weights[i, j]:.2f}">'
            f"<title>{escape(panel.rows[i])} ← {escape(panel.columns[j])} {weights[i, j]:.2f}</title></rect>"
            for i in range(rows)
            for j in range(columns)
            if weights[i, j] >= FAINT
        )
        maps += (
            '<button type="button" class="small-map" aria-expanded="false" '
            f'aria-label="{escape(name)}"><span>{escape(name)}</span>'
            f'<svg viewBox="0 0 {columns} {rows}" data-large="-7 -6 {columns + 8} {rows + 7}" data-small="0 0 '
            f'{columns} {rows}">'
            f'<rect class="ground" width="{columns}" height="{rows}"/>{cells}<g '
            f'class="words">{words}</g></svg></button>'
        )
    return f'<div class="maps">{maps}</div><small>Click a map, or press Enter on it, to see it large.</small>'


def tree(panel: Tree) -> str:
    """Steps from left to right; what was dropped is faint, what has ended is framed."""
    places: list[tuple[int, int]] = []
    used: dict[int, int] = {}
    for node in panel.nodes:
        row = used.get(node.step, 0)
        used[node.step] = row + 1
        places.append((node.step * STEP + 8, row * ROW + 20))
    edges = boxes = ""
    for node, (x, y) in zip(panel.nodes, places, strict=True):
        if node.parent is not None:
            from_x, from_y = places[node.parent]
            middle = x - 14
            curve = f"M{from_x + STEP - 22} {from_y} C{middle} {from_y} {middle} {y} {x} {y}"
            edges += f'<path class="edge {node.state}" d="{curve}"/>'
        boxes += (
            f'<g class="node {node.state}" transform="translate({x} {y})"><title>{escape(node.label)}: '
            f"{escape(node.note)}, {node.state}</title>"
            f'<rect x="0" y="-12" width="{STEP - 22}" height="24" rx="4"/><text x="5" '
            f'y="-1">{escape(_short(node.label))}</text>'
            f'<text class="note" x="5" y="9">{escape(node.note)}</text></g>'
        )
    width = (max(used, default=0) + 1) * STEP + 16
    height = max(used.values(), default=1) * ROW + 20
    size = f'style="width:{width}px" viewBox="0 0 {width} {height}"'
    return f'<svg class="branches" {size} role="group" aria-label="{escape(panel.caption)}">{edges}{boxes}</svg>'


def _short(text: str) -> str:
    return text if len(text) <= 12 else text[:11] + "…"


def _svg(width: int, height: int, inner: str, label: str) -> str:
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}">{inner}</svg>'
