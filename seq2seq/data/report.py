"""What is in a corpus, what cleaning drops from it and why, and what to look at before training on it."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seq2seq.config import DataConfig
from seq2seq.data.facts import CONTROL, GARBLED, Counts, Facts
from seq2seq.data.lines import writable
from seq2seq.data.splits import Sifted, fingerprint
from seq2seq.data.table import PairTable

EXAMPLES = 3
FEW = 100  # pairs: a score over fewer says little
MANY_COPIES, MANY_UNEVEN = 0.05, 0.1  # shares of the training pairs


@dataclass(frozen=True)
class Example:
    """A pair, by its number in the order of reading, from 1."""

    number: int
    source: str
    target: str


@dataclass(frozen=True)
class Found:
    """A number of pairs and the first of them."""

    count: int
    examples: tuple[Example, ...]


@dataclass(frozen=True)
class Caution:
    """One plain sentence, and pairs that show what it means."""

    text: str
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True)
class FileRead:
    """A file that was read, as it lies on disk."""

    split: str
    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Words:
    """Words a sentence, separated by blanks."""

    mean: float
    percentile_95: int
    longest: int


@dataclass(frozen=True)
class SplitReport:
    """A split after cleaning."""

    pairs: int
    distinct_sources: int
    source_words: Words
    target_words: Words
    fingerprint: str  # SHA-256 of its pairs


@dataclass(frozen=True)
class Report:
    """Everything that `seq2seq data` says about a corpus."""

    dataset: str
    source: str
    target: str
    files: tuple[FileRead, ...]
    read: dict[str, int]  # pairs, by split as given
    splits: dict[str, SplitReport]
    dropped: dict[str, dict[str, Found]]  # by split and rule
    warnings: tuple[Caution, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain values; texts are whole."""
        return asdict(self)

    def as_text(self) -> str:
        """Lines to read; texts are shortened."""
        return "\n".join(_lines(self))


@dataclass(frozen=True)
class Sieve:
    """A split before cleaning, and what cleaning does to it."""

    name: str
    pairs: PairTable
    sifted: Sifted

    @cached_property
    def kept(self) -> PairTable:
        """The pairs that stay."""
        return self.pairs.select(self.sifted.kept)

    @cached_property
    def facts(self) -> Facts:
        """The facts of all pairs, those too that are dropped."""
        return self.pairs.facts

    def examples(self, indices: NDArray[np.int64]) -> tuple[Example, ...]:
        """The first few of the pairs at these positions."""
        shown = self.pairs.select(indices[:EXAMPLES])
        return tuple(Example(row + 1, *pair) for row, pair in zip(shown.rows.tolist(), shown, strict=True))

    def found(self, indices: NDArray[np.int64]) -> Found:
        """The pairs at these positions."""
        return Found(len(indices), self.examples(indices))


def make_report(
    config: DataConfig,
    paths: dict[str, list[Path]],
    read: dict[str, int],
    sieves: Sequence[Sieve],
    extra: Sequence[Sieve] = (),
) -> Report:
    """The report on three splits (train, dev, test), and on extra training pairs."""
    everything = [*sieves, *extra]
    return Report(
        dataset=config.dataset,
        source=config.source,
        target=config.target,
        files=tuple(_file(name, path) for name, of_split in paths.items() for path in of_split),
        read=read,
        splits={sieve.name: _split(sieve.kept) for sieve in everything},
        dropped={
            sieve.name: {rule: sieve.found(rows) for rule, rows in sieve.sifted.dropped.items()} for sieve in everything
        },
        warnings=tuple(find_warnings(config, *sieves)),
    )


def _file(split: str, path: Path) -> FileRead:
    with path.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    return FileRead(split, writable(str(path)), path.stat().st_size, sha256)


def _split(pairs: PairTable) -> SplitReport:
    facts = pairs.facts
    return SplitReport(
        pairs=len(pairs),
        distinct_sources=len(np.unique(facts.sources)),
        source_words=_words(facts.source_words),
        target_words=_words(facts.target_words),
        fingerprint=fingerprint(pairs),
    )


def _words(counts: Counts) -> Words:
    if not len(counts):
        return Words(0.0, 0, 0)
    percentile = int(np.percentile(counts, 95, method="higher"))
    return Words(round(float(counts.mean()), 1), percentile, int(counts.max()))


def find_warnings(config: DataConfig, train: Sieve, dev: Sieve, test: Sieve) -> Iterator[Caution]:
    """What may spoil a training or its scores, the worst first."""
    if not len(train.kept):
        yield Caution("no training pair is left after cleaning")
    yield from _language_order(config)
    for held_out, other in ((test, train), (dev, train), (dev, test)):
        yield from _overlap(held_out, other)
    for sieve, use in ((dev, "there is nothing to choose the best model by"), (test, "there is nothing to report on")):
        if not len(sieve.kept):
            yield Caution(f"no {sieve.name} pair: {use}")
        elif len(sieve.kept) < FEW:
            pairs = "1 pair" if len(sieve.kept) == 1 else f"{len(sieve.kept)} pairs"
            yield Caution(f"{sieve.name} has {pairs}: scores over fewer than {FEW} say little")
    yield from _doubtful(train)
    for sieve in (train, dev, test):
        yield from _signs(sieve)


def _language_order(config: DataConfig) -> Iterator[Caution]:
    """Two files named a.fr and a.en, when the recipe translates from en to fr."""
    for name in ("train", "dev", "test"):
        endings = [Path(path.removesuffix(".gz")).suffix[1:].casefold() for path in getattr(config, name)]
        if endings == [config.target.casefold(), config.source.casefold()]:
            order = f"{config.source} first, then {config.target}"
            yield Caution(f"data.{name} seems to name its files in the wrong order: {order}")


def _overlap(held_out: Sieve, other: Sieve) -> Iterator[Caution]:
    """Sentences, up to case and punctuation, that stand in two splits."""
    ours, theirs = held_out.facts, other.facts
    source = np.isin(ours.source_keys, theirs.source_keys) & (ours.source_words > 0)
    target = np.isin(ours.target_keys, theirs.target_keys) & (ours.target_words > 0)
    shared = np.flatnonzero(source | target)
    if not len(shared):
        return
    share = f"{len(shared):,} of {len(ours):,} {held_out.name} pairs"
    sides = f"source side {source.sum():,}, target side {target.sum():,}"
    loser = other.name if other.name == "train" else held_out.name
    text = f"{share} have a sentence that is also in {other.name} ({sides}); such pairs were removed from {loser}"
    yield Caution(text, held_out.examples(shared))


def _doubtful(train: Sieve) -> Iterator[Caution]:
    """Training data of which so much is dropped by one rule that the fault may lie in the files."""
    total = max(len(train.pairs), 1)
    copies = np.flatnonzero(train.facts.copies & (train.facts.source_words > 0))
    if len(copies) > MANY_COPIES * total:
        share = f"{len(copies):,} of {total:,} training pairs"
        yield Caution(f"{share} are copies, source = target: is one side not translated?", train.examples(copies))
    uneven = train.sifted.dropped.get("length ratio", np.zeros(0, np.int64))
    if len(uneven) > MANY_UNEVEN * total:
        share = f"{len(uneven):,} of {total:,} training pairs"
        yield Caution(f"{share} are very unequal in length: do the lines belong together?", train.examples(uneven))


def _signs(sieve: Sieve) -> Iterator[Caution]:
    """Text that was damaged before it came here."""
    for sign, what in (
        (GARBLED, "text that looks wrongly decoded (as “Ã©” for “é”, or U+FFFD)"),
        (CONTROL, "control characters"),
    ):
        rows = np.flatnonzero(sieve.facts.signs & sign)
        if len(rows):
            have = "pair has" if len(rows) == 1 else "pairs have"
            yield Caution(f"{len(rows):,} {sieve.name} {have} {what}", sieve.examples(rows))


def _lines(report: Report) -> Iterator[str]:
    yield f"{report.dataset}, {report.source} to {report.target}"
    for file in report.files:
        yield f"  {file.name}: {file.bytes:,} bytes, SHA-256 {file.sha256[:16]}…"
    yield "pairs read: " + ", ".join(f"{name} {count:,}" for name, count in report.read.items())
    yield "pairs: " + ", ".join(f"{name} {split.pairs:,}" for name, split in report.splits.items())
    for name, split in report.splits.items():
        if split.pairs:
            sides = [
                f"words a {side} {words.mean} (95 % up to {words.percentile_95}, longest {words.longest})"
                for side, words in (("source", split.source_words), ("target", split.target_words))
            ]
            yield f"  {name}: {split.distinct_sources:,} distinct sources; {'; '.join(sides)}"
    for name, rules in report.dropped.items():
        reasons = ", ".join(f"{rule} {found.count:,}" for rule, found in rules.items())
        if reasons or name == "train":
            yield f"dropped from {name}: {reasons or 'nothing'}"
        for rule, found in rules.items():
            yield from (f"  {rule}: {_shown(example)}" for example in found.examples)
    for warning in report.warnings:
        yield f"WARNING: {warning.text}"
        yield from (f"  {_shown(example)}" for example in warning.examples)


def _shown(example: Example) -> str:
    return f"pair {example.number:,}: {_short(example.source)} | {_short(example.target)}"


def _short(text: str, width: int = 40) -> str:
    """A text on one line of a terminal: at most `width` characters, what cannot be seen as an escape."""
    visible = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[: width + 1])
    return visible if len(text) <= width else visible[: width - 1] + "…"
