"""Inline tags put round the words that translate theirs, by the word links of each sentence.

Offsets count characters: of the source text of a run, or of its translation.
"""

import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape

from seq2seq.translation.alignment import find_words
from seq2seq.translation.plan import finished
from seq2seq.translation.result import SentenceTranslation
from seq2seq.translation.sentences import Piece


@dataclass
class Element:
    """An inline element of a text: its tags, and what it spans of the source."""

    name: str
    opening: str
    closing: str = ""  # none if the source does not close it in this text
    start: int = 0
    end: int = 0
    parent: int | None = None  # the number of the element that it is in
    depth: int = 1  # elements that it is in, itself counted
    glued: bool = False  # whether it belongs to the word before it


@dataclass
class Node:
    """An element where it lies in the translation, with the elements inside it."""

    element: Element
    start: int
    end: int
    inside: list["Node"] = field(default_factory=list)


@dataclass(frozen=True)
class Stretch:
    """A part of a text and what became of it."""

    source: int  # where it begins in the source
    target: int  # where it begins in the translation
    text: str
    result: str | SentenceTranslation

    @property
    def translation(self) -> str:
        """What it became."""
        return self.result if isinstance(self.result, str) else self.result.text

    @cached_property
    def source_spans(self) -> list[tuple[int, int]]:
        """Where the source words stand in `text`."""
        return [] if isinstance(self.result, str) else find_words(self.text, self.result.source_words)

    @cached_property
    def target_spans(self) -> list[tuple[int, int]]:
        """Where the target words stand in the translation."""
        return [] if isinstance(self.result, str) else find_words(self.result.text, self.result.target_words)

    @cached_property
    def targets(self) -> dict[int, list[int]]:
        """Target words of every source word that has a link."""
        found: dict[int, list[int]] = {}
        for link in [] if isinstance(self.result, str) else self.result.alignment:
            found.setdefault(link.source, []).append(link.target)
        return found


class Stretches:
    """The parts of a text in order, found by their place in it."""

    def __init__(self, parts: Sequence[Piece], translated: Mapping[str, SentenceTranslation]) -> None:
        self.all: list[Stretch] = []
        source = target = 0
        for part in parts:
            self.all.append(Stretch(source, target, part.text, finished(part, translated)))
            source += len(part.text)
            target += len(self.all[-1].translation)
        self._starts = [stretch.source for stretch in self.all]

    @property
    def text(self) -> str:
        """The whole translation."""
        return "".join(stretch.translation for stretch in self.all)

    def between(self, start: int, end: int) -> list[Stretch]:
        """Those that have something of start:end of the source."""
        return self.all[max(0, bisect_right(self._starts, start) - 1) : bisect_left(self._starts, end)]

    def from_place(self, place: int) -> Iterator[Stretch]:
        """Those that end behind a place of the source."""
        return itertools.islice(self.all, max(0, bisect_right(self._starts, place) - 1), None)


class Text:
    """A translation as HTML, piece by piece: what is no markup is escaped, and atoms stand for their placeholders."""

    def __init__(self, text: str, atoms: Mapping[str, str]) -> None:
        self.text, self.atoms = text, dict(atoms)
        self._placeholder = re.compile("|".join(map(re.escape, atoms)) or "(?!)")

    def html(self, start: int, end: int) -> str:
        """A stretch of it; each atom is put in once."""
        out, place = [], start
        for match in self._placeholder.finditer(self.text, start, end):
            if match.group() in self.atoms:
                out += [escape(self.text[place : match.start()], quote=False), self.atoms.pop(match.group())]
                place = match.end()
        return "".join([*out, escape(self.text[place:end], quote=False)])


def tagged(
    elements: Sequence[Element],
    atoms: Mapping[str, str],
    parts: Sequence[Piece],
    translated: Mapping[str, SentenceTranslation],
) -> str:
    """The translation of a planned text as HTML, with its elements, which come in the order of their opening tags.

    `atoms` are placeholders of the text and the HTML that they stand for.
    """
    stretches = Stretches(parts, translated)
    text = stretches.text
    nodes = [Node(element, *_place(element, stretches)) for element in elements]
    top: list[Node] = []
    for node in nodes:
        parent = node.element.parent
        (top if parent is None else nodes[parent].inside).append(node)
    source = "".join(part.text for part in parts)
    for placeholder, raw in atoms.items():
        if placeholder not in text:  # it is lost, so it goes where its neighbours went
            point = _point(source.index(placeholder), stretches)
            top.append(Node(Element("", raw), point, point))
    _settle(top)
    return _render(Text(text, atoms), top, 0, len(text))


def _place(element: Element, stretches: Stretches) -> tuple[int, int]:
    """Where an element lies in the translation."""
    spanned = stretches.between(element.start, element.end)
    found = [place for each in spanned if (place := _place_in(each, element.start, element.end)) is not None]
    if found:
        return min(start for start, _ in found), max(end for _, end in found)
    point = _end_before(element.start, stretches) if element.glued else None
    if point is None:
        point = _point(element.start, stretches)
    return point, point


def _place_in(stretch: Stretch, start: int, end: int) -> tuple[int, int] | None:
    """The part of a stretch's translation that translates start:end of the source; None if nothing does."""
    low, high = max(start - stretch.source, 0), min(end - stretch.source, len(stretch.text))
    if low >= high or not stretch.text[low:high].strip():
        return None
    if isinstance(stretch.result, str):
        return stretch.target + low, stretch.target + high
    if not (stretch.text[:low].strip() or stretch.text[high:].strip()):
        return stretch.target, stretch.target + len(stretch.result.text)
    if (verbatim := _verbatim(stretch, low, high)) is not None:
        return verbatim
    chosen = {number for number, (a, b) in enumerate(stretch.source_spans) if low <= (a + b - 1) / 2 < high}
    words = _words_for(stretch, stretch.result, chosen)
    if not words:
        return None
    return stretch.target + stretch.target_spans[words[0]][0], stretch.target + stretch.target_spans[words[-1]][1]


def _verbatim(stretch: Stretch, low: int, high: int) -> tuple[int, int] | None:
    """Where low:high of a stretch stands in its translation, if it stands there as it is, and once on either side."""
    text, found = stretch.text[low:high].strip(), stretch.translation
    if stretch.text.count(text) != 1 or found.count(text) != 1:
        return None
    start = found.index(text)
    if _cuts_a_word(found, start, start + len(text)) and not _cuts_a_word(stretch.text, low, high):
        return None
    return stretch.target + start, stretch.target + start + len(text)


def _cuts_a_word(text: str, start: int, end: int) -> bool:
    """Whether a stretch begins or ends within a word."""
    return any(text[place - 1 : place].isalnum() and text[place : place + 1].isalnum() for place in (start, end))


def _words_for(stretch: Stretch, sentence: SentenceTranslation, chosen: Collection[int]) -> list[int]:
    """Target words that stand together and translate some source words; the nearest one if none is linked with them."""
    linked = sorted({target for source in chosen for target in stretch.targets.get(source, [])})
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


def _end_before(place: int, stretches: Stretches) -> int | None:
    """Where the translation of the word that ends at a place of the source ends; none if nothing translates it."""
    for stretch in stretches.between(place - 1, place):
        if isinstance(stretch.result, str):
            return stretch.target + place - stretch.source
        span = next((span for span in stretch.source_spans if span[1] == place - stretch.source > span[0]), None)
        found = _place_in(stretch, stretch.source + span[0], place) if span else None
        if found is not None:
            return found[1]
    return None


def _point(place: int, stretches: Stretches) -> int:
    """Where something between two words of the source stands in the translation: before what translates the next."""
    for stretch in stretches.from_place(place):
        if place <= stretch.source:
            return stretch.target
        low = place - stretch.source
        following = next((span for span in stretch.source_spans if span[0] >= low and span[1] > span[0]), None)
        if following is not None:
            after = _place_in(stretch, stretch.source + following[0], stretch.source + following[1])
            if after is not None:
                return after[0]
    last = stretches.all[-1:]
    return last[0].target + len(last[0].translation) if last else 0


def _settle(nodes: list[Node]) -> None:
    """Widen elements to those inside them, and keep neighbours from crossing each other."""
    for node in nodes:
        _settle(node.inside)
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


def _render(text: Text, nodes: Sequence[Node], start: int, end: int) -> str:
    out, place = [], start
    for node in nodes:
        first = min(max(node.start, place), end)
        last = min(max(node.end, first), end)
        out += [text.html(place, first), node.element.opening]
        out += [_render(text, node.inside, first, last), node.element.closing]
        place = last
    return "".join([*out, text.html(place, end)])
