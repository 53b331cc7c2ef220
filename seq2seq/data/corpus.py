"""The corpus that a recipe names: read, split so that nothing leaks, cleaned, and reported on.

The text of a corpus lies on disk and is mapped into memory: see `seq2seq.data.table`. What comes from the net comes
through `datasets`, which is imported only then. With SEQ2SEQ_DATA set to a folder (tatoeba/fra-eng.zip,
multi30k/train.en.gz, ...), published corpora are read from there and the net is never touched.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from tqdm import tqdm

if TYPE_CHECKING:
    import datasets

from seq2seq.config import DataConfig
from seq2seq.data import files, published
from seq2seq.data.columns import ROWS, pairs_of, text_columns
from seq2seq.data.published import SAMPLE
from seq2seq.data.report import Report, Sieve, make_report
from seq2seq.data.splits import Pair, Split, fingerprint, sift, split_rows
from seq2seq.data.table import PairTable
from seq2seq.errors import UserError, first_line

__all__ = ["SAMPLE", "Corpus", "examine", "fetch", "load_corpus", "load_split"]

MIRROR = "SEQ2SEQ_DATA"
HUB_SPLITS = {"train": "train", "validation": "dev", "valid": "dev", "dev": "dev", "test": "test"}
# From dev and test nothing goes but blank and repeated pairs: they measure, whatever they hold.
HELD_OUT = DataConfig(max_words=10**9, max_ratio=10**9, drop_copies=False)


@dataclass(frozen=True)
class Corpus:
    """Three splits, extra pairs, and what was found in the data."""

    split: Split
    extra: list[PairTable]  # further training pairs
    report: Report

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the pairs that a run learns from and chooses by: train, dev, then extra ones."""
        return fingerprint(self.split.train, self.split.dev, *self.extra)


def load_corpus(config: DataConfig) -> Corpus:
    """Read, split and clean the corpus that a recipe names, to train on it."""
    corpus = examine(config)
    if not corpus.split.train:
        counts = {rule: dropped.count for rule, dropped in corpus.report.dropped["train"].items()}
        raise UserError(f"data.dataset = {config.dataset!r}: no training pair is left after cleaning ({counts})")
    return corpus


def examine(config: DataConfig) -> Corpus:
    """The same of any corpus, also of one that is no good for training."""
    names = available_splits(config)
    paths = {name: _paths(config, name) for name in names}
    given = {name: PairTable.write(_watched(pairs, name)) for name, pairs in _streams(config, paths).items()}
    train, dev, test = _divide(given, config)
    # One overlap is looked for among dev and test, too: a sentence to choose by must not be one to report on.
    sieves = [Sieve("test", test, sift(test, HELD_OUT))]
    sieves.append(Sieve("dev", dev, sift(dev, HELD_OUT, sieves[0].kept)))
    sieves.append(Sieve("train", train, sift(train, config, sieves[1].kept, sieves[0].kept)))
    extra = [_extra(name, config, sieves[1].kept, sieves[0].kept) for name in config.extra]
    read = {name: len(table) for name, table in given.items()} | {sieve.name: len(sieve.pairs) for sieve in extra}
    split = Split(*(sieve.kept for sieve in reversed(sieves)))
    return Corpus(split, [sieve.kept for sieve in extra], make_report(config, paths, read, sieves[::-1], extra))


def _extra(name: str, config: DataConfig, dev: PairTable, test: PairTable) -> Sieve:
    """Further training pairs: all pairs of a file, or the training split of a published corpus."""
    pairs = PairTable.write(_read_extra(name, config))
    return Sieve(f"extra {name}", pairs, sift(pairs, config, dev, test))


def _read_extra(name: str, config: DataConfig) -> Iterable[files.RawPair]:
    if name in published.PUBLISHED:
        plain = {"dataset": name, "extra": [], "train": [], "dev": [], "test": []}
        try:
            return load_split(config.model_copy(update=plain), "train")
        except UserError as error:
            raise UserError(str(error).replace("data.dataset = ", "data.extra: ")) from None
    if files.form_of(Path(name)):
        return _watched(files.read_pairs([Path(name)], config.source, config.target), name)
    known = f"{', '.join(published.PUBLISHED)}, or a file {files.FORMS}"
    raise UserError(f"data.extra: {name!r} is not one of {known}")


def _divide(given: dict[str, PairTable], config: DataConfig) -> tuple[PairTable, PairTable, PairTable]:
    """The splits as given; what is not given is taken from train by the split rule."""
    train = given["train"]
    none = train.select(np.zeros(0, np.int64))
    if "dev" in given:
        return train, given["dev"], given.get("test", none)
    # By the English side in either direction, so that both directions share one test set.
    rest, dev, test = split_rows(train.turned() if config.target == "en" else train)
    if "test" in given:
        return train.select(rest), train.select(np.concatenate([dev, test])), given["test"]
    return train.select(rest), train.select(dev), train.select(test)


def load_split(config: DataConfig, name: str) -> Sequence[Pair]:
    """The pairs of one split: train, dev, test, or any further test set that the corpus publishes; no extra pairs."""
    if name in Split._fields:
        return load_corpus(config.model_copy(update={"extra": []})).split[Split._fields.index(name)]
    if config.dataset == "multi30k" and name in published.MULTI30K_LINES:
        return PairTable.write(published.read_published(config, name, _paths(config, name)))
    more = f", {', '.join(published.MULTI30K_LINES)}" if config.dataset == "multi30k" else ""
    raise UserError(f"split {name!r} of {config.dataset} is not one of train, dev, test{more}")


def available_splits(config: DataConfig) -> list[str]:
    """The splits that the corpus itself defines; without dev and test, `split_rows` makes them."""
    if config.dataset == "multi30k":
        return list(published.MULTI30K_SPLITS)
    if config.dataset == "files":
        if not config.train:
            raise UserError(f"data.train names no file: give [source, target] or one {files.FORMS}")
        return [name for name in Split._fields if getattr(config, name)]
    return ["train"]


def _paths(config: DataConfig, split: str) -> list[Path]:
    """Local files of a split, fetched if need be; none of a hub dataset."""
    if config.dataset == "files":
        return [Path(name) for name in getattr(config, split)]
    if config.dataset.startswith("hub:"):
        return []
    if config.dataset not in published.PUBLISHED:
        known = "sample, tatoeba, multi30k, files, hub:OWNER/NAME"
        raise UserError(f"data.dataset = {config.dataset!r} is not one of {known}")
    if {config.source, config.target} != {"en", "fr"}:
        raise UserError(f"data.dataset = {config.dataset!r} is English-French, not {config.source}-{config.target}")
    if config.dataset == "sample":
        return [SAMPLE]
    return [fetch(name, url) for name, url in published.published_files(config, split)]


def _streams(config: DataConfig, paths: dict[str, list[Path]]) -> dict[str, Iterator[files.RawPair]]:
    """The pairs of each split, as they are read."""
    if config.dataset.startswith("hub:"):
        return _hub_splits(config)
    if config.dataset == "files":
        return {name: files.read_pairs(files_of, config.source, config.target) for name, files_of in paths.items()}
    return {name: published.read_published(config, name, files_of) for name, files_of in paths.items()}


def _watched(pairs: Iterator[files.RawPair], name: str) -> Iterator[files.RawPair]:
    """The pairs, counted on stderr while they are read, if that is a terminal."""
    watched: Iterator[files.RawPair] = iter(tqdm(pairs, desc=name, unit=" pairs", disable=None, leave=False))
    return watched


def fetch(name: str, url: str) -> Path:
    """A published file: from the mirror that SEQ2SEQ_DATA names, else downloaded once into the cache of `datasets`."""
    mirror = os.environ.get(MIRROR)
    if mirror:
        path = Path(mirror) / name
        if not path.is_file():
            raise UserError(f"{MIRROR} is set, so the net is not used, but {path} does not exist")
        return path
    import datasets

    config = datasets.DownloadConfig(
        storage_options={"https": {"headers": {"User-Agent": "Mozilla/5.0 (seq2seq)"}}},
        max_retries=2,
        use_etag=False,  # a file in the cache is used without asking the net whether there is a newer one
    )
    try:
        return Path(datasets.DownloadManager(download_config=config).download(url))
    except Exception as error:  # every transport has its own exception
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise UserError(f"cannot download {url} ({reason}); set {MIRROR} to a folder that holds {name}") from None


def _hub_splits(config: DataConfig) -> dict[str, Iterator[files.RawPair]]:
    """The pairs of train, dev and test of a hub dataset, as far as it has them; `train` it must have."""
    import datasets

    try:
        loaded = datasets.load_dataset(config.dataset.removeprefix("hub:"), config.subset)
    except Exception as error:
        raise UserError(f"data.dataset = {config.dataset!r} cannot be loaded: {first_line(error)}") from None
    found = {HUB_SPLITS[name]: dataset for name, dataset in loaded.items() if name in HUB_SPLITS}
    if "train" not in found:
        raise UserError(f"data.dataset = {config.dataset!r} has no split 'train' but {', '.join(loaded)}")
    return {name: _read_dataset(dataset, config) for name, dataset in found.items()}


def _read_dataset(dataset: "datasets.Dataset", config: DataConfig) -> Iterator[files.RawPair]:
    """Pairs of one split, some thousand rows at a time."""
    names = text_columns(dataset.features.arrow_schema, config.source, config.target, config.dataset)
    for table in dataset.select_columns(list(names)).with_format("arrow").iter(ROWS):
        for batch in table.to_batches():
            yield from pairs_of(batch, names, config.source, config.target)
