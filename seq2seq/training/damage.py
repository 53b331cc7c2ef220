"""Translations damaged on purpose, to fit and to measure what finds such damage: it is known where it is.

One content word is taken out or replaced by one of another translation, or a run of words is taken out. This is
artificial: real models err in other ways, too (Dale et al. 2023).
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from seq2seq.translation.alignment import find_words
from seq2seq.translation.result import SentenceTranslation

FREQUENT = 100  # words that are counted as function words
LETTERS = 4  # of a content word, at least
RUN = 3  # words that are taken out together
KINDS = ("word removed", "word replaced", "words removed")


@dataclass(frozen=True)
class Case:
    """A sentence with a translation, whole or damaged, and which of their words are to blame."""

    source: str
    target: str
    kind: str  # one of KINDS, or "whole"
    omitted: frozenset[int] = frozenset()  # source words that nothing translates any more
    invented: frozenset[int] = frozenset()  # target words without a source


def whole(sentence: SentenceTranslation) -> Case:
    """A translation as it is."""
    return Case(sentence.source, sentence.text, "whole")


class Damager:
    """Damages translations, drawing on the words of all of them; the most `frequent` ones are left alone."""

    def __init__(self, sentences: Sequence[SentenceTranslation], seed: int = 0, frequent: int = FREQUENT) -> None:
        counts = Counter(word.casefold() for sentence in sentences for word in sentence.target_words)
        self._frequent = {word for word, _ in counts.most_common(frequent)}
        self._random = random.Random(seed)
        self._strangers = [sentence.target_words[place] for sentence in sentences for place in self._content(sentence)]

    def damage(self, sentences: Sequence[SentenceTranslation]) -> Iterator[Case]:
        """Each that can be, in a way drawn at random; of the words that differ at all from what was there."""
        for sentence in sentences:
            content = self._content(sentence)
            if not content:
                continue
            kind = self._random.choice(KINDS if len(sentence.target_words) > 2 * RUN else KINDS[:2])
            place = self._random.choice(content)
            yield self._replaced(sentence, place) if kind == KINDS[1] else self._removed(sentence, place, kind)

    def _content(self, sentence: SentenceTranslation) -> list[int]:
        """Places of the content words, but for the first word, whose capital would tell."""
        return [
            place
            for place, word in enumerate(sentence.target_words)
            if place and sum(map(str.isalpha, word)) >= LETTERS and word.casefold() not in self._frequent
        ]

    def _removed(self, sentence: SentenceTranslation, place: int, kind: str) -> Case:
        words = sentence.target_words
        last = place
        if kind == KINDS[2]:
            last = min(place + RUN - 1, len(words) - 2)
        gone = set(range(place, max(place, last) + 1))
        spans = find_words(sentence.text, words)
        start, end = spans[place][0], spans[max(gone)][1]
        text = f"{sentence.text[:start].rstrip()} {sentence.text[end:].lstrip()}".strip()
        return Case(sentence.source, text, kind, omitted=_sources(sentence, gone))

    def _replaced(self, sentence: SentenceTranslation, place: int) -> Case:
        old = sentence.target_words[place]
        stranger = old
        while stranger.casefold() == old.casefold() and len(set(self._strangers)) > 1:
            stranger = self._random.choice(self._strangers)
        start, end = find_words(sentence.text, sentence.target_words)[place]
        text = sentence.text[:start] + stranger + sentence.text[end:]
        omitted = _sources(sentence, {place})
        return Case(sentence.source, text, KINDS[1], omitted=omitted, invented=frozenset({place}))


def _sources(sentence: SentenceTranslation, gone: set[int]) -> frozenset[int]:
    """Source words whose strongest link was with one of these target words."""
    strongest = {link.source: link.target for link in sorted(sentence.alignment, key=lambda link: link.weight)}
    return frozenset(source for source, target in strongest.items() if target in gone)
