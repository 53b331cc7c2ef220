"""Inline tags put round the words that translate theirs, by the word links of each sentence.

Offsets count characters: of the source text of a run, or of its translation.
"""

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import NamedTuple

from seq2seq.translation.plan import finished
from seq2seq.translation.result import SentenceTranslation
from seq2seq.translation.sentences import Piece


@dataclass
class Element:
    """An inline element of a text: its tags, and what it spans of the source."""

    opening: str
    closing: str = ""  # none if the source does not close it in this text
    start: int = 0
    end: int = 0


class Stretch(NamedTuple):
    """A part of a run's text and what became of it."""

    source: int  # where it begins in the source
    target: int  # where it begins in the translation
    text: str
    result: "str | SentenceTranslation"


@dataclass
class Node:
    """An element where it lies in the translation, with the elements inside it."""

    element: Element
    start: int
    end: int
    inside: list["Node"] = field(default_factory=list)


def tagged(elements: Sequence[Element], parts: Sequence[Piece], translated: Mapping[str, SentenceTranslation]) -> str:
    """The translation of a planned text as HTML, with its elements, which come in the order of their opening tags."""
    stretches = list(_stretches(parts, translated))
    text = "".join(each.result if isinstance(each.result, str) else each.result.text for each in stretches)
    top: list[Node] = []
    open_nodes: list[Node] = []
    for element in elements:
        while open_nodes and open_nodes[-1].element.end < max(element.end, element.start + 1):
            open_nodes.pop()
        node = Node(element, *_place(element, stretches))
        (open_nodes[-1].inside if open_nodes else top).append(node)
        open_nodes.append(node)
    _settle(top, 0, len(text))
    return _render(text, top, 0, len(text))


def _stretches(parts: Sequence[Piece], translated: Mapping[str, SentenceTranslation]) -> Iterator[Stretch]:
    source = target = 0
    for part in parts:
        result = finished(part, translated)
        yield Stretch(source, target, part.text, result)
        source += len(part.text)
        target += len(result if isinstance(result, str) else result.text)


def _place(element: Element, stretches: Sequence[Stretch]) -> tuple[int, int]:
    """Where an element lies in the translation."""
    found = [place for each in stretches if (place := _place_in(each, element.start, element.end)) is not None]
    if found:
        return min(start for start, _ in found), max(end for _, end in found)
    point = _point(element.start, stretches)
    return point, point


def _place_in(stretch: Stretch, start: int, end: int) -> tuple[int, int] | None:
    """The part of a stretch's translation that translates start:end of the source; None if nothing does."""
    low, high = max(start - stretch.source, 0), min(end - stretch.source, len(stretch.text))
    if not stretch.text[low:high].strip() or low >= high:
        return None
    if isinstance(stretch.result, str):
        return stretch.target + low, stretch.target + high
    if not (stretch.text[:low].strip() or stretch.text[high:].strip()):
        return stretch.target, stretch.target + len(stretch.result.text)
    sources = _word_spans(stretch.text, stretch.result.source_words)
    chosen = {number for number, (a, b) in enumerate(sources) if low <= (a + b - 1) / 2 < high}
    words = _words_for(stretch.result, chosen)
    if not words:
        return None
    targets = _word_spans(stretch.result.text, stretch.result.target_words)
    return stretch.target + targets[words[0]][0], stretch.target + targets[words[-1]][1]


def _words_for(sentence: SentenceTranslation, chosen: Collection[int]) -> list[int]:
    """Target words that stand together and translate some source words; the nearest one if none is linked with them."""
    linked = sorted({link.target for link in sentence.alignment if link.source in chosen})
    if linked or not chosen or not sentence.target_words:
        return _together(linked)
    drawn = sentence.word_attention()[:, sorted(chosen)].sum(axis=1)
    return [int(drawn.argmax())]


def _together(words: list[int]) -> list[int]:
    """Of words that belong to an element those that stand together: all, if fewer strangers stand between."""
    if not words or words[-1] - words[0] + 1 < 2 * len(words):
        return words
    runs = [[words[0]]]
    for word in words[1:]:
        if word == runs[-1][-1] + 1:
            runs[-1].append(word)
        else:
            runs.append([word])
    return max(runs, key=len)


def _word_spans(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Where words stand in a text that they were read from, in order."""
    spans, place = [], 0
    for word in words:
        start = max(text.find(word, place), place)
        spans.append((start, min(start + len(word), len(text))))
        place = spans[-1][1]
    return spans


def _point(place: int, stretches: Sequence[Stretch]) -> int:
    """Where something between two words of the source stands in the translation: before what translates the next."""
    for stretch in stretches:
        if place <= stretch.source:
            return stretch.target
        if place < stretch.source + len(stretch.text):
            after = _place_in(stretch, place, stretch.source + len(stretch.text))
            if after is not None:
                return after[0]
    last = stretches[-1] if stretches else None
    return last.target + len(last.result if isinstance(last.result, str) else last.result.text) if last else 0


def _settle(nodes: list[Node], low: int, high: int) -> None:
    """Widen elements to those inside them, and keep neighbours from crossing each other."""
    for node in nodes:
        _settle(node.inside, low, high)
        filled = [inner for inner in node.inside if inner.end > inner.start]
        node.start = min([node.start, *(inner.start for inner in filled)])
        node.end = max([node.end, *(inner.end for inner in filled)])
    nodes.sort(key=lambda node: (node.start, node.end))
    for left, right in itertools.pairwise(nodes):
        if left.end > right.start:
            _cut(left, right.start)


def _cut(node: Node, end: int) -> None:
    """End an element, and those in it, earlier."""
    node.end = max(min(node.end, end), node.start)
    for inner in node.inside:
        inner.start, inner.end = min(inner.start, node.end), min(inner.end, node.end)
        _cut(inner, node.end)


def _render(text: str, nodes: Sequence[Node], start: int, end: int) -> str:
    out, place = "", start
    for node in nodes:
        first, last = max(node.start, place), max(node.end, node.start, place)
        out += escape(text[place:first], quote=False) + node.element.opening
        out += _render(text, node.inside, first, last) + node.element.closing
        place = last
    return out + escape(text[place:end], quote=False)
