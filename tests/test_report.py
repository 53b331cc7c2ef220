"""What the report says of a corpus: counts, reasons, examples, and what to look at before training."""

import hashlib
import json
from pathlib import Path

import pytest

from seq2seq.config import DataConfig
from seq2seq.data.corpus import Corpus, examine, load_corpus
from seq2seq.data.report import Report
from seq2seq.data.splits import Pair, fingerprint

PAIRS = [Pair(f"There are {number} boats.", f"Il y a {number} bateaux bleus.") for number in range(400)]
WORST = [
    *PAIRS[:200],
    Pair("", "orphelin"),
    Pair("w " * 101, "v " * 101),
    Pair("a b c d e f g h i", "x"),
    Pair("Paris", "Paris"),
    PAIRS[7],
    PAIRS[8],
    Pair("THERE are 300 boats", "autre chose"),
]


def tsv(path: Path, pairs: list[Pair]) -> list[str]:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return [str(path)]


@pytest.fixture
def corpus(tmp_path) -> Corpus:
    """Every cleaning rule drops something; dev and test are given."""
    return load_corpus(
        DataConfig(
            train=tsv(tmp_path / "train.tsv", WORST),
            dev=tsv(tmp_path / "dev.tsv", [*PAIRS[200:320], PAIRS[200], Pair("x", " ")]),
            test=tsv(tmp_path / "test.tsv", PAIRS[300:]),
        )
    )


def cautions(report: Report) -> list[str]:
    return [caution.text for caution in report.warnings]


def test_each_rule_has_its_count_and_examples_with_their_numbers(corpus):
    found = corpus.report.dropped["train"]
    assert {rule: dropped.count for rule, dropped in found.items()} == {
        "empty": 1,
        "too long": 1,
        "length ratio": 1,
        "copy": 1,
        "duplicate": 2,
        "also in dev or test": 1,
    }
    [first, second] = found["duplicate"].examples
    assert (first.number, first.source, first.target) == (205, *PAIRS[7])
    assert second.number == 206
    assert found["too long"].examples[0].source == "w " * 101


def test_what_dev_and_test_lose_is_reported_too(corpus):
    assert {rule: found.count for rule, found in corpus.report.dropped["dev"].items()} == {
        "empty": 1,
        "duplicate": 1,
        "also in dev or test": 20,
    }
    assert corpus.report.dropped["test"] == {}


def test_at_most_three_examples_are_shown(corpus):
    assert [example.number for example in corpus.report.dropped["dev"]["also in dev or test"].examples] == [
        101,
        102,
        103,
    ]


def test_splits_have_sizes_words_and_fingerprints(corpus):
    train = corpus.report.splits["train"]
    assert corpus.report.read == {"train": 207, "dev": 122, "test": 100}
    assert (train.pairs, train.distinct_sources) == (200, 200)
    assert (train.source_words.mean, train.source_words.percentile_95, train.source_words.longest) == (4.0, 4, 4)
    assert train.target_words.mean == 6.0
    assert train.fingerprint == fingerprint(PAIRS[:200])
    assert corpus.fingerprint == fingerprint(PAIRS[:200], corpus.split.dev)


def test_the_ninety_fifth_percentile_is_a_length_that_occurs(tmp_path):
    pairs = [Pair("w " * length, "v " * length + "x") for length in range(1, 21)]
    words = examine(DataConfig(train=tsv(tmp_path / "a.tsv", pairs), dev=tsv(tmp_path / "b.tsv", PAIRS))).report.splits
    assert words["train"].source_words.percentile_95 in (19, 20)
    assert words["train"].source_words.mean == 10.5
    assert words["train"].target_words.longest == 21


def test_sources_that_repeat_are_counted_once(tmp_path):
    pairs = [Pair("Go.", "Va."), Pair("Go.", "Allez."), Pair("go.", "Pars.")]
    found = examine(DataConfig(train=tsv(tmp_path / "a.tsv", pairs), dev=tsv(tmp_path / "b.tsv", PAIRS)))
    assert found.report.splits["train"].distinct_sources == 2


def test_files_are_named_with_the_hash_of_their_bytes(corpus, tmp_path):
    files = corpus.report.files
    assert [(file.split, Path(file.name).name) for file in files] == [
        ("train", "train.tsv"),
        ("dev", "dev.tsv"),
        ("test", "test.tsv"),
    ]
    data = (tmp_path / "dev.tsv").read_bytes()
    assert (files[1].bytes, files[1].sha256) == (len(data), hashlib.sha256(data).hexdigest())


def test_the_report_is_plain_json(corpus):
    values = corpus.report.as_json()
    assert json.loads(json.dumps(values))["dropped"]["train"]["copy"] == {
        "count": 1,
        "examples": [{"number": 204, "source": "Paris", "target": "Paris"}],
    }
    assert set(values) == {"dataset", "source", "target", "files", "read", "splits", "dropped", "warnings"}


def test_the_text_shows_counts_reasons_and_shortened_examples(corpus):
    text = corpus.report.as_text()
    assert "\npairs: train 200, dev 100, test 100\n" in text
    assert "\n  copy: pair 204: Paris | Paris\n" in text
    assert f"\n  too long: pair 202: {'w ' * 19}w… | {'v ' * 19}v…\n" in text
    assert max(map(len, text.split("\n"))) < 220


def test_the_text_shows_what_cannot_be_seen_and_stays_on_its_lines(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [{"en": "a\x1b[31m\u2028b", "fr": "c\td\0"}] * 2 + [{"en": p.source, "fr": p.target} for p in PAIRS]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    text = examine(DataConfig(train=[str(path)], dev=tsv(tmp_path / "b.tsv", PAIRS[:1]))).report.as_text()
    assert "  duplicate: pair 2: a\\x1b[31m\\u2028b | c\\td\\x00" in text.split("\n")


def test_sentences_in_two_splits_are_a_warning_with_sides_and_examples(corpus):
    texts = cautions(corpus.report)
    expected = "1 of 100 test pairs have a sentence that is also in train (source side 1, target side 0)"
    assert f"{expected}; such pairs were removed from train" in texts
    both = "20 of 122 dev pairs have a sentence that is also in test (source side 20, target side 20)"
    assert f"{both}; such pairs were removed from dev" in texts
    [overlap] = [caution for caution in corpus.report.warnings if caution.text.startswith("1 of 100 test")]
    assert [example.source for example in overlap.examples] == ["There are 300 boats."]


def test_a_blank_side_is_no_sentence_in_two_splits(tmp_path):
    config = DataConfig(
        train=tsv(tmp_path / "a.tsv", [*PAIRS[:100], Pair("", "")]),
        dev=tsv(tmp_path / "b.tsv", [*PAIRS[100:], Pair("", "")]),
    )
    assert not any("also in" in text for text in cautions(examine(config).report))


def test_a_sound_corpus_has_no_warning(tmp_path):
    config = DataConfig(
        train=tsv(tmp_path / "a.tsv", PAIRS[:200]),
        dev=tsv(tmp_path / "b.tsv", PAIRS[200:300]),
        test=tsv(tmp_path / "c.tsv", PAIRS[300:]),
    )
    assert cautions(examine(config).report) == []
    assert "WARNING" not in examine(config).report.as_text()


def test_no_test_and_a_tiny_dev_are_warnings(tmp_path):
    found = examine(DataConfig(train=tsv(tmp_path / "a.tsv", PAIRS), dev=tsv(tmp_path / "b.tsv", [Pair("a", "b")])))
    assert cautions(found.report) == [
        "dev has 1 pair: scores over fewer than 100 say little",
        "no test pair: there is nothing to report on",
    ]


@pytest.mark.parametrize(
    ("pair", "count", "text"),
    [
        (Pair("Rome", "Rome"), 25, "25 of 225 training pairs are copies, source = target: is one side not translated?"),
        (
            Pair("a b c d e f", "x"),
            25,
            "25 of 225 training pairs are very unequal in length: do the lines belong together?",
        ),
        (
            Pair("caf\u00c3\u00a9", "x"),
            1,
            "1 train pair has text that looks wrongly decoded (as “Ã©” for “é”, or U+FFFD)",
        ),
        (Pair("bell \x07", "x"), 2, "2 train pairs have control characters"),
    ],
)
def test_damaged_data_is_a_warning(tmp_path, pair, count, text):
    train = tsv(tmp_path / "a.tsv", [*PAIRS[:200], *[pair] * count])
    report = examine(DataConfig(train=train, dev=tsv(tmp_path / "b.tsv", PAIRS[200:]))).report
    [caution] = [caution for caution in report.warnings if caution.text == text]
    assert caution.examples[0].number == 201
    assert (caution.examples[0].source, caution.examples[0].target) == pair


def test_files_named_in_the_wrong_order_are_a_warning(tmp_path):
    for name, side in (("a.fr", 1), ("a.en", 0)):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in PAIRS), encoding="utf-8")
    wrong, right = [[str(tmp_path / name) for name in names] for names in (("a.fr", "a.en"), ("a.en", "a.fr"))]
    message = "data.train seems to name its files in the wrong order: en first, then fr"
    assert message in cautions(examine(DataConfig(train=wrong)).report)
    assert message not in cautions(examine(DataConfig(train=right)).report)
