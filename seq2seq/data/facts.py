"""What the rules of splitting, cleaning and reporting need to know of each pair, as numbers: 41 bytes a pair.

A sentence is known by 64 bits of a hash. Among a million sentences two different ones share theirs with a probability
of 1 in 37 million (n^2 / 2^65), so that sets of sentences are arrays of numbers, whatever the sentences' length.
"""

import hashlib
import re
import unicodedata
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
Counts = NDArray[np.uint32]

CONTROL, GARBLED = 1, 2  # signs that a pair may carry, as bits
CONTROL_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # a CR inside a line, too
# U+FFFD, or UTF-8 that was read as Latin-1 or Windows-1252: "Ã©" for "é", "Â " for a no-break space, "â€™" for "’".
GARBLED_TEXT = re.compile("\ufffd|Ã[\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]|Â[\x80-\xbf]|â(?:€|\x80)")
NOT_ALPHANUMERIC = bytes(code for code in range(128) if not chr(code).isalnum())
NO_WORD = re.compile(r"[\W_]+")


def normalise(sentence: str) -> str:
    """A sentence up to case, punctuation and spaces: its letters, marks and digits, folded."""
    if sentence.isascii():  # the same, ten times as fast
        return sentence.lower().encode().translate(None, NOT_ALPHANUMERIC).decode() or sentence.lower().strip()
    folded = unicodedata.normalize("NFKC", sentence).casefold()
    return NO_WORD.sub(_marks, folded) or folded.strip()


def _marks(found: re.Match[str]) -> str:
    """The combining marks among characters that are no letter and no digit."""
    return "" if found[0] == " " else "".join(c for c in found[0] if unicodedata.category(c)[0] == "M")


def identity(text: str) -> int:
    """64 bits that stand for an exact text."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def key(sentence: str) -> int:
    """64 bits that stand for a sentence's normalised form; the split rule decides by them, too."""
    normalised = normalise(sentence).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(normalised).digest()[:8], "big")


@dataclass(frozen=True)
class Facts:
    """Of n pairs, n numbers each."""

    sources: Hashes  # the exact texts
    targets: Hashes
    source_keys: Hashes  # the normalised texts
    target_keys: Hashes
    source_words: Counts  # separated by blanks; 0 is a blank sentence
    target_words: Counts
    signs: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.signs)

    @property
    def pairs(self) -> Hashes:
        """64 bits that stand for both exact texts together."""
        return self.sources * np.uint64(0x9E3779B97F4A7C15) ^ self.targets

    @property
    def copies(self) -> NDArray[np.bool_]:
        """Which pairs have equal sides."""
        return np.equal(self.sources, self.targets)

    def take(self, rows: NDArray[Any]) -> Self:
        """The facts of some pairs, in the order of `rows`."""
        return type(self)(*(getattr(self, column.name)[rows] for column in fields(self)))

    def turned(self) -> Self:
        """The facts with source and target exchanged."""
        return type(self)(
            self.targets,
            self.sources,
            self.target_keys,
            self.source_keys,
            self.target_words,
            self.source_words,
            self.signs,
        )


def measure(pairs: Iterable[tuple[str, str]]) -> Facts:
    """The facts of pairs, from one pass over their text."""
    columns = tuple(array(code) for code in "QQQQIIB")
    for source, target in pairs:
        row = (
            identity(source),
            identity(target),
            key(source),
            key(target),
            len(source.split()),
            len(target.split()),
            _signs(source) | _signs(target),
        )
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    return Facts(*(np.asarray(column) for column in columns))


def _signs(text: str) -> int:
    printable = text.isascii() and text.isprintable()
    return 0 if printable else CONTROL * bool(CONTROL_TEXT.search(text)) | GARBLED * bool(GARBLED_TEXT.search(text))


def firsts(values: Hashes) -> NDArray[np.bool_]:
    """Which of some values stand where they appear for the first time."""
    result = np.zeros(len(values), bool)
    result[np.unique(values, return_index=True)[1]] = True
    return result
