"""What an epoch goes through: a corpus's own training pairs, as often as the recipe says, and extra ones once."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import overload

from seq2seq.data.splits import Pair


class Mixture(Sequence[Pair]):
    """Pairs of several tables one after the other, the first one `repeat` times; no text is copied."""

    def __init__(self, own: Sequence[Pair], extra: Sequence[Sequence[Pair]] = (), repeat: int = 1) -> None:
        self._parts = [*[own] * repeat, *extra]
        self._ends = list(accumulate(map(len, self._parts)))
        self.own = repeat * len(own)  # how many of the pairs are the corpus's own; they come first

    def __len__(self) -> int:
        return self._ends[-1]

    def __iter__(self) -> Iterator[Pair]:
        return chain.from_iterable(self._parts)

    @overload
    def __getitem__(self, index: int) -> Pair: ...

    @overload
    def __getitem__(self, index: slice) -> list[Pair]: ...

    def __getitem__(self, index: int | slice) -> Pair | list[Pair]:
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        part = bisect_right(self._ends, index)
        return self._parts[part][index - (self._ends[part] - len(self._parts[part]))]
