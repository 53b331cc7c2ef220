"""A weight matrix between words as an interactive HTML table; no network, no library.

Pointing at a word (mouse, keyboard or finger) lights the words on the other side in proportion to their weights.
"""

from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seq2seq.insight.page import html_page
from seq2seq.translation import alignment
from seq2seq.translation.alignment import Words, merge_pieces
from seq2seq.translation.result import SentenceTranslation

STRONG = 0.7  # from this weight on the text of a cell flips between black and white (see heatmap.css)
_NUMBERS_UP_TO = 24  # columns; in wider maps the numbers have no room and stay in the titles
_FAINT = 0.005  # smaller weights, which would read 0.00, leave their cell empty
_HINT = "Point at, tap or tab to a word to see what it draws on, or what draws on it."


@dataclass(frozen=True)
class HeatMap:
    """Weights in 0 to 1, (rows, columns): the words of the rows draw on the words of the columns."""

    weights: NDArray[np.floating[Any]]
    rows: list[str]
    columns: list[str]
    caption: str

    def __post_init__(self) -> None:
        labels = (len(self.rows), len(self.columns))
        if self.weights.shape != labels:
            raise ValueError(f"weights have the shape {self.weights.shape}, the labels ask for {labels}")


def cross_attention(
    sentence: SentenceTranslation, layer: int, head: int | None, *, pieces: bool = False, end: bool = False
) -> tuple[NDArray[np.float32], list[str], list[str]]:
    """Weights (target, source) of one layer and head (None: their mean), target labels, source labels.

    Between words, or between subword pieces; `</s>` has a row and a column only if `end` is set.
    """
    target, source = sentence.target_tokens, sentence.source_tokens
    weights = sentence.read_attention(layer, head)
    if pieces:
        return (weights, target, source) if end else (weights[:-1, :-1], target[:-1], source[:-1])
    if not end:
        return sentence.word_attention(layer, head), sentence.target_words, sentence.source_words
    rows, columns = _words_and_end(target), _words_and_end(source)
    return alignment.word_attention(weights, columns, rows), rows.words, columns.words


def _words_and_end(tokens: list[str]) -> Words:
    """Pieces to words, with `</s>` as a last word of its own."""
    words = merge_pieces(tokens[:-1])
    return Words([*words.words, tokens[-1]], [*words.pieces, [len(tokens) - 1]])


def heatmap_fragment(map: HeatMap) -> str:
    """The map as a table with a line that says what the pointed word draws on.

    The page around it must hold `heatmap_style()` and `heatmap_script()` once.
    """
    dense = " dense" if len(map.columns) > _NUMBERS_UP_TO else ""
    caption = escape(map.caption)
    heads = "".join(
        f'<th scope="col" data-column="{index}" tabindex="0" title="{escape(word)}"><span>{escape(word)}</span></th>'
        for index, word in enumerate(map.columns)
    )
    return (
        f'<figure class="heatmap{dense}"><figcaption>{caption}</figcaption>'
        f'<output aria-live="polite" data-hint="{_HINT}">{_HINT}</output>'
        f'<div class="heatmap-box" tabindex="0" role="region" aria-label="{caption}">'
        f'<table style="--columns:{len(map.columns)}">'
        f'<thead><tr><th class="corner" aria-hidden="true"></th>{heads}</tr></thead>'
        f"<tbody>{_rows(map)}</tbody></table></div></figure>"
    )


def _rows(map: HeatMap) -> str:
    columns = [escape(word) for word in map.columns]
    return "\n".join(
        _row(index, escape(word), columns, weights)
        for index, (word, weights) in enumerate(zip(map.rows, map.weights, strict=True))
    )


def _row(index: int, word: str, columns: list[str], weights: NDArray[np.floating[Any]]) -> str:
    """One row of weights between escaped words."""
    cells = (_cell(word, column, float(weight)) for column, weight in zip(columns, weights, strict=True))
    header = f'<th scope="row" tabindex="0" title="{word}"><span>{word}</span></th>'
    return f'<tr data-row="{index}">{header}{"".join(cells)}</tr>'


def _cell(row: str, column: str, weight: float) -> str:
    """One weight between two escaped words."""
    strong = ' class="strong"' if weight >= STRONG else ""
    number = f"{weight:.2f}" if weight >= _FAINT else ""
    return f'<td{strong} style="--w:{weight:.4f}" title="{row} ← {column} {weight:.4f}">{number}</td>'


def heatmap_page(map: HeatMap, heading: str) -> str:
    """A complete HTML file that needs nothing else."""
    body = f"<h1>{escape(heading)}</h1>\n{heatmap_fragment(map)}"
    return html_page(heading, body, look="heatmap-page", style=heatmap_style(), script=heatmap_script())


@cache
def heatmap_script() -> str:
    """JavaScript that lights words, for all maps on a page."""
    return Path(__file__).with_suffix(".js").read_text(encoding="utf-8")


@cache
def heatmap_style() -> str:
    """CSS of the maps, light and dark."""
    return Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
