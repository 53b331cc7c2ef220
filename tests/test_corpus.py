import functools
import gzip
import http.server
import json
import threading
import unicodedata
import zipfile
from collections.abc import Iterator
from pathlib import Path

import datasets
import pytest

from seq2seq.config import DataConfig
from seq2seq.data import published
from seq2seq.data.corpus import SAMPLE, Corpus, fetch, load_corpus, load_split
from seq2seq.data.splits import Pair
from seq2seq.errors import UserError

PAIRS = [Pair(f"There are {number} boats.", f"Il y a {number} bateaux.") for number in range(300)]


def files(*train: Path, **splits: list[str]) -> DataConfig:
    return DataConfig(dataset="files", train=[str(path) for path in train], **splits)


def tsv(path: Path, pairs: list[Pair]) -> Path:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return path


def dropped(loaded: Corpus) -> dict[str, int]:
    return {rule: found.count for rule, found in loaded.report.dropped["train"].items()}


def everything(config: DataConfig) -> list[Pair]:
    return sorted(pair for split in load_corpus(config).split for pair in split)


@pytest.fixture
def mirror(tmp_path, monkeypatch) -> Path:
    """A folder that stands for the public corpora, with three files of Multi30k and a Tatoeba of 300 pairs."""
    folder = tmp_path / "mirror"
    (folder / "tatoeba").mkdir(parents=True)
    (folder / "multi30k").mkdir()
    with zipfile.ZipFile(folder / "tatoeba/fra-eng.zip", "w") as archive:
        archive.writestr("fra.txt", "".join(f"{source}\t{target}\tCC-BY\n" for source, target in PAIRS))
    for name, numbers in {"train": range(8), "val": (100, 3), "test_2016_flickr": (200, 100, 4)}.items():
        for language, form in (("en", "{} dogs run."), ("fr", "{} chiens courent.")):
            lines = "".join(form.format(number) + "\n" for number in numbers)
            (folder / f"multi30k/{name}.{language}.gz").write_bytes(gzip.compress(lines.encode()))
    monkeypatch.setenv("SEQ2SEQ_DATA", str(folder))
    return folder


@pytest.fixture
def few_lines(monkeypatch):
    """Multi30k as published had it no more lines than the mirror."""
    counts = {"train": 8, "val": 2, "test_2016_flickr": 3, "test_2017_flickr": 2}
    monkeypatch.setattr(published, "MULTI30K_LINES", counts)


def dogs(*numbers: int) -> list[Pair]:
    return [Pair(f"{number} dogs run.", f"{number} chiens courent.") for number in numbers]


def test_the_sample_loads_without_net_or_mirror(monkeypatch, no_net):
    monkeypatch.delenv("SEQ2SEQ_DATA", raising=False)
    loaded = load_corpus(DataConfig(dataset="sample"))
    assert all(loaded.split)
    assert len(loaded.split.train) > 1000
    assert no_net == []


def test_tatoeba_comes_from_the_mirror_and_not_from_the_net(mirror, no_net):
    loaded = load_corpus(DataConfig(dataset="tatoeba"))
    assert sorted(pair for split in loaded.split for pair in split) == sorted(PAIRS)
    assert all(loaded.split)
    assert no_net == []


@pytest.mark.parametrize("dataset", ["sample", "tatoeba"])
def test_the_reversed_direction_swaps_the_sides_of_the_same_splits(mirror, dataset):
    forward = load_corpus(DataConfig(dataset=dataset))
    backward = load_corpus(DataConfig(dataset=dataset, source="fr", target="en"))
    assert backward.split == tuple([Pair(*pair[::-1]) for pair in split] for split in forward.split)


def test_multi30k_has_the_official_splits_less_what_a_later_split_holds(mirror, few_lines, no_net):
    loaded = load_corpus(DataConfig(dataset="multi30k"))
    assert loaded.split.test == dogs(200, 100, 4)
    assert loaded.split.dev == dogs(3)
    assert loaded.split.train == dogs(0, 1, 2, 5, 6, 7)
    assert dropped(loaded) == {"also in dev or test": 2}
    assert no_net == []


def test_multi30k_reversed_reads_the_other_side_first(mirror, few_lines):
    loaded = load_corpus(DataConfig(dataset="multi30k", source="fr", target="en"))
    assert loaded.split.dev == [Pair("3 chiens courent.", "3 dogs run.")]


def test_multi30k_with_a_wrong_number_of_lines_is_refused(mirror):
    with pytest.raises(UserError, match=r"train\.en\.gz has 8 lines, the published file has 29000: fetch it again"):
        load_corpus(DataConfig(dataset="multi30k"))


def test_a_further_test_set_of_multi30k_is_loaded_by_its_name(mirror, few_lines):
    for language, line in (("en", "A cat.\n"), ("fr", "Un chat.\n")):
        (mirror / f"multi30k/test_2017_flickr.{language}.gz").write_bytes(gzip.compress(line.encode() * 2))
    config = DataConfig(dataset="multi30k")
    assert load_split(config, "test_2017_flickr") == [Pair("A cat.", "Un chat.")] * 2
    with pytest.raises(UserError, match="split 'test_2030' of multi30k is not one of train, dev, test, train, val"):
        load_split(config, "test_2030")


def test_a_split_of_a_corpus_is_loaded_by_its_name():
    config = DataConfig(dataset="sample")
    assert load_split(config, "dev") == load_corpus(config).split.dev
    with pytest.raises(UserError, match=r"split 'valid' of sample is not one of train, dev, test$"):
        load_split(config, "valid")


@pytest.mark.parametrize(
    ("dataset", "name"), [("tatoeba", "tatoeba/fra-eng.zip"), ("multi30k", "multi30k/train.en.gz")]
)
def test_a_file_that_the_mirror_lacks_is_one_clear_line_and_no_download(tmp_path, monkeypatch, no_net, dataset, name):
    monkeypatch.setenv("SEQ2SEQ_DATA", str(tmp_path))
    with pytest.raises(UserError, match=f"^SEQ2SEQ_DATA is set, so the net is not used, but .*{name} does not exist$"):
        load_corpus(DataConfig(dataset=dataset))
    assert no_net == []


def test_a_download_that_fails_is_one_line_that_names_the_way_out(monkeypatch):
    def fail(self, url):
        raise ConnectionError(f"no route to {url}\nlong story")

    monkeypatch.delenv("SEQ2SEQ_DATA", raising=False)
    monkeypatch.setattr(datasets.DownloadManager, "download", fail)
    with pytest.raises(
        UserError,
        match=r"^cannot download https://www\.manythings\.org/anki/fra-eng\.zip \(ConnectionError: no route to .*\); "
        r"set SEQ2SEQ_DATA to a folder that holds tatoeba/fra-eng\.zip$",
    ):
        load_corpus(DataConfig(dataset="tatoeba"))


class Site:
    """A folder served on this machine, and the paths that were asked for."""

    def __init__(self, folder: Path) -> None:
        self.asked: list[str] = []
        asked = self.asked

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_request(self, *_: object) -> None:
                asked.append(f"{self.command} {self.path}")

            def log_message(self, *_: object) -> None:
                pass

        handler = functools.partial(Handler, directory=str(folder))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def site(tmp_path, monkeypatch) -> Iterator[Site]:
    monkeypatch.delenv("SEQ2SEQ_DATA", raising=False)
    monkeypatch.setattr(datasets.config, "DOWNLOADED_DATASETS_PATH", tmp_path / "cache")
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "a.tsv").write_text("one\tun\n", encoding="utf-8")
    site = Site(folder)
    yield site
    site.close()


def test_a_file_is_downloaded_once_and_then_read_without_the_net(site, capfd):
    first = fetch("a.tsv", site.url + "a.tsv")
    assert first.read_text(encoding="utf-8") == "one\tun\n"
    assert "Downloading" in capfd.readouterr().err
    asked = list(site.asked)
    site.close()
    assert fetch("a.tsv", site.url + "a.tsv") == first
    assert site.asked == asked
    assert sum(request.startswith("GET") for request in asked) >= 1


def test_a_file_that_the_site_lacks_is_one_line(site):
    with pytest.raises(UserError, match=r"^cannot download http://127\.0\.0\.1:\d+/b\.tsv \(.*\); set SEQ2SEQ_DATA"):
        fetch("b.tsv", site.url + "b.tsv")


def test_two_parallel_files_a_tsv_and_a_jsonl_are_the_same_corpus(tmp_path):
    (tmp_path / "a.en").write_text("".join(f"{pair.source}\n" for pair in PAIRS), encoding="utf-8")
    (tmp_path / "a.fr.gz").write_bytes(gzip.compress("".join(f"{pair.target}\n" for pair in PAIRS).encode()))
    rows = "".join(json.dumps({"en": pair.source, "fr": pair.target}) + "\n" for pair in PAIRS)
    (tmp_path / "a.jsonl").write_text(rows, encoding="utf-8")
    two = load_corpus(files(tmp_path / "a.en", tmp_path / "a.fr.gz"))
    assert two.split == load_corpus(files(tsv(tmp_path / "a.tsv", PAIRS))).split
    assert two.split == load_corpus(files(tmp_path / "a.jsonl")).split
    assert sorted(pair for split in two.split for pair in split) == sorted(PAIRS)


def test_jsonl_files_know_their_languages(tmp_path):
    rows = "".join(json.dumps({"translation": {"en": pair.source, "fr": pair.target}}) + "\n" for pair in PAIRS)
    (tmp_path / "a.jsonl").write_text(rows, encoding="utf-8")
    config = DataConfig(dataset="files", source="fr", target="en", train=[str(tmp_path / "a.jsonl")])
    assert everything(config) == sorted(Pair(target, source) for source, target in PAIRS)


def test_given_dev_and_test_files_are_kept_whole_and_taken_from_train(tmp_path):
    dev, test = tsv(tmp_path / "dev.tsv", PAIRS[:2]), tsv(tmp_path / "test.tsv", PAIRS[2:4])
    loaded = load_corpus(files(tsv(tmp_path / "a.tsv", PAIRS), dev=[str(dev)], test=[str(test)]))
    assert loaded.split == (PAIRS[4:], PAIRS[:2], PAIRS[2:4])
    assert dropped(loaded) == {"also in dev or test": 4}
    assert "\npairs: train 296, dev 2, test 2\n" in loaded.report.as_text()
    assert "\ndropped from train: also in dev or test 4\n" in loaded.report.as_text()


def test_a_given_dev_file_alone_leaves_test_empty(tmp_path):
    loaded = load_corpus(files(tsv(tmp_path / "a.tsv", PAIRS), dev=[str(tsv(tmp_path / "dev.tsv", PAIRS[:2]))]))
    assert loaded.split == (PAIRS[2:], PAIRS[:2], [])


def test_a_given_test_file_alone_leaves_dev_to_the_split_rule(tmp_path):
    loaded = load_corpus(files(tsv(tmp_path / "a.tsv", PAIRS), test=[str(tsv(tmp_path / "test.tsv", PAIRS[:2]))]))
    assert loaded.split.test == PAIRS[:2]
    assert 0 < len(loaded.split.dev) < 30
    assert sorted(pair for split in loaded.split for pair in split) == sorted(PAIRS)


def test_files_may_be_of_any_language_pair(tmp_path):
    path = tsv(tmp_path / "a.tsv", PAIRS)
    assert everything(DataConfig(dataset="files", source="de", target="nl", train=[str(path)])) == sorted(PAIRS)


def test_files_without_a_training_file_are_refused():
    with pytest.raises(UserError, match=r"^data\.train names no file: give \[source, target\] or one"):
        load_corpus(DataConfig(dataset="files"))


@pytest.mark.parametrize("content", ["", "\n\n", "same\tsame\n"])
def test_a_corpus_without_a_usable_training_pair_is_refused(tmp_path, content):
    path = tmp_path / "a.tsv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=r"^data\.dataset = 'files': no training pair is left after cleaning"):
        load_corpus(files(path))


def test_an_unknown_dataset_is_refused_with_the_known_ones():
    with pytest.raises(UserError, match=r"'tatooba' is not one of sample, tatoeba, multi30k, files, hub:OWNER/NAME"):
        load_corpus(DataConfig(dataset="tatooba", source="de"))


@pytest.mark.parametrize("dataset", ["sample", "tatoeba", "multi30k"])
def test_a_public_corpus_in_another_language_is_refused(dataset):
    with pytest.raises(UserError, match=f"data.dataset = '{dataset}' is English-French, not de-fr"):
        load_corpus(DataConfig(dataset=dataset, source="de"))


def hub_rows(pairs: list[Pair]) -> datasets.Dataset:
    return datasets.Dataset.from_list([{"translation": {"en": pair.source, "fr": pair.target}} for pair in pairs])


@pytest.fixture
def hub(monkeypatch) -> datasets.DatasetDict:
    """What the hub answers to owner/name, subset en-fr."""
    answer = datasets.DatasetDict(
        train=hub_rows(PAIRS), validation=hub_rows(PAIRS[:2]), test=hub_rows(PAIRS[2:5]), extra=hub_rows(PAIRS[:1])
    )

    def load(name: str, subset: str | None) -> datasets.DatasetDict:
        assert (name, subset) == ("owner/name", "en-fr")
        return answer

    monkeypatch.setattr(datasets, "load_dataset", load)
    return answer


HUB = DataConfig(dataset="hub:owner/name", subset="en-fr")


def test_a_hub_dataset_is_read_by_its_translation_column(hub):
    assert load_corpus(HUB).split == (PAIRS[5:], PAIRS[:2], PAIRS[2:5])


@pytest.mark.parametrize("names", [("en", "fr"), ("source", "target")])
def test_a_hub_dataset_may_have_two_plain_columns(hub, names):
    columns = zip(names, zip(*PAIRS, strict=True), strict=True)
    hub["train"] = datasets.Dataset.from_dict({name: list(column) for name, column in columns})
    assert load_corpus(HUB).split == (PAIRS[5:], PAIRS[:2], PAIRS[2:5])


def test_a_hub_dataset_may_have_gaps_and_shuffled_rows(hub):
    rows = [{"translation": {"en": "x", "fr": None}}, {"translation": None}]
    hub["train"] = datasets.concatenate_datasets([hub_rows(PAIRS), datasets.Dataset.from_list(rows)]).shuffle(seed=1)
    loaded = load_corpus(HUB)
    assert sorted(loaded.split.train) == sorted(PAIRS[5:])
    assert dropped(loaded) == {"empty": 2, "also in dev or test": 5}


def test_a_hub_dataset_reversed_swaps_the_sides(hub):
    config = HUB.model_copy(update={"source": "fr", "target": "en"})
    assert load_corpus(config).split.dev == [Pair(*pair[::-1]) for pair in PAIRS[:2]]


def test_a_hub_dataset_of_one_split_is_split_by_the_rule(hub):
    del hub["validation"], hub["test"]
    loaded = load_corpus(HUB)
    assert all(loaded.split)
    assert sorted(pair for split in loaded.split for pair in split) == sorted(PAIRS)


def test_a_hub_dataset_of_other_languages_is_refused(hub):
    with pytest.raises(UserError, match=r"hub:owner/name holds the languages en, fr, not en and de"):
        load_corpus(HUB.model_copy(update={"target": "de"}))


def test_a_hub_dataset_without_a_translation_column_is_refused(hub):
    hub["train"] = datasets.Dataset.from_dict({"id": [1], "text": ["x"]})
    with pytest.raises(UserError, match=r"hub:owner/name has no columns 'en' and 'fr', .* but id, text"):
        load_corpus(HUB)


def test_a_hub_dataset_without_a_training_split_is_refused(hub):
    del hub["train"]
    with pytest.raises(UserError, match="'hub:owner/name' has no split 'train' but validation, test, extra"):
        load_corpus(HUB)


def test_a_hub_dataset_that_cannot_be_loaded_is_one_line(monkeypatch):
    def fail(name: str, subset: str | None) -> None:
        raise FileNotFoundError(f"Dataset '{name}' doesn't exist\nmore")

    monkeypatch.setattr(datasets, "load_dataset", fail)
    with pytest.raises(
        UserError, match=r"^data\.dataset = 'hub:owner/name' cannot be loaded: Dataset 'owner/name' doesn't exist$"
    ):
        load_corpus(HUB)


@pytest.fixture(scope="module")
def sample() -> list[list[str]]:
    return [line.split("\t") for line in SAMPLE.read_text(encoding="utf-8").removesuffix("\n").split("\n")]


def test_the_sample_has_a_thousand_pairs_of_two_columns(sample):
    assert len(sample) >= 1000
    assert {len(columns) for columns in sample} == {2}


@pytest.mark.parametrize("side", [0, 1])
def test_the_sample_repeats_no_sentence(sample, side):
    sentences = [columns[side] for columns in sample]
    assert len(set(sentences)) == len(sentences)


def test_the_sample_is_clean_text(sample):
    for sentence in (side for columns in sample for side in columns):
        assert sentence == " ".join(sentence.split(" ")) == sentence.strip()
        assert unicodedata.is_normalized("NFC", sentence)
        assert "  " not in sentence


def test_french_marks_of_the_sample_have_a_space_before_them(sample):
    for _, french in sample:
        for index, character in enumerate(french):
            if character in "?!:;" and french[index - 1] not in "?!":
                assert french[index - 1] in " \u00a0\u202f", french
