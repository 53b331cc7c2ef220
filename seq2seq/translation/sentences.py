"""A text to the sentences in it and back, nothing lost.

Joining the pieces gives the text again, character for character. What lies between sentences (spaces, line ends,
emoji) and what has nothing to translate (numbers, punctuation, runs of letters too long for a word) is kept as it is.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

# Abbreviations that are followed by a name or a number rather than by the end of a sentence.
_TITLES = "mr mrs ms dr prof st sr jr rev gen col capt lt sgt hon pres gov sen rep m mme mlle"
_REFERENCES = "no nos vol pp fig vs e.g i.e cf approx mt ave jan feb mar apr jun jul aug sep sept oct nov dec"
ABBREVIATIONS = frozenset(f"{_TITLES} {_REFERENCES}".split())
_LINE = re.compile(r"[^\n]*\n?")
# Possessive, and tried once a run of marks or spaces: the time grows with the text's length and not with its square.
_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’»)\]]*+\s++(?=[\"'“‘«(\[¿¡—-]*[^\W_a-zß-ÿ]|[^\w\s\"'“‘«(\[.,;:!?])")
_LAST_WORD = re.compile(r"([^\W\d_](?:[\w.]*[^\W_])?)\.[\"'”’»)\]]*$")
_MARKER = re.compile(r"\s*(?:(?:[-*+•‣◦–—>#]{1,6}|\[[ xX]?\]|\d{1,3}[.)])\s+)++")
_BAR = re.compile(r"((?:(?<!\s)\s++)?\|\s*)")
_LABEL = re.compile(r"\s*[A-Z][\w-]{1,20}:\s+(?=\S)")
_LONGEST_ABBREVIATION = 20  # characters, closing quotes included
_SYMBOLS = ("So", "Cs", "Co")  # emoji and pictographs
_JOINERS = "\u200d\ufe0e\ufe0f\u20e3"  # what glues emoji together
_SKIN = range(0x1F3FB, 0x1F400)
_NO_WORD = re.compile(r"\w{46,}")  # the longest word of an English dictionary has 45 letters
_STRAIGHT = str.maketrans("‘’‚‛“”„‟", "''''" + '"' * 4)


class Piece(NamedTuple):
    """A stretch of a text; only what is translatable goes to the model."""

    text: str
    translatable: bool


def split_text(text: str) -> list[Piece]:
    """Lines, then sentences, then what surrounds them."""
    pieces: list[Piece] = []
    for line in _LINE.findall(text):
        marker = _marker(line)
        if marker:
            pieces.append(Piece(marker, translatable=False))
        for sentence in _cells(line[len(marker) :]):
            label = _label(sentence)
            if label:
                pieces.append(Piece(label, translatable=False))
            pieces.extend(_around_symbols(sentence[len(label) :]))
    return pieces


def split_sentences(line: str) -> list[str]:
    """Cut a line after every sentence; the space after a sentence stays with it."""
    sentences, start = [], 0
    for match in _END.finditer(line):
        if not _is_abbreviation(line[start : match.end()]):
            sentences.append(line[start : match.end()])
            start = match.end()
    if start < len(line):
        sentences.append(line[start:])
    return sentences


def _marker(line: str) -> str:
    """What stands before the text of a list's item, a quotation or a heading."""
    match = _MARKER.match(line)
    return match.group() if match and has_words(line[match.end() :]) else ""


def _cells(line: str) -> Iterator[str]:
    """The sentences of a line; the bars of a table stand between them."""
    for cell in _BAR.split(line):
        yield from split_sentences(cell)


def _label(sentence: str) -> str:
    """A word and a colon before a sentence ("Note: ..."), which are kept: a model that knows few labels invents one."""
    match = _LABEL.match(sentence)
    return match.group() if match and has_words(sentence[match.end() :]) else ""


def _is_abbreviation(sentence: str) -> bool:
    """Whether the full stop belongs to the last word: a known abbreviation or an initial."""
    match = _LAST_WORD.search(sentence.rstrip()[-_LONGEST_ABBREVIATION:])
    if match is None:
        return False
    word = match.group(1)
    return word.lower() in ABBREVIATIONS or (len(word) == 1 and word.isupper() and word != "I")


def _around_symbols(sentence: str) -> list[Piece]:
    """Sentence text apart from emoji, from what is no word, and from the white space around each stretch."""
    return [piece for stretch in _stretches(sentence) for piece in _around_no_words(stretch)]


def _around_no_words(stretch: str) -> Iterator[Piece]:
    """Text apart from runs of letters that no language has as a word, on which a model would only loop."""
    start = 0
    for match in _NO_WORD.finditer(stretch):
        yield from trim(stretch[start : match.start()])
        yield Piece(match.group(), translatable=False)
        start = match.end()
    yield from trim(stretch[start:])


def trim(stretch: str) -> list[Piece]:
    """Words apart from the white space around them; a stretch without words is kept whole, untranslated."""
    core = stretch.strip()
    if not has_words(core):
        return [Piece(stretch, translatable=False)] if stretch else []
    start = stretch.index(core)
    around = (Piece(stretch[:start], False), Piece(core, True), Piece(stretch[start + len(core) :], False))
    return [piece for piece in around if piece.text]


def _stretches(sentence: str) -> list[str]:
    """Runs of symbols and runs of everything else, in order."""
    if not any(map(_is_symbol, set(sentence))):
        return [sentence] if sentence else []
    runs: list[str] = []
    start, symbolic = 0, False
    for place, character in enumerate(sentence):
        symbol = _is_symbol(character) or (symbolic and character in _JOINERS)
        if symbol != symbolic and place:
            runs.append(sentence[start:place])
            start = place
        symbolic = symbol
    return [*runs, sentence[start:]]


@lru_cache(maxsize=4096)
def _is_symbol(character: str) -> bool:
    return (unicodedata.category(character) in _SYMBOLS and character not in "°©®™") or ord(character) in _SKIN


def has_words(text: str) -> bool:
    """Whether there is a letter, and so something to translate."""
    return any(character.isalpha() for character in text)


def tidy(sentence: str) -> str:
    """What the model reads: one space between words, straight quotes, no control or invisible formatting characters."""
    if not sentence.isprintable():
        sentence = "".join(c for c in sentence if c.isspace() or unicodedata.category(c) not in ("Cc", "Cf"))
    return " ".join(sentence.translate(_STRAIGHT).split())


def is_capitals(sentence: str) -> bool:
    """Whether a sentence of several words is written in capitals throughout; a single word may be an acronym."""
    several = sum(map(has_words, sentence.split())) > 1
    return several and sentence.isupper() and sum(map(str.isalpha, sentence)) > 3


def without_capitals(sentence: str) -> str:
    """A sentence in capitals as it is usually written, names aside."""
    lower = re.sub(r"\bi\b", "I", sentence.lower())
    first = next(index for index, character in enumerate(lower) if character.isalpha())
    return lower[:first] + lower[first].upper() + lower[first + 1 :]
