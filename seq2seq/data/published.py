"""Published corpora, English-French: Tatoeba, Multi30k and the sample in the package."""

from collections.abc import Iterator
from pathlib import Path

from seq2seq.config import DataConfig
from seq2seq.data import files
from seq2seq.errors import UserError

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
PUBLISHED = ("sample", "tatoeba", "multi30k")


def published_files(config: DataConfig, split: str) -> list[tuple[str, str]]:
    """The files of a split of Tatoeba or Multi30k: the name in a mirror, and the address."""
    if config.dataset == "tatoeba":
        return [("tatoeba/fra-eng.zip", TATOEBA_URL)]
    names = [f"{MULTI30K_SPLITS.get(split, split)}.{language}.gz" for language in (config.source, config.target)]
    return [(f"multi30k/{name}", MULTI30K_URL + name) for name in names]


def read_published(config: DataConfig, split: str, paths: list[Path]) -> Iterator[files.RawPair]:
    """Pairs of the files of a split, in the recipe's direction."""
    if config.dataset == "multi30k":
        return _counted(files.read_pairs(paths, config.source, config.target), split, paths[0])
    # These files are English TAB French.
    pairs = files.read_tatoeba(paths[0]) if config.dataset == "tatoeba" else files.read_tsv(paths[0])
    return pairs if config.source == "en" else ((french, english) for english, french in pairs)


def _counted(pairs: Iterator[files.RawPair], split: str, path: Path) -> Iterator[files.RawPair]:
    """The pairs, with an error at their end if they are not as many as were published."""
    count = 0
    for pair in pairs:
        count += 1
        yield pair
    expected = MULTI30K_LINES[MULTI30K_SPLITS.get(split, split)]
    if count != expected:
        raise UserError(f"{path} has {count} lines, the published file has {expected}: fetch it again")
