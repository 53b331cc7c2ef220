"""Panels as HTML: tables, bars and vectors of their own, pictures by `svg`, maps by `heatmap`. Nothing is loaded."""

from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from pathlib import Path

import numpy as np
from markdown_it import MarkdownIt

from seq2seq.insight import svg
from seq2seq.insight.heatmap import HeatMap, heatmap_fragment, heatmap_script, heatmap_style
from seq2seq.insight.page import html_page
from seq2seq.insight.panels import (
    Bars,
    Cell,
    Cloud,
    Code,
    Docs,
    Lines,
    Link,
    Panel,
    Prose,
    SmallMaps,
    Table,
    Tree,
    Vectors,
    cell_text,
    number,
)

POINTED = ("vectors", "lines", "cloud", "small-maps", "tree")  # kinds of panel with more to say than they show


def fragment(panels: Iterable[Panel]) -> str:
    """Panels one after the other; the page around them holds `style()` and `script()` once."""
    return f'<div class="panels">{"".join(map(_panel, panels))}</div>'


def page(title: str, panels: Sequence[Panel]) -> bytes:
    """A complete HTML file that needs nothing else."""
    body = f'<h1 class="panels-title">{escape(title)}</h1>\n{fragment(panels)}'
    return html_page(title, body, look="heatmap-page", style=style(), script=script()).encode()


@cache
def style() -> str:
    """CSS of all panels, light and dark."""
    return heatmap_style() + Path(__file__).with_name("panels.css").read_text(encoding="utf-8")


@cache
def script() -> str:
    """JavaScript of all panels: words that light up, clouds that turn, maps that grow."""
    return heatmap_script() + Path(__file__).with_name("panels.js").read_text(encoding="utf-8")


def _panel(panel: Panel) -> str:
    match panel:
        case Prose():
            return f"<p>{_prose(panel.text)}</p>"
        case HeatMap():
            return heatmap_fragment(panel)
        case Docs():
            return (
                f'<details id="{escape(panel.anchor)}"><summary>{escape(panel.caption)}</summary>'
                f'<div class="docs">{_markdown(panel.text)}</div></details>'
            )
        case Code():
            code = f"<pre><code>{escape(panel.text)}</code></pre>"
            return f'<details id="{escape(panel.anchor)}"><summary>{escape(panel.caption)}</summary>{code}</details>'
        case _:
            return _figure(panel.caption, *_picture(panel))


def _picture(panel: Table | Vectors | Bars | Lines | Cloud | SmallMaps | Tree) -> tuple[str, str]:
    """What stands under a caption, and the class of it."""
    match panel:
        case Table():
            found = _table(panel), "table"
        case Vectors():
            found = _vectors(panel), "vectors"
        case Bars():
            found = _bars(panel), "bars"
        case Lines():
            found = svg.lines(panel), "lines"
        case Cloud():
            found = svg.cloud(panel), "cloud"
        case SmallMaps():
            found = svg.small_maps(panel), "small-maps"
        case Tree():
            found = svg.tree(panel), "tree"
    return found


def _prose(text: str) -> str:
    """Text with what stands between backquotes as code."""
    parts = text.split("`")
    return "".join(f"<code>{escape(part)}</code>" if odd % 2 else escape(part) for odd, part in enumerate(parts))


def _markdown(text: str) -> str:
    """A page of the docs; links to files of the project, which a browser has not, become their names."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(text)
    for token in tokens:
        token.children = [one for one in token.children or () if one.type not in ("link_open", "link_close")]
    return str(parser.renderer.render(tokens, parser.options, {}))


def _figure(caption: str, inner: str, kind: str) -> str:
    """A captioned box that scrolls where it is too wide for the page."""
    title = f"<figcaption>{_prose(caption)}</figcaption>"
    label = escape(caption.replace("`", ""))
    box = f'<div class="panel-box" tabindex="0" role="region" aria-label="{label}">{inner}</div>'
    said = '<output aria-live="polite"></output>' if kind in POINTED else ""  # names what is pointed at
    return f'<figure class="panel {kind}">{title}{box}{said}</figure>'


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{_prose(title)}</th>' for title in table.head)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in table.rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(cell: Cell) -> str:
    if isinstance(cell, Link):
        return f'<td><a href="#{escape(cell.anchor)}">{escape(cell.text)}</a></td>'
    if isinstance(cell, str):
        return f"<td>{_prose(cell)}</td>"
    return f'<td class="number">{cell_text(cell)}</td>'


def _vectors(vectors: Vectors) -> str:
    """A row of coloured cells a vector, all on one scale."""
    largest = float(np.abs(vectors.values).max(initial=0.0)) or 1.0
    rows = "".join(
        f'<tr><th scope="row">{escape(label)}</th><td><div class="cells">'
        + "".join(_coloured(label, place, float(value), largest) for place, value in enumerate(row))
        + "</div></td></tr>"
        for label, row in zip(vectors.labels, vectors.values, strict=True)
    )
    scale = f"scale: −{number(largest)} orange, 0, +{number(largest)} blue"
    return f"<table>{rows}</table><small>{scale}; point at a number, tap it, or use the arrow keys</small>"


def _coloured(label: str, place: int, value: float, largest: float) -> str:
    sign = "minus" if value < 0 else "plus"
    title = f"{escape(label)}[{place}] = {number(value)}"
    return f'<i class="{sign}" style="--w:{abs(value) / largest:.3f}" title="{title}"></i>'


def _bars(bars: Bars) -> str:
    """A line a label, a bar a series, all on one scale."""
    largest = max((value for values in bars.series.values() for value in values), default=0.0) or 1.0
    several = len(bars.series) > 1
    key = "".join(f'<span class="series-{n}">{escape(name)}</span>' for n, name in enumerate(bars.series))
    rows = ""
    for place, label in enumerate(bars.labels):
        drawn = "".join(
            f'<div class="bar series-{n}" '
            f'style="--value:{max(values[place], 0) / largest:.4f}"><i></i><span>{number(values[place])}</span></div>'
            for n, values in enumerate(bars.series.values())
        )
        rows += f'<tr><th scope="row">{escape(label)}</th><td>{drawn}</td></tr>'
    return (f'<div class="key">{key}</div>' if several else "") + f"<table>{rows}</table>"
