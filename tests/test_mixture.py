"""A corpus's own training pairs, repeated, with extra ones: read, cleaned, told apart."""

import re
from pathlib import Path

import pytest
from small import tiny_recipe
from trainings import prepared

from seq2seq.config import DataConfig
from seq2seq.data.corpus import load_corpus, load_split
from seq2seq.data.mixture import Mixture
from seq2seq.data.splits import Pair
from seq2seq.data.tokenizer import BOS
from seq2seq.errors import UserError
from seq2seq.training.loop import stream

OWN = [Pair("a", "A"), Pair("b", "B")]
EXTRA = [[Pair("c", "C")], [], [Pair("d", "D"), Pair("e", "E"), Pair("f", "F")]]


def test_a_mixture_is_its_parts_one_after_the_other():
    mixture = Mixture(OWN, EXTRA, repeat=3)
    expected = [*OWN * 3, *EXTRA[0], *EXTRA[2]]
    assert list(mixture) == expected
    assert [mixture[index] for index in range(len(mixture))] == mixture[:] == expected
    assert mixture.own == 6
    with pytest.raises(IndexError):
        mixture[len(expected)]


@pytest.fixture
def extra(corpus: Path, tmp_path: Path) -> Path:
    """Two pairs to learn from, a damaged one, and one that is also in the dev split."""
    dev = (corpus / "dev.tsv").read_text(encoding="utf-8").splitlines()[0]
    path = tmp_path / "extra.tsv"
    path.write_text(f"We saw a heron.\tNous avons vu un héron.\nNo.\tNon.\n\tVide.\n{dev}\n", encoding="utf-8")
    return path


def test_extra_pairs_are_cleaned_as_training_pairs_are(corpus, extra):
    data = tiny_recipe(corpus).data.model_copy(update={"extra": [str(extra)]})
    found = load_corpus(data)
    assert list(found.extra[0]) == [Pair("We saw a heron.", "Nous avons vu un héron."), Pair("No.", "Non.")]
    assert found.split == load_corpus(tiny_recipe(corpus).data).split
    assert found.report.read[f"extra {extra}"] == 4
    assert found.report.splits[f"extra {extra}"].pairs == 2
    assert set(found.report.dropped[f"extra {extra}"]) == {"empty", "also in dev or test"}
    assert f"extra {extra} 2" in found.report.as_text()


def test_a_corpus_is_tested_without_its_extra_pairs(corpus, tmp_path):
    data = tiny_recipe(corpus).data.model_copy(update={"extra": [str(tmp_path / "gone.tsv")]})
    assert load_split(data, "dev") == load_split(tiny_recipe(corpus).data, "dev")


def test_extra_pairs_of_a_published_corpus_keep_to_the_rules_of_the_recipe(corpus):
    short = load_corpus(DataConfig(dataset="sample", extra=["sample"], max_words=9))
    assert 0 < len(short.extra[0]) == len(short.split.train)
    with pytest.raises(UserError, match=r"^data\.extra: 'sample' is English-French, not en-de$"):
        load_corpus(tiny_recipe(corpus).data.model_copy(update={"target": "de", "extra": ["sample"]}))


def test_extra_pairs_are_part_of_the_fingerprint(corpus, extra):
    plain = tiny_recipe(corpus).data
    assert load_corpus(plain.model_copy(update={"extra": [str(extra)]})).fingerprint != load_corpus(plain).fingerprint


def test_a_published_corpus_gives_its_training_split():
    found = load_corpus(DataConfig(dataset="sample", extra=["sample"]))
    assert found.extra[0] == found.split.train


@pytest.mark.parametrize("name", ["no-such", "text.txt", ""])
def test_what_is_neither_a_corpus_nor_a_file_of_pairs_is_refused(name):
    rule = f"data.extra: {name!r} is not one of sample, tatoeba, multi30k, or a file .tsv"
    with pytest.raises(UserError, match=re.escape(rule)):
        load_corpus(DataConfig(dataset="sample", extra=[name]))


@pytest.mark.parametrize("marked", [True, False])
def test_an_epoch_repeats_the_own_pairs_and_marks_the_extra_ones(corpus, extra, tmp_path, quiet, marked):
    recipe = tiny_recipe(corpus)
    changes = {"extra": [str(extra)], "repeat": 2, "mark_extra": marked}
    run = prepared(recipe.model_copy(update={"data": recipe.data.model_copy(update=changes)}), tmp_path / "run")
    rows = []
    for part in stream(run):
        if run.state.progress.epoch:
            break
        rows += part.batch.src.tolist()
    once = len(load_corpus(recipe.data).split.train)
    assert len(rows) == 2 * once + 2
    heron = [row for row in rows if "heron" in run.tokenizer.decode(row)]
    assert [row[0] == BOS for row in heron] == [marked]
    assert sum(row[0] == BOS for row in rows) == (2 if marked else 0)
