"""Subwords to words, and cross-attention to word links. Pure functions on lists and arrays.

Shapes: L layers, H heads, T target pieces, S source pieces (`</s>` included), I source words, J target words.
"""

import itertools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]

SPACE = "▁"
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_WORD = re.compile(r"\S+")
_OUTER = re.compile(r"^([^\w]*)(.*?)([^\w]*)$", re.DOTALL)
_CLITIC = re.compile(  # where a word is two in one: do|n't, it|'s, as|-tu, week|-end, l'|ami
    r"(?<=\w)(?=n['’]t\b|(?<!\b[cdjlmnst])['’](?:s|m|d|ll|re|ve)\b|-[^\W\d])|(?:(?<=\b[cdjlmnst]['’])|(?<=qu['’]))(?=\w)",
    re.IGNORECASE,
)


class Link(NamedTuple):
    """Target word j draws on source word i; 0-based."""

    source: int
    target: int
    weight: float


class Words(NamedTuple):
    """Words of a sentence and, for each, the indices of the pieces that make it up."""

    words: list[str]
    pieces: list[list[int]]


def merge_pieces(pieces: Sequence[str], clitics_apart: bool = False) -> Words:
    """Pieces (without `</s>`) to words: split at spaces, outer punctuation apart; and if asked clitics, `l'` `ami`."""
    text, spans = _surface(pieces)
    words: list[str] = []
    owners: list[list[int]] = []
    for start, end in _word_spans(text, clitics_apart):
        words.append(text[start:end])
        owners.append(_owned(text, spans, start, end))
    return Words(words, owners)


def given_words(words: list[str], spans: Sequence[tuple[int, int]], pieces: Sequence[str]) -> Words:
    """Words that stand at given places of a text, and the pieces of the text (without `</s>`) that make each up."""
    text, surface = _surface(pieces)
    shift = len(text) - len(text.lstrip(" "))  # the space that SentencePiece puts before a text
    return Words(words, [_owned(text, surface, start + shift, end + shift) for start, end in spans])


def _owned(text: str, spans: Sequence[tuple[int, int]], start: int, end: int) -> list[int]:
    """Pieces that belong to the word at start:end."""
    return [i for i, (a, b) in enumerate(spans) if _majority(text, a, b, start, end)]


def _surface(pieces: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """The text that pieces spell and the span of each; byte pieces in a row share the span of what they spell."""
    text, spans, index = "", [], 0
    while index < len(pieces):
        run = index
        while run < len(pieces) and _BYTE.fullmatch(pieces[run]):
            run += 1
        if run > index:
            spelled = bytes(int(piece[3:5], 16) for piece in pieces[index:run]).decode("utf-8", "replace")
        else:
            run, spelled = index + 1, pieces[index].replace(SPACE, " ")
        spans.extend([(len(text), len(text) + len(spelled))] * (run - index))
        text, index = text + spelled, run
    return text, spans


def _word_spans(text: str, clitics_apart: bool) -> list[tuple[int, int]]:
    """Spans of the words: opening punctuation, the word itself (or its parts), closing punctuation."""
    spans = []
    for match in _WORD.finditer(text):
        outer = _OUTER.match(match.group())
        assert outer is not None
        start = match.start()
        (opening, (low, high), closing) = map(outer.span, (1, 2, 3))
        cuts = [low + cut.start() for cut in _CLITIC.finditer(outer.group(2))] if clitics_apart else []
        parts = [opening, *itertools.pairwise([low, *cuts, high]), closing]
        spans += [(start + a, start + b) for a, b in parts if b > a]
    return spans


def _majority(text: str, a: int, b: int, start: int, end: int) -> bool:
    """Whether the span a:b, its spaces aside, lies in start:end for the larger part (the first half of a tie)."""
    inside = sum(1 for i in range(max(a, start), min(b, end)) if not text[i].isspace())
    before = sum(1 for i in range(a, min(b, start)) if not text[i].isspace())
    after = sum(1 for i in range(max(a, end), b) if not text[i].isspace())
    return inside > before and inside >= after and inside > 0


def find_words(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Where words stand in a text that they were read from, in order, whatever their case.

    A word that is not found has an empty span.
    """
    spans, place, folded = [], 0, _folded(text)
    for word in words:
        start = folded.find(_folded(word), place)
        if start < 0:
            spans.append((place, place))
            continue
        place = start + len(word)
        spans.append((start, place))
    return spans


def _folded(text: str) -> str:
    """Lower case of the same length."""
    return "".join(lower if len(lower := character.lower()) == 1 else character for character in text)


def word_attention(attention: "Array", source: Words, target: Words) -> "Array":
    """(T, S) weights between pieces -> (J, I) between words: summed over source pieces, averaged over target pieces.

    The columns of `</s>` belong to no word, so rows sum to less than 1 by what `</s>` drew.
    """
    import numpy as np

    columns = [attention[:, pieces].sum(axis=1) for pieces in source.pieces]
    by_source = np.stack(columns, axis=1) if columns else np.zeros((len(attention), 0), dtype=attention.dtype)
    nothing = np.zeros(by_source.shape[1], dtype=attention.dtype)  # a mark whose piece belongs to the word before it
    rows = [by_source[pieces].mean(axis=0) if pieces else nothing for pieces in target.pieces]
    return np.stack(rows) if rows else np.zeros((0, by_source.shape[1]), dtype=attention.dtype)


def read_at(attention: "Array", step: str) -> "Array":
    """(T, S) attention of a forced pass -> the row that belongs to each target piece when it is read at a step.

    At the `output` step the query predicts the piece, at the `input` step it has just read it (Chen et al. 2020,
    section 3): the same attention, one row later. The last row, of `</s>`, stays.
    """
    import numpy as np

    return attention if step == "output" else np.concatenate([attention[1:], attention[-1:]])


def read_choice(maps: "Array", layer: int, head: int | None, step: str) -> "Array":
    """(L, H, T, S) attention of a forced pass -> (T, S) of one head, or the mean of all, read at a step."""
    return read_at(maps[layer].mean(axis=0) if head is None else maps[layer][head], step)


def word_links(attention: "Array", source: Words, target: Words, step: str) -> list[Link]:
    """(T, S) attention of a forced pass, read at a step -> links between words."""
    words = word_attention(read_at(attention, step), source, target)
    return links(words, source.words, target.words)


def links(words: "Array", source: Sequence[str], target: Sequence[str], taught: bool = False) -> list[Link]:
    """(J, I) word attention -> for every target word the source word that it draws on most, if it draws on any.

    The mark that ends the source draws attention from everywhere, as `</s>` does (Clark et al. 2019, section 3.2), so
    it is always linked with the mark that ends the target, and with nothing else. A head that was taught looks at
    `</s>` for a word that has no source (the NULL of Brown et al. 1993): such a word is linked with nothing.
    """
    end_mark = ends_with_mark(source)
    inner = words[:, :-1] if end_mark else words
    least = 1 - words.sum(axis=1) if taught else [0.0] * len(words)
    found = [
        Link(int(row.argmax()), j, float(row.max()))
        for j, (row, end) in enumerate(zip(inner, least, strict=True))
        if row.size and row.max() > max(end, 0.0)
    ]
    if end_mark and ends_with_mark(target):
        last = Link(len(source) - 1, len(target) - 1, float(words[-1, -1]))
        found = [*(link for link in found if link.target < last.target), last]
    return found


def with_terms(
    found: Sequence[Link],
    words: "Array",
    source: Sequence[str],
    target: Sequence[str],
    terms: Sequence[tuple[str, str]],
) -> list[Link]:
    """Links in which the words of each term lead to those of its translation, whatever the (J, I) attention says."""
    links_of = {link.target: link for link in found}
    for term, translation in terms:
        sources, targets = _run(source, term.split()), _run(target, translation.split())
        for i, j in zip([*sources, *sources[-1:] * len(targets)], targets, strict=False):
            links_of[j] = Link(i, j, float(words[j, i]))
    return [links_of[j] for j in sorted(links_of)]


def _run(words: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Places of the first words in a row that are those wanted, whatever their case; none if there are none."""
    folded, wanted = [word.casefold() for word in words], [word.casefold() for word in wanted]
    starts = range(len(folded) - len(wanted) + 1)
    first = next((start for start in starts if folded[start : start + len(wanted)] == wanted), None)
    return [] if first is None else list(range(first, first + len(wanted)))


def ends_with_mark(words: Sequence[str]) -> bool:
    """Whether the last word is punctuation."""
    return bool(words) and not any(map(str.isalnum, words[-1]))


def agreement(first: Sequence[Link], second: Sequence[Link]) -> float:
    """Share of links that two sets have in common (F1), 0 to 1."""
    a, b = ({(link.source, link.target) for link in found} for found in (first, second))
    return 2 * len(a & b) / (len(a) + len(b)) if a or b else 0.0


def choose_layer(found: Sequence[Sequence[Sequence[Link]]]) -> int:
    """The layer whose mean-head links agree best with its neighbours', over sentences of L sets of links.

    A choice without gold links: attention that aligns is stable from layer to layer, attention that does something
    else is not (the idea of agreement as in Chen et al. 2020, section 4, there between two directions).
    """
    layers = len(found[0]) if found else 0
    if layers < 2:
        return 0
    totals = [0.0] * layers
    for sentence in found:
        between = [agreement(a, b) for a, b in itertools.pairwise(sentence)]
        for layer in range(layers):
            near = between[max(layer - 1, 0) : layer + 1]
            totals[layer] += sum(near) / len(near)
    return totals.index(max(totals))
