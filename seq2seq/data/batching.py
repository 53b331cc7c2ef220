"""Batches of similar length under a budget of tokens, in an order that seed and epoch alone decide."""

import bisect
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from seq2seq.data.cutting import cut
from seq2seq.data.encoding import EncodedPair

POOL = 100  # batches' worth of sentences that are sorted by length together: even lengths, and still a shuffle


@dataclass(frozen=True)
class Batch:
    """Padded token ids of some pairs; the target twice, as decoder input (`<s>` first) and output (`</s>` last)."""

    src: Tensor  # (B, S)
    tgt_in: Tensor  # (B, T)
    tgt_out: Tensor  # (B, T)
    links: Tensor | None = None  # (N, 3) of N links between pieces: row, target piece, source piece

    def to(self, device: torch.device) -> "Batch":
        """The same batch on a device."""

        def move(ids: Tensor) -> Tensor:
            return ids.to(device, non_blocking=True)

        links = None if self.links is None else move(self.links)
        return Batch(move(self.src), move(self.tgt_in), move(self.tgt_out), links)

    def twice(self) -> "Batch":
        """Every pair twice: the whole batch, and the whole batch again."""
        links = self.links
        if links is not None:
            again = links.clone()
            again[:, 0] += len(self.src)
            links = torch.cat([links, again])
        src, tgt_in, tgt_out = (ids.repeat(2, 1) for ids in (self.src, self.tgt_in, self.tgt_out))
        return Batch(src, tgt_in, tgt_out, links)


def pad(rows: Sequence[Sequence[int]], pad_id: int) -> Tensor:
    """Rows of token ids -> (rows, longest), padded at the end."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[pad_id] * (width - len(row))] for row in rows])


def collate(pairs: Sequence[EncodedPair], pad_id: int, bos_id: int) -> Batch:
    """Pairs -> one padded batch."""
    return Batch(
        src=pad([pair.src for pair in pairs], pad_id),
        tgt_in=pad([[bos_id, *pair.tgt[:-1]] for pair in pairs], pad_id),
        tgt_out=pad([pair.tgt for pair in pairs], pad_id),
    )


def with_links(batch: Batch, links: Sequence[Sequence[tuple[int, int]]]) -> Batch:
    """The batch with links (target piece, source piece) of every row."""
    rows = [(row, target, source) for row, found in enumerate(links) for target, source in found]
    return replace(batch, links=torch.tensor(rows, dtype=torch.int64).view(-1, 3))


def without_targets(batch: Batch, pad_id: int) -> Batch:
    """The batch with nothing to predict, so that its loss is 0: for a process that has no row of a small batch."""
    return Batch(batch.src, batch.tgt_in, torch.full_like(batch.tgt_out, pad_id))


def share(indices: Sequence[int], lengths: Sequence[int], rank: int, size: int) -> Sequence[int]:
    """Consecutive rows of a batch for one of `size` processes, so that all get the same number of tokens, nearly.

    Rows of a batch are in order of length, so a part of consecutive ones has little padding.
    """
    middles, total = [], 0
    for index in indices:
        middles.append(total + lengths[index] / 2)
        total += lengths[index]
    bounds = [bisect.bisect_left(middles, total * part / size) for part in (rank, rank + 1)]
    return indices[bounds[0] : bounds[1]]


def plan_epoch(lengths: Sequence[int], batch_tokens: int, seed: int, epoch: int) -> list[list[int]]:
    """Indices of every pair, once each, in batches of at most `batch_tokens` padded tokens, shuffled.

    Pairs are shuffled, sorted by length within large pools, cut into batches, and the batches are shuffled. The
    result depends on the arguments alone, so a run resumes from (epoch, number of batches done).
    """
    rng = random.Random(f"{seed}/{epoch}")
    order = list(range(len(lengths)))
    rng.shuffle(order)
    mean = sum(lengths) / max(len(lengths), 1)
    pool = max(1, round(POOL * batch_tokens / max(mean, 1)))
    batches: list[list[int]] = []
    for start in range(0, len(order), pool):
        batches.extend(cut(sorted(order[start : start + pool], key=lengths.__getitem__), lengths, batch_tokens))
    rng.shuffle(batches)
    return batches
