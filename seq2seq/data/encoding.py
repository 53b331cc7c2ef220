"""Sentence pairs as token ids, a few bytes each: a million pairs take some hundred megabytes, not gigabytes."""

import itertools
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import overload

from seq2seq.data.splits import Pair
from seq2seq.data.tokenizer import Tokenizer

CHUNK = 10_000  # pairs that are encoded together


@dataclass(frozen=True)
class EncodedPair:
    """Token ids of one pair, `</s>` included on both sides."""

    src: list[int]
    tgt: list[int]

    def __len__(self) -> int:
        return max(len(self.src), len(self.tgt))


class Rows:
    """Rows of token ids, one after the other in one array."""

    def __init__(self, vocab_size: int) -> None:
        self._ids = array("H" if vocab_size <= 2**16 else "I")
        self._ends = array("Q", [0])

    def append(self, row: Iterable[int]) -> None:
        """Add a row at the end."""
        self._ids.extend(row)
        self._ends.append(len(self._ids))

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, index: int) -> list[int]:
        return self._ids[self._ends[index] : self._ends[index + 1]].tolist()

    def lengths(self) -> list[int]:
        """Number of ids of every row."""
        return [end - start for start, end in itertools.pairwise(self._ends)]


class EncodedPairs(Sequence[EncodedPair]):
    """Many encoded pairs in little memory."""

    def __init__(self, src: Rows, tgt: Rows) -> None:
        self.src, self.tgt = src, tgt

    def __len__(self) -> int:
        return len(self.src)

    @overload
    def __getitem__(self, index: int) -> EncodedPair: ...

    @overload
    def __getitem__(self, index: slice) -> list[EncodedPair]: ...

    def __getitem__(self, index: int | slice) -> EncodedPair | list[EncodedPair]:
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        return EncodedPair(self.src[index], self.tgt[index])

    def lengths(self) -> list[int]:
        """The longer side of every pair, in tokens."""
        return list(map(max, self.src.lengths(), self.tgt.lengths()))


def encode_pairs(pairs: Iterable[Pair], tokenizer: Tokenizer) -> EncodedPairs:
    """Token ids of all pairs, `</s>` added."""
    src, tgt = Rows(len(tokenizer)), Rows(len(tokenizer))
    rest = iter(pairs)
    while chunk := list(itertools.islice(rest, CHUNK)):
        for rows, side in ((src, 0), (tgt, 1)):
            for ids in tokenizer.encode_all([pair[side] for pair in chunk]):
                rows.append([*ids, tokenizer.eos_id])
    return EncodedPairs(src, tgt)
