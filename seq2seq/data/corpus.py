"""Sentence pairs through `datasets`: public corpora, hub datasets, local files and the packaged sample.

With SEQ2SEQ_DATA set to a folder (tatoeba/fra-eng.zip, multi30k/train.en.gz, ...), public corpora are read from
there and the net is never touched.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import datasets

from seq2seq.config import DataConfig
from seq2seq.data import files
from seq2seq.data.splits import Pair, Split, clean, distinct, split_pairs
from seq2seq.errors import UserError

MIRROR = "SEQ2SEQ_DATA"
SAMPLE = Path(__file__).with_name("sample.tsv")
TATOEBA_URL = "https://www.manythings.org/anki/fra-eng.zip"
MULTI30K_URL = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/"
MULTI30K_SPLITS = {"train": "train", "dev": "val", "test": "test_2016_flickr"}
MULTI30K_LINES = {
    "train": 29_000,
    "val": 1_014,
    "test_2016_flickr": 1_000,
    "test_2017_flickr": 1_000,
    "test_2017_mscoco": 461,
    "test_2018_flickr": 1_071,
}


@dataclass(frozen=True)
class Corpus:
    """Three splits, and how many training pairs each cleaning rule dropped."""

    split: Split
    dropped: dict[str, int] = field(default_factory=dict)

    def report(self) -> str:
        """One line on the size of the splits, one on what cleaning dropped and why."""
        sizes = ", ".join(f"{name} {len(pairs):,}" for name, pairs in self.split._asdict().items())
        reasons = ", ".join(f"{rule} {count:,}" for rule, count in self.dropped.items())
        return f"pairs: {sizes}\ndropped from train: {reasons or 'nothing'}"


def load_corpus(config: DataConfig) -> Corpus:
    """Read, split and clean the corpus that a recipe names."""
    given = {name: _pairs(load_dataset(config, name)) for name in available_splits(config)}
    if not {"dev", "test"} & set(given):
        split = _split(given["train"], config)
    elif "dev" in given:
        split = Split(given["train"], given["dev"], given.get("test", []))
    else:
        train, dev, more_dev = _split(given["train"], config)
        split = Split(train, dev + more_dev, given["test"])
    split = split._replace(dev=distinct(split.dev), test=distinct(split.test))
    # One overlap is looked for among dev and train, too: a sentence to choose by must not be one to report on.
    dev, _ = clean(split.dev, DataConfig(max_words=10**9, max_ratio=10**9, drop_copies=False), held_out=split.test)
    train, dropped = clean(split.train, config, held_out=[*dev, *split.test])
    if not train:
        raise UserError(f"data.dataset = {config.dataset!r}: no training pair is left after cleaning ({dropped})")
    return Corpus(Split(train, dev, split.test), dropped)


def _split(pairs: list[Pair], config: DataConfig) -> Split:
    """The split rule, by the English side in either direction, so that both directions share one test set."""
    if config.target != "en":
        return split_pairs(pairs)
    return Split(*(_swapped(part) for part in split_pairs(_swapped(pairs))))


def _swapped(pairs: list[Pair]) -> list[Pair]:
    return [Pair(target, source) for source, target in pairs]


def load_split(config: DataConfig, name: str) -> list[Pair]:
    """The pairs of one split: train, dev, test, or any further test set that the corpus publishes."""
    if name in Split._fields:
        return load_corpus(config).split[Split._fields.index(name)]
    if config.dataset == "multi30k" and name in MULTI30K_LINES:
        return _pairs(load_dataset(config, name))
    more = f", {', '.join(MULTI30K_LINES)}" if config.dataset == "multi30k" else ""
    raise UserError(f"split {name!r} of {config.dataset} is not one of train, dev, test{more}")


def available_splits(config: DataConfig) -> list[str]:
    """The splits that the corpus itself defines; without dev and test, `split_pairs` makes them."""
    if config.dataset == "multi30k":
        return list(MULTI30K_SPLITS)
    if config.dataset == "files":
        if not config.train:
            raise UserError("data.train names no file: give [source, target] or one .tsv or .jsonl")
        return [name for name in Split._fields if getattr(config, name)]
    if config.dataset.startswith("hub:"):
        return list(_hub(config))
    return ["train"]


def load_dataset(config: DataConfig, split: str) -> datasets.Dataset:
    """One split as a `datasets.Dataset` with the text columns `source` and `target`."""
    if config.dataset.startswith("hub:"):
        return _hub(config)[split]
    paths = _paths(config, split)
    read = files.read_tatoeba if config.dataset == "tatoeba" else files.read_tsv
    if config.dataset in ("tatoeba", "sample"):  # the files are English TAB French
        return _dataset(pair if config.source == "en" else pair[::-1] for pair in read(paths[0]))
    dataset = _dataset(files.read_pairs(paths, config.source, config.target))
    expected = MULTI30K_LINES.get(MULTI30K_SPLITS.get(split, split)) if config.dataset == "multi30k" else None
    if expected is not None and len(dataset) != expected:
        raise UserError(f"{paths[0]} has {len(dataset)} lines, the published file has {expected}: fetch it again")
    return dataset


def _paths(config: DataConfig, split: str) -> list[Path]:
    """Local files of a split, downloaded if need be."""
    languages = (config.source, config.target)
    if config.dataset == "files":
        return [Path(name) for name in getattr(config, split)]
    if config.dataset not in ("sample", "tatoeba", "multi30k"):
        known = "sample, tatoeba, multi30k, files, hub:OWNER/NAME"
        raise UserError(f"data.dataset = {config.dataset!r} is not one of {known}")
    if set(languages) != {"en", "fr"}:
        raise UserError(f"data.dataset = {config.dataset!r} is English-French, not {languages[0]}-{languages[1]}")
    if config.dataset == "sample":
        return [SAMPLE]
    if config.dataset == "tatoeba":
        return [fetch("tatoeba/fra-eng.zip", TATOEBA_URL)]
    names = [f"{MULTI30K_SPLITS.get(split, split)}.{language}.gz" for language in languages]
    return [fetch(f"multi30k/{name}", MULTI30K_URL + name) for name in names]


def fetch(name: str, url: str) -> Path:
    """A published file: from the mirror that SEQ2SEQ_DATA names, else downloaded once into the cache."""
    mirror = os.environ.get(MIRROR)
    if mirror:
        path = Path(mirror) / name
        if not path.is_file():
            raise UserError(f"{MIRROR} is set, so the net is not used, but {path} does not exist")
        return path
    download = datasets.DownloadConfig(
        storage_options={"https": {"headers": {"User-Agent": "Mozilla/5.0 (seq2seq)"}}},
        max_retries=2,
        use_etag=False,  # a file in the cache is used without asking the net whether there is a newer one
    )
    try:
        return Path(datasets.DownloadManager(download_config=download).download(url))
    except Exception as error:  # every transport has its own exception
        reason = f"{type(error).__name__}: {error}".split("\n")[0]
        raise UserError(f"cannot download {url} ({reason}); set {MIRROR} to a folder that holds {name}") from None


def _dataset(pairs: Iterable[files.RawPair]) -> datasets.Dataset:
    rows = list(pairs)
    return datasets.Dataset.from_dict({"source": [row[0] for row in rows], "target": [row[1] for row in rows]})


def _hub(config: DataConfig) -> dict[str, datasets.Dataset]:
    """Splits of a hub dataset whose `translation` column holds {language: text}."""
    name = config.dataset.removeprefix("hub:")
    try:
        loaded = datasets.load_dataset(name, config.subset)
    except Exception as error:
        reason = str(error).split("\n")[0]
        raise UserError(f"data.dataset = {config.dataset!r} cannot be loaded: {reason}") from None
    known = {"train": "train", "validation": "dev", "dev": "dev", "test": "test"}
    found = {known[split]: dataset for split, dataset in loaded.items() if split in known}
    if "train" not in found:
        raise UserError(f"data.dataset = {config.dataset!r} has no split 'train' but {', '.join(loaded)}")
    return {split: _from_translation(config, dataset) for split, dataset in found.items()}


def _from_translation(config: DataConfig, dataset: datasets.Dataset) -> datasets.Dataset:
    if "translation" not in dataset.column_names:
        columns = ", ".join(dataset.column_names)
        raise UserError(f"data.dataset = {config.dataset!r} has no column 'translation' but {columns}")
    languages = set(dataset[0]["translation"]) if len(dataset) else set()
    if not {config.source, config.target} <= languages:
        raise UserError(f"{config.dataset} holds {sorted(languages)}, not {config.source!r} and {config.target!r}")

    def as_pair(row: dict[str, Any]) -> dict[str, str]:
        return {"source": row["translation"][config.source], "target": row["translation"][config.target]}

    return dataset.map(as_pair, remove_columns=dataset.column_names)


def _pairs(dataset: datasets.Dataset) -> list[Pair]:
    return [Pair(*pair) for pair in zip(dataset["source"], dataset["target"], strict=True)]
