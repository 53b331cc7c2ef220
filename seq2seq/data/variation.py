"""Training pairs as people might have typed them: drawn anew for every epoch, so that a model learns to read it all.

A text is changed before it is cut into pieces; sampled pieces and dropped ones are the business of `encoding`.
"""

import re
from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from seq2seq.config import VariationConfig
from seq2seq.data.splits import Pair
from seq2seq.data.stand_ins import with_stand_in

MARK = re.compile(r"\s*[.!?…]+$")  # that ends a sentence, with the space that French puts before it
KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
STRAIGHT = str.maketrans("’‘“”", "''\"\"")


class Varied(NamedTuple):
    """A pair as it is in one epoch, and the number of the pair that follows it in the same text, if one does."""

    pair: Pair
    partner: int | None = None


def varied(pairs: Sequence[Pair], config: VariationConfig, rng: Random, own: int | None = None) -> Iterator[Varied]:
    """Every pair once, in order, each changed in the ways that are drawn for it.

    The first `own` pairs (all, if not given) are joined with each other, and so are the rest.
    """
    own = len(pairs) if own is None else own
    for number, pair in enumerate(pairs):
        changed = with_stand_in(pair, rng) if rng.random() < config.stand_ins else pair
        invented = changed is not pair
        partner = None
        if rng.random() < config.joined:
            partner = rng.randrange(own) if number < own else rng.randrange(own, len(pairs))
            changed = joined(changed, pairs[partner])
        if rng.random() < config.no_final_mark:
            changed = without_final_mark(changed)
        source = changed.source
        if rng.random() < config.other_quotes:
            source = with_other_quotes(source)
        if rng.random() < config.typing_errors and not invented:  # what is to be copied is the same on both sides
            source = mistyped(source, rng)
        if rng.random() < config.lower_case and not invented:
            source = source.lower()
        yield Varied(Pair(source, changed.target), partner)


def joined(first: Pair, second: Pair) -> Pair:
    """Two pairs one after the other, as two sentences of one text."""
    return Pair(f"{first.source} {second.source}", f"{first.target} {second.target}")


def without_final_mark(pair: Pair) -> Pair:
    """A pair without the mark that ends both its sides; as it is if a side has none, or nothing else."""
    source, target = MARK.sub("", pair.source), MARK.sub("", pair.target)
    dropped = source and target and source != pair.source and target != pair.target
    return Pair(source, target) if dropped else pair


def with_other_quotes(text: str) -> str:
    """Straight quotes and apostrophes for typographic ones; or, where there are none of those, the reverse."""
    if (straight := text.translate(STRAIGHT)) != text:
        return straight
    opened = re.sub(r'(?<!\S)"', "“", re.sub(r"(?<!\S)'(?=\S+')", "‘", text))
    return opened.replace('"', "”").replace("'", "’")


def mistyped(text: str, rng: Random) -> str:
    """A text with one slip in one of its longer words: letters exchanged, left out, doubled, or hit beside the key."""
    words = list(re.finditer(r"[^\W\d_]{4,}", text))
    if not words:
        return text
    word = rng.choice(words)
    at = rng.randrange(word.start() + 1, word.end() - 1)  # people get the first letter right
    before, letter, following, after = text[:at], text[at], text[at + 1], text[at + 2 :]
    slips = (following + letter, following, letter + letter + following, beside(letter, rng) + following)
    return before + rng.choice(slips) + after


def beside(letter: str, rng: Random) -> str:
    """A key next to a letter's own; the letter itself if it has no key."""
    for row in KEYBOARD:
        if (at := row.find(letter)) >= 0:
            return rng.choice(row[max(0, at - 1) : at] + row[at + 1 : at + 2])
    return letter
