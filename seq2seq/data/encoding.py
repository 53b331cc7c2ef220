"""Sentence pairs as token ids, a few bytes each: a million pairs take some hundred megabytes, not gigabytes."""

import itertools
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import overload

from seq2seq.config import VariationConfig
from seq2seq.data.splits import Pair
from seq2seq.data.tokenizer import Tokenizer
from seq2seq.data.variation import varied

CHUNK = 10_000  # pairs that are encoded together
SOURCE = 0  # which side of a pair


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
    """Many encoded pairs in little memory.

    `partners` has, for each that is two pairs in one, the number of the second; its own number is that of the first.
    """

    def __init__(self, src: Rows, tgt: Rows, partners: Mapping[int, int] | None = None) -> None:
        self.src, self.tgt, self.partners = src, tgt, partners or {}

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


def encode_pairs(pairs: Iterable[Pair], tokenizer: Tokenizer, first_marked: int | None = None) -> EncodedPairs:
    """Token ids of all pairs, `</s>` added; sources from number `first_marked` on begin with `<s>`."""
    return _encode(pairs, tokenizer, lambda texts, side: tokenizer.encode_all(texts), first_marked)


def encode_epoch(
    pairs: Sequence[Pair],
    tokenizer: Tokenizer,
    config: VariationConfig,
    seed: int,
    epoch: int,
    own: int | None = None,
    mark_extra: bool = False,
) -> EncodedPairs:
    """The same of training pairs as they are in one epoch: varied as the recipe says, by seed and epoch alone.

    The first `own` of them (all, if not given) are the corpus's own. The sources of the rest begin with `<s>` where
    that is asked for: tagged, as by Caswell et al. (2019), to be told apart.
    """
    own = len(pairs) if own is None else own
    first_marked = own if mark_extra else None
    if not config.varies:
        return encode_pairs(pairs, tokenizer, first_marked)
    rng = Random(f"variation/{seed}/{epoch}")

    def cut(texts: list[str], side: int) -> list[list[int]]:
        rows = tokenizer.encode_all(texts)
        sampled = [index for index in range(len(texts)) if rng.random() < config.sampled_pieces]
        found = tokenizer.sample_all([texts[index] for index in sampled], rng)
        for index, row in zip(sampled, found, strict=True):
            rows[index] = row
        return [_hide(row, config.unknown_pieces, tokenizer.unk_id, rng) for row in rows] if side == SOURCE else rows

    partners: dict[int, int] = {}

    def changed() -> Iterator[Pair]:
        for number, (pair, partner) in enumerate(varied(pairs, config, rng, own)):
            if partner is not None:
                partners[number] = partner
            yield pair

    found = _encode(changed(), tokenizer, cut, first_marked)
    return EncodedPairs(found.src, found.tgt, partners)


def _hide(row: list[int], share: float, unk_id: int, rng: Random) -> list[int]:
    return [unk_id if rng.random() < share else piece for piece in row] if share else row


def _encode(
    pairs: Iterable[Pair],
    tokenizer: Tokenizer,
    encode: Callable[[list[str], int], list[list[int]]],
    first_marked: int | None,
) -> EncodedPairs:
    """Chunk by chunk, each side by `encode(texts, side)`; sources from number `first_marked` on begin with `<s>`."""
    both = Rows(len(tokenizer)), Rows(len(tokenizer))
    rest = iter(pairs)
    while chunk := list(itertools.islice(rest, CHUNK)):
        for side, rows in enumerate(both):
            for ids in encode([pair[side] for pair in chunk], side):
                marked = side == SOURCE and first_marked is not None and len(rows) >= first_marked
                rows.append([*([tokenizer.bos_id] if marked else []), *ids, tokenizer.eos_id])
    return EncodedPairs(*both)
