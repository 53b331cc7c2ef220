"""Translations damaged on purpose, to fit and to measure what finds such damage: it is known where it is.

A content word is taken out, replaced by one of another translation, said twice or added, or a run of words is taken
out. This is artificial: the errors of models are of other kinds, too (Dale et al. 2023, "HalOmi").
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from seq2seq.translation.alignment import find_words
from seq2seq.translation.evidence import Pair
from seq2seq.translation.result import SentenceTranslation

FREQUENT = 100  # words that are counted as function words
LETTERS = 4  # of a content word, at least
RUN = 3  # words that are taken out together, at most
WHOLE = "whole"
KINDS = ("word removed", "words removed", "word replaced", "word repeated", "word added")


@dataclass(frozen=True)
class Case:
    """A sentence with a translation, and which of their words are to blame where it is wrong."""

    source: str
    target: str
    kind: str = WHOLE
    omitted: frozenset[int] = frozenset()  # source words that nothing translates
    invented: frozenset[int] = frozenset()  # target words without a source
    named: bool = True  # whether the words to blame are known
    pair: Pair | None = None  # the very pieces that were read and written; else those of the texts


def whole(sentence: SentenceTranslation) -> Case:
    """A translation as it is."""
    return Case(sentence.source, sentence.text)


class Damager:
    """Damages translations, drawing on the words of all of them; the most `frequent` ones are left alone."""

    def __init__(self, sentences: Sequence[SentenceTranslation], seed: int = 0, frequent: int = FREQUENT) -> None:
        counts = Counter(word.casefold() for sentence in sentences for word in sentence.target_words)
        self._frequent = {word for word, _ in counts.most_common(frequent)}
        self._random = random.Random(seed)
        places = ((sentence, place) for sentence in sentences for place in self._content(sentence))
        self._words = [sentence.target_words[place] for sentence, place in places]

    def damage(self, sentences: Sequence[SentenceTranslation]) -> Iterator[Case]:
        """Each that has a content word, in a way drawn at random."""
        for sentence in sentences:
            if content := self._content(sentence):
                kind = self._random.choice(KINDS)
                yield self._damaged(sentence, self._random.choice(content), kind)

    def _content(self, sentence: SentenceTranslation) -> list[int]:
        """Places of the content words, but for the first word, whose capital would tell."""
        return [
            place
            for place, word in enumerate(sentence.target_words)
            if place and sum(map(str.isalpha, word)) >= LETTERS and word.casefold() not in self._frequent
        ]

    def _damaged(self, sentence: SentenceTranslation, place: int, kind: str) -> Case:
        text, spans = sentence.text, find_words(sentence.text, sentence.target_words)
        start, end = spans[place]
        word = text[start:end]
        if kind in ("word removed", "words removed"):
            last = place if kind == "word removed" else max(place, min(place + RUN, len(spans) - 1) - 1)
            left = text[:start].rstrip() + text[spans[last][1] :]
            return Case(sentence.source, left, kind, omitted=_sources(sentence, set(range(place, last + 1))))
        if kind == "word replaced":
            changed = text[:start] + self._stranger(word) + text[end:]
            return Case(sentence.source, changed, kind, _sources(sentence, {place}), frozenset({place}))
        added = word if kind == "word repeated" else self._stranger(word)
        return Case(sentence.source, f"{text[:end]} {added}{text[end:]}", kind, invented=frozenset({place + 1}))

    def _stranger(self, word: str) -> str:
        """A content word of some translation, and not this one."""
        others = [other for other in self._words if other.casefold() != word.casefold()]
        return self._random.choice(others) if others else word[::-1]


def _sources(sentence: SentenceTranslation, gone: set[int]) -> frozenset[int]:
    """Source words whose strongest link was with one of these target words."""
    strongest = {link.source: link.target for link in sorted(sentence.alignment, key=lambda link: link.weight)}
    return frozenset(source for source, target in strongest.items() if target in gone)
