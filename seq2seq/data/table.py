"""Sentence pairs that lie in a memory-mapped Arrow file, so that a million of them need little memory."""

import mmap
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from seq2seq.data.facts import Facts, measure
from seq2seq.data.lines import writable

CHUNK = 4096  # pairs that are Python strings at one time
SCHEMA = pa.schema([("source", pa.large_string()), ("target", pa.large_string())])


class Pair(NamedTuple):
    """A sentence and its translation."""

    source: str
    target: str

    def without_tabs(self) -> "Pair":
        """The pair as columns between tabs can hold it: a space for each tab."""
        return Pair(self.source.replace("\t", " "), self.target.replace("\t", " "))


class PairTable(Sequence[Pair]):
    """Pairs as a list has them, but their text stays on disk; a part or another order is an array of row numbers."""

    def __init__(self, file: "PairFile", rows: NDArray[np.int64], turned: bool = False) -> None:
        self._file = file
        self._turned = turned
        self.rows = rows  # positions in the file, counted from 0

    @classmethod
    def write(cls, pairs: Iterable[tuple[str, str]]) -> "PairTable":
        """Stream pairs into a temporary file that vanishes with the table, or with the process."""
        file = PairFile(pairs)
        return cls(file, np.arange(len(file), dtype=np.int64))

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Pair: ...
    @overload
    def __getitem__(self, index: slice) -> "PairTable": ...
    def __getitem__(self, index: int | slice) -> "Pair | PairTable":
        if isinstance(index, slice):
            return PairTable(self._file, self.rows[index], self._turned)
        return next(self._read(self.rows[[index]]))

    def __iter__(self) -> Iterator[Pair]:
        # Runs of rows that lie in one chunk of the file are read together.
        ends = np.flatnonzero(np.diff(self.rows // CHUNK)) + 1
        start = 0
        for end in [*ends.tolist(), len(self)]:
            yield from self._read(self.rows[start:end])
            start = end

    def _read(self, rows: NDArray[np.int64]) -> Iterator[Pair]:
        """Pairs of some rows of one chunk."""
        if len(rows):
            sources, targets = self._file.read(rows)
            yield from map(Pair, targets, sources) if self._turned else map(Pair, sources, targets)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(one == another for one, another in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<PairTable of {len(self):,} pairs>"

    def select(self, indices: NDArray[Any]) -> "PairTable":
        """The pairs at these positions of this table, in the order of `indices`; no text is copied."""
        return PairTable(self._file, self.rows[indices], self._turned)

    def turned(self) -> "PairTable":
        """Source and target exchanged; no text is copied."""
        return PairTable(self._file, self.rows, not self._turned)

    @property
    def facts(self) -> Facts:
        """The facts of these pairs."""
        facts = self._file.facts.take(self.rows)
        return facts.turned() if self._turned else facts


class PairFile:
    """An Arrow file of two text columns in chunks of `CHUNK` rows, mapped into memory, and the facts of all rows."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        with tempfile.TemporaryFile(suffix=".arrow") as stream:
            with pa.ipc.new_file(stream, SCHEMA) as writer:
                self.facts = measure(_written(iter(pairs), writer))
            stream.flush()
            mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        reader = pa.ipc.open_file(pa.py_buffer(mapped))
        self.chunks = [reader.get_batch(index) for index in range(reader.num_record_batches)]

    def __len__(self) -> int:
        return len(self.facts)

    def read(self, rows: NDArray[np.int64]) -> tuple[list[str], list[str]]:
        """Sources and targets of rows that lie in one chunk."""
        chunk = self.chunks[int(rows[0]) // CHUNK]
        sources, targets = chunk.take(pa.array(rows % CHUNK)).columns
        return sources.to_pylist(), targets.to_pylist()


def _written(pairs: Iterator[tuple[str, str]], writer: Any) -> Iterator[tuple[str, str]]:
    """The pairs as they are in the file, after each chunk of them has been written."""
    while chunk := [(writable(source), writable(target)) for source, target in islice(pairs, CHUNK)]:
        columns = [pa.array(side, pa.large_string()) for side in zip(*chunk, strict=True)]
        writer.write_batch(pa.record_batch(columns, schema=SCHEMA))
        yield from chunk


def facts_of(pairs: Sequence[Pair]) -> Facts:
    """The facts of pairs in a table or a list."""
    return pairs.facts if isinstance(pairs, PairTable) else measure(pairs)


def pick(pairs: Sequence[Pair], indices: NDArray[Any]) -> Sequence[Pair]:
    """The pairs at these positions: a table of a table, a list of anything else."""
    return pairs.select(indices) if isinstance(pairs, PairTable) else [pairs[index] for index in indices.tolist()]
