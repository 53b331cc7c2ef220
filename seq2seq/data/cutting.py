"""An order of rows cut into batches under a budget of tokens; it needs no torch."""

from collections.abc import Iterator, Sequence


def cut(order: Sequence[int], lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Cut an order into runs whose padded size, rows * longest, stays within the budget (one row always fits)."""
    batch: list[int] = []
    longest = 0
    for index in order:
        longest = max(longest, lengths[index])
        if batch and longest * (len(batch) + 1) > batch_tokens:
            yield batch
            batch, longest = [], lengths[index]
        batch.append(index)
    if batch:
        yield batch
