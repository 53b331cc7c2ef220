"""Word links of given sentence pairs: a forced pass of the model over each, and its cross-attention read as links.

Shapes: L layers, H heads, T target pieces, S source pieces (`</s>` included).
"""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from seq2seq.folder import AlignmentChoice
from seq2seq.translation import alignment
from seq2seq.translation.alignment import Words
from seq2seq.translation.engine import Engine
from seq2seq.translation.link_sets import LinkSet

if TYPE_CHECKING:
    from seq2seq.translation.alignment import Array

_NO_SPACE_BEFORE = re.compile(r"[.,)\]}%…]+|'\w+|n't")
_NO_SPACE_AFTER = re.compile(r"[(\[{]+|.*\w['’]")


def join_words(words: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """Words of a tokenised sentence as running text, and where each stands in it: `Mr .` becomes `Mr.`."""
    text = ""
    spans = []
    for number, word in enumerate(words):
        tight = number == 0 or _NO_SPACE_BEFORE.fullmatch(word) or _NO_SPACE_AFTER.fullmatch(words[number - 1])
        text += "" if tight else " "
        spans.append((len(text), len(text) + len(word)))
        text += word
    return text, spans


class Forced(NamedTuple):
    """A pair of tokenised sentences after a forced pass: (L, H, T, S) weights and which pieces make up each word."""

    attention: "Array"
    source: Words
    target: Words

    def links(self, choice: AlignmentChoice) -> LinkSet:
        """What one layer and head say."""
        layer = self.attention[choice.layer]
        pieces = alignment.rows_of(layer.mean(axis=0) if choice.head is None else layer[choice.head], choice.step)
        words = alignment.word_attention(pieces, self.source, self.target)
        found = alignment.links(words, self.source.words, self.target.words)
        return frozenset((link.source, link.target) for link in found)


def force(engine: Engine, pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> Iterator[Forced]:
    """The forced pass over each pair of tokenised sentences."""
    sides = [[_encode(engine, pair[side]) for pair in pairs] for side in (0, 1)]
    sources, targets = ([[*ids, engine.tokenizer.eos_id] for ids, _ in side] for side in sides)
    maps = engine.attention(sources, targets)
    for weights, (_, source), (_, target) in zip(maps, sides[0], sides[1], strict=True):
        yield Forced(weights, source, target)


def _encode(engine: Engine, words: Sequence[str]) -> tuple[list[int], Words]:
    text, spans = join_words(words)
    ids = engine.tokenizer.encode(text)
    return ids, alignment.given_words(list(words), spans, engine.tokenizer.pieces(ids))
