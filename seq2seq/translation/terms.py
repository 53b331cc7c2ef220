"""Terms of a glossary written into a translation, each where the word went that it takes the place of.

The translation is kept up to the word that the source's term has become by itself, by the word links; the term's
translation follows, and the rest is searched anew, without that word. So what stands before it agrees with the word
that is gone, and what comes after agrees with the new one as far as the model knows it.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

from seq2seq.translation.aligner import Forced
from seq2seq.translation.alignment import Words, merge_pieces
from seq2seq.translation.constrained import Constraints, Phrase
from seq2seq.translation.engine import Engine, Hypothesis

ELIDED = ("▁l", "▁d", "▁j", "▁m", "▁n", "▁s", "▁t", "▁c", "▁qu")
VOWELS = "aeiouyàâäéèêëîïôöùûüœæh"


class Place(NamedTuple):
    """The word that a term has become: its first token, its last but one, and whether an elision is in it (`l'eau`)."""

    start: int
    end: int
    apostrophe: int | None  # the token behind it


class TermWriter:
    """Writes terms into translations of one engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.tokenizer = engine, engine.tokenizer

    def write(
        self, source: list[int], found: list[Hypothesis], terms: Sequence[tuple[str, str]], beam_size: int, alpha: float
    ) -> list[Hypothesis]:
        """The hypotheses of a sentence, best first, with its terms in them as far as they can be written."""
        left = {term: tuple(self.tokenizer.encode(translation)) for term, translation in terms}
        done: tuple[Phrase, ...] = ()
        while left:
            target = found[0].tokens
            places = self._places(source, target, list(left))
            term = min(left, key=lambda term: place.start if (place := places[term]) else len(target))
            phrase = left.pop(term)
            if not self._has(target, phrase):
                wanted = self._wanted(target, phrase, places[term], done)
                found = self.engine.constrained(source, wanted, beam_size, alpha) or found
            done += (phrase,) if self._has(found[0].tokens, phrase) else ()
        return found

    def _wanted(self, target: Phrase, phrase: Phrase, place: Place | None, done: tuple[Phrase, ...]) -> Constraints:
        """A translation with one phrase more, beside those that are done."""
        prefix: Phrase = ()
        forbidden: tuple[Phrase, ...] = ()
        if place is not None:
            old = target[place.start : place.end]
            prefix = target[: place.start]  # behind which the article, if it is elided, is the model's to choose
            if place.apostrophe is not None and self.tokenizer.decode(phrase)[:1].lower() in VOWELS:
                phrase = self._glued(phrase)
                prefix = (*target[: place.apostrophe], *phrase)
            elif place.apostrophe is None:
                prefix = (*prefix, *phrase)
            forbidden = () if any(self._has(each, old[:1]) for each in (phrase, *done)) else (old,)
        return Constraints((phrase, *done), prefix, forbidden, self._joined, self._marks, self._elided)

    def _glued(self, phrase: Phrase) -> Phrase:
        """The phrase without the space before it."""
        text = self.tokenizer.decode(phrase)
        marked = self.tokenizer.encode(f"'{text}")
        quote = self.tokenizer.encode("'")
        return tuple(marked[len(quote) :]) if marked[: len(quote)] == quote else phrase

    def _places(self, source: list[int], target: Phrase, terms: Sequence[str]) -> dict[str, Place | None]:
        """For each term the target word that draws most on its words; none if no link leads to them."""
        sides = [merge_pieces(self.tokenizer.pieces(ids[:-1])) for ids in (source, list(target))]
        (weights,) = self.engine.attention([source], [target])
        found = [
            link
            for link in Forced(weights, *sides).weighted_links(self.engine.info.aligning)
            if sides[1].pieces[link.target] and any(map(str.isalpha, sides[1].words[link.target]))
        ]
        places: dict[str, Place | None] = {}
        for term in terms:
            named = {word.casefold() for word in term.split()}
            links = [link for link in found if sides[0].words[link.source].casefold() in named]
            first = min((link.target for link in links), default=None)
            best = max(links, key=lambda link: link.weight).target if links else None
            word = first if len(named) > 1 else best
            places[term] = None if word is None else self._span(target, sides[1], word)
        return places

    def _span(self, target: Phrase, words: Words, word: int) -> Place:
        tokens = words.pieces[word]
        pieces = self.tokenizer.pieces(target)
        marks = [token for token in tokens if "'" in pieces[token] or "’" in pieces[token]]
        return Place(tokens[0], tokens[-1] + 1, marks[0] + 1 if marks and marks[0] < tokens[-1] else None)

    def _has(self, tokens: Phrase, phrase: Phrase) -> bool:
        """Whether a phrase stands in a translation as words of its own."""
        ends = (start + len(phrase) for start in range(len(tokens)) if tokens[start : start + len(phrase)] == phrase)
        return any(end >= len(tokens) or tokens[end] not in self._joined for end in ends)

    @cached_property
    def _vocabulary(self) -> list[str]:
        return self.tokenizer.pieces(range(len(self.tokenizer)))

    @cached_property
    def _joined(self) -> frozenset[int]:
        """Tokens that go on a word."""
        return self._tokens(lambda piece: piece[0].isalnum() or piece.startswith("<0x"))

    @cached_property
    def _elided(self) -> frozenset[int]:
        """Tokens of an elision (`l'`, and `l` by itself), behind which no word of its own may begin."""
        return self._tokens(lambda piece: piece.endswith(("'", "’")) or piece in ELIDED)

    @cached_property
    def _marks(self) -> frozenset[int]:
        """Tokens that end a sentence."""
        return self._tokens(lambda piece: piece.strip("▁") in (".", "!", "?", "…"))

    def _tokens(self, chosen: Callable[[str], bool]) -> frozenset[int]:
        return frozenset(index for index, piece in enumerate(self._vocabulary) if chosen(piece))
