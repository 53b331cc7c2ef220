"""Training sources with a teacher's translations."""

import json
from pathlib import Path

import pytest
from small import TRAIN, saved_model, tiny_recipe

from seq2seq.config import DataConfig
from seq2seq.data.corpus import load_corpus
from seq2seq.data.files import read_pairs
from seq2seq.data.splits import Example
from seq2seq.errors import UserError
from seq2seq.training import distillation
from seq2seq.training.distillation import distil, distilled, nearest
from seq2seq.translation.result import Alternative
from seq2seq.translation.translator import Translator


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("teachers")
    return [saved_model(root / name, seed=seed) for seed, name in enumerate(("one", "two"), 1)]


def write_dev(folder: Path) -> Path:
    path = folder / "dev.tsv"
    path.write_text("We sing.\tNous chantons.\n", encoding="utf-8")
    return path


@pytest.fixture
def data(corpus: Path) -> DataConfig:
    return tiny_recipe(corpus).data


def test_the_nearest_to_any_reference_is_chosen_and_of_equals_the_first():
    options = [Alternative("Il dort.", -0.1), Alternative("Le chat dort.", -0.2), Alternative("Le chat dort.", -0.3)]
    assert nearest(options, ["Un chien mange.", "Le chat dort."]) == "Le chat dort."
    assert nearest(options[:1], ["Le chat dort."]) == "Il dort."
    assert nearest([Alternative("a", -1), Alternative("b", -2)], ["xyz"]) == "a"


def test_every_source_comes_once_with_the_teachers_translation(folders, data, tmp_path):
    output = tmp_path / "distilled.tsv"
    assert distil(data, [str(folders[0])], output, beam_size=2, n_best=1) == len(TRAIN)
    pairs = list(read_pairs([output], "en", "fr"))
    assert [source for source, _ in pairs] == [pair.source for pair in TRAIN]
    teacher = Translator.from_pretrained(folders[0])
    for (source, target), pair in zip(pairs[:5], TRAIN, strict=False):
        result = teacher.translate(source, beam_size=2, attention=False)
        assert target == (pair.target if result.truncated else result.text)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["distilled.tsv"]


def test_a_translation_that_was_cut_is_not_taught(folders):
    teacher = Translator.from_pretrained(folders[0])
    found = [teacher.translate(pair.source, beam_size=1, attention=False) for pair in TRAIN]
    cut = next(pair for pair, result in zip(TRAIN, found, strict=True) if result.truncated)
    example = Example(cut.source, ("La première.", "La seconde."))
    assert distilled(teacher, [example], 1, 1)[0].target == "La première."


def test_a_tab_in_a_source_is_a_space_in_the_file(folders, tmp_path):
    path = tmp_path / "corpus.jsonl"
    rows = [{"en": f"the\tcat {number}", "fr": f"le chat {number}"} for number in range(9)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    output = tmp_path / "distilled.tsv"
    data = DataConfig(train=[str(path)], dev=[str(write_dev(tmp_path))])
    distil(data, [str(folders[0])], output, 1, 1)
    assert [source for source, _ in read_pairs([output], "en", "fr")] == [f"the cat {number}" for number in range(9)]


def test_a_teacher_of_other_languages_is_refused(folders, data, tmp_path):
    turned = data.model_copy(update={"source": "fr", "target": "en"})
    with pytest.raises(UserError, match="the data is fr-en, the model en-fr"):
        distil(turned, [str(folders[0])], tmp_path / "out.tsv", 1, 1)
    assert not list(tmp_path.iterdir())


def test_it_goes_on_where_it_was_interrupted_and_another_job_does_not(folders, data, tmp_path, monkeypatch):
    monkeypatch.setattr(distillation, "CHUNK", 20)
    whole = tmp_path / "whole.tsv"
    models = [str(folder) for folder in folders]
    distil(data, models, whole, beam_size=1, n_best=1)
    calls = []

    def dying(translator, examples, beam_size, n_best):
        calls.append(len(examples))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return distilled(translator, examples, beam_size, n_best)

    monkeypatch.setattr(distillation, "distilled", dying)
    output = tmp_path / "distilled.tsv"
    with pytest.raises(KeyboardInterrupt):
        distil(data, models, output, beam_size=1, n_best=1)
    assert not output.exists()
    distil(data, models[:1], tmp_path / "other.tsv", beam_size=1, n_best=1)
    calls[:] = [0, 0]
    distil(data, models, output, beam_size=1, n_best=1)
    assert calls[2:] == [20, len(TRAIN) - 40]
    assert output.read_bytes() == whole.read_bytes()
    assert output.read_bytes() != (tmp_path / "other.tsv").read_bytes()


def test_what_is_written_can_be_trained_on(folders, data, tmp_path):
    output = tmp_path / "distilled.tsv"
    distil(data, [str(folders[0])], output, beam_size=2, n_best=2)
    found = load_corpus(data.model_copy(update={"extra": [str(output)]}))
    assert found.report.read[f"extra {output}"] == len(TRAIN)
    with pytest.raises(UserError, match="no-such-model"):
        distil(data, ["no-such-model"], output, 1, 1)
