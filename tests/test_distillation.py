"""Training pairs that models make."""

import json
import runpy
import sys
from pathlib import Path

import pytest
from small import TRAIN, saved_model, tiny_recipe, write_recipe

from seq2seq.config import DataConfig
from seq2seq.data.corpus import load_corpus
from seq2seq.data.files import read_pairs
from seq2seq.data.splits import Example, group_references
from seq2seq.errors import UserError
from seq2seq.training import distillation
from seq2seq.training.distillation import Teacher, Teaching, distil, distilled, nearest
from seq2seq.translation.engine import open_engine
from seq2seq.translation.reranking import look_back
from seq2seq.translation.result import Alternative
from seq2seq.translation.translator import Translator


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("teachers")
    return [saved_model(root / name, seed=seed) for seed, name in enumerate(("one", "two"), 1)]


SCRIPT = Path(__file__).parents[1] / "scripts/distil.py"


def turn(folder: Path) -> Path:
    """A model of the other direction."""
    config = folder / "config.json"
    turned = config.read_text(encoding="utf-8").replace('"en"', '"x"').replace('"fr"', '"en"').replace('"x"', '"fr"')
    config.write_text(turned, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def back(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(turn(saved_model(tmp_path_factory.mktemp("back") / "model", seed=1)))


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
    assert distil(data, Teaching([str(folders[0])], 2, 1), output) == len(TRAIN)
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
    distil(data, Teaching([str(folders[0])], 1, 1), output)
    assert [source for source, _ in read_pairs([output], "en", "fr")] == [f"the cat {number}" for number in range(9)]


def test_a_teacher_of_other_languages_is_refused(folders, data, tmp_path):
    other = data.model_copy(update={"source": "de", "target": "fr"})
    with pytest.raises(UserError, match="the data is de-fr, the model en-fr"):
        distil(other, Teaching([str(folders[0])], 1, 1), tmp_path / "out.tsv")
    assert not list(tmp_path.iterdir())


def test_it_goes_on_where_it_was_interrupted_and_another_job_does_not(folders, data, tmp_path, monkeypatch):
    monkeypatch.setattr(distillation, "CHUNK", 20)
    whole = tmp_path / "whole.tsv"
    models = [str(folder) for folder in folders]
    distil(data, Teaching(models, 1, 1), whole)
    calls = []

    def dying(translator, examples, beam_size, n_best):
        calls.append(len(examples))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return distilled(translator, examples, beam_size, n_best)

    monkeypatch.setattr(distillation, "distilled", dying)
    output = tmp_path / "distilled.tsv"
    with pytest.raises(KeyboardInterrupt):
        distil(data, Teaching(models, 1, 1), output)
    assert not output.exists()
    distil(data, Teaching(models[:1], 1, 1), tmp_path / "other.tsv")
    calls[:] = [0, 0]
    distil(data, Teaching(models, 1, 1), output)
    assert calls[2:] == [20, len(TRAIN) - 40]
    assert output.read_bytes() == whole.read_bytes()
    assert output.read_bytes() != (tmp_path / "other.tsv").read_bytes()


def test_what_is_written_can_be_trained_on(folders, data, tmp_path):
    output = tmp_path / "distilled.tsv"
    distil(data, Teaching([str(folders[0])], 2, 2), output)
    found = load_corpus(data.model_copy(update={"extra": [str(output)]}))
    assert found.report.read[f"extra {output}"] == len(TRAIN)
    with pytest.raises(UserError, match="no-such-model"):
        distil(data, Teaching(["no-such-model"]), output)


def test_a_model_of_the_other_direction_translates_the_targets(data, back, tmp_path):
    output = tmp_path / "back.tsv"
    targets = list(dict.fromkeys(pair.target for pair in TRAIN))
    assert distil(data, Teaching([back], 2, 1), output) == len(targets)
    pairs = list(read_pairs([output], "en", "fr"))
    assert [target for _, target in pairs] == targets
    teacher = Translator.from_pretrained(back)
    found = [teacher.translate(target, beam_size=2, attention=False) for target in targets]
    assert not all(result.truncated for result in found)
    for (source, target), result in zip(pairs, found, strict=True):
        assert result.truncated or source == result.text, target


@pytest.mark.parametrize("other_way", [False, True])
def test_the_judge_leaves_out_what_it_finds_improbable(folders, back, other_way):
    names = [str(folders[0]), back]
    teacher, judge = reversed(names) if other_way else names
    examples = group_references(pair[::-1] if other_way else pair for pair in TRAIN)
    made = Teacher(Teaching([teacher], 1, 1)).teach(examples)
    found = look_back(open_engine(judge, "torch"), made)
    least = sorted(found)[len(found) // 3]
    kept = Teacher(Teaching([teacher], 1, 1, judge=judge, least=least)).teach(examples)
    assert kept == [pair for pair, likelihood in zip(made, found, strict=True) if likelihood >= least]
    assert 0 < len(kept) < len(made)


def test_a_pair_that_the_corpus_has_is_not_new(folders, data, tmp_path, monkeypatch):
    def parrot(translator, examples, beam_size, n_best):
        return [(example.source.upper(), f" {example.references[0]}") for example in examples[:-1]] + made

    made = [("the cat\u2028sleeps.", "Rien de neuf.")]
    monkeypatch.setattr(distillation, "distilled", lambda *given: [distillation.Pair(*pair) for pair in parrot(*given)])
    output = tmp_path / "new.tsv"
    assert distil(data, Teaching([str(folders[0])], 1, 1, new=True), output) == 1
    assert output.read_text(encoding="utf-8") == "\t".join(made[0]) + "\n"
    assert distil(data, Teaching([str(folders[0])], 1, 1), output) == len(TRAIN)


def test_other_settings_are_another_job(folders, data, back, tmp_path):
    own = [str(folders[0])]
    teachings = [
        Teaching(own),
        Teaching(own, beam_size=4),
        Teaching(own, n_best=1),
        Teaching(own, engine="ctranslate2"),
        Teaching(own, rerank=back),
        Teaching(own, judge=back, least=-1.0),
        Teaching(own, judge=back, least=-2.0),
        Teaching(own, new=True),
    ]
    assert len({distillation._job(TRAIN, teaching) for teaching in teachings}) == len(teachings)


def run_script(monkeypatch, *arguments: str) -> int:
    """Its exit status."""
    monkeypatch.setattr(sys, "argv", ["distil", *arguments])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    return ended.value.code


def test_the_script_says_how_many_pairs_it_made(corpus, back, folders, tmp_path, monkeypatch, capsys):
    recipe, output = write_recipe(tmp_path / "tiny.toml", tiny_recipe(corpus)), tmp_path / "made.tsv"
    wanted = ["--judge", str(folders[0]), "--least", "-9.5", "--rerank", str(folders[0]), "--new"]
    arguments = [str(recipe), "--model", back, "--output", str(output), "--beam-size", "2", "--n-best", "1", *wanted]
    assert run_script(monkeypatch, *arguments) == 0
    lines = output.read_text(encoding="utf-8").splitlines()
    assert 0 < len(lines) < len(TRAIN)
    assert capsys.readouterr().err.endswith(f"distil: {len(lines)} pairs in {output}\n")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--output", "made.txt"], "--output made.txt must end in .tsv"),
        (["--n-best", "6"], "--n-best 6 is not between 1 and --beam-size 5"),
        (["--least", "-1"], "--judge and --least go together"),
        (["--judge", "fr-en"], "--judge and --least go together"),
        (["--judge", "fr-en", "--least", "0.5"], "--least 0.5 is not a log-probability"),
        (["--judge", "fr-en", "--least", "nan"], "--least nan is not a log-probability"),
        (["--judge", "en-fr", "--least", "-1"], "en-fr translates en-fr: to judge takes one of fr-en"),
        (["--rerank", "en-fr"], "translates en-fr: to rerank takes one of fr-en"),
        (["--engine", "abacus"], "engine 'abacus' is not one of torch, ctranslate2"),
    ],
)
def test_the_script_refuses_in_one_line(arguments, line, corpus, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    recipe = write_recipe(tmp_path / "tiny.toml", tiny_recipe(corpus))
    output = [] if "--output" in arguments else ["--output", "made.tsv"]
    assert run_script(monkeypatch, str(recipe), "--model", "en-fr", *output, *arguments) == 1
    assert line in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.toml"]
