"""Ablations: equal runs but for one thing, none of them twice, scored as the commands score them."""

import runpy
import sys
from pathlib import Path

import pytest
from small import DEV, saved_model, tiny_recipe, write_recipe

from seq2seq import evaluation
from seq2seq.checkpoint import load_model
from seq2seq.errors import UserError
from seq2seq.training import ablation
from seq2seq.training.ablation import AS_IT_IS, Outcome, ablate, load_trials
from seq2seq.translation.translator import Translator

SCRIPT = Path(__file__).parents[1] / "scripts/ablate.py"
PLANS = Path(__file__).parents[1] / "configs/ablations"
PLAN = """
[rows]
"wider, a b/c" = ["model.ffn=48"]
"greedy" = ["decode.beam_size=1"]
"""


@pytest.fixture(scope="module")
def recipe(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_recipe(tmp_path_factory.mktemp("recipe") / "tiny.toml", tiny_recipe(corpus, updates=20))


def plan(folder: Path, text: str) -> Path:
    path = folder / "plan.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch, quiet: None) -> list[Path]:
    """The folders that are trained in, in order; training in one that has ended says so and returns."""
    folders: list[Path] = []
    train = ablation.train

    def watched(recipe, folder, resume):
        folders.append(folder)
        return train(recipe, folder, resume=resume)

    monkeypatch.setattr(ablation, "train", watched)
    return folders


def test_each_row_changes_what_it_names_and_is_scored_on_the_dev_split(recipe, tmp_path, trained):
    trials = load_trials(recipe, plan(tmp_path, PLAN), tmp_path / "runs")
    first, wider, greedy = ablate(trials)
    assert [outcome.name for outcome in (first, wider, greedy)] == [AS_IT_IS, "wider, a b/c", "greedy"]
    assert (tmp_path / "runs/wider-a-b-c/model").is_dir()
    assert wider.parameters - first.parameters == 2 * (24 * 16 * 2 + 24)  # a layer a side, two matrices and a bias each
    assert first.updates == greedy.updates == 20
    translator = Translator.from_pretrained(tmp_path / "runs/as-it-is/model")
    found = [translator.translate(pair.source, beam_size=1, attention=False).text for pair in DEV]
    assert greedy.bleu == evaluation.score(found, [[pair.target] for pair in DEV]).bleu
    assert first.p_value is None
    assert wider.p_value is not None


def test_a_row_that_only_searches_otherwise_trains_nothing_of_its_own(recipe, tmp_path):
    trials = load_trials(recipe, plan(tmp_path, PLAN), tmp_path / "runs")
    assert trials[2].folder == trials[0].folder != trials[1].folder
    assert trials[2].recipe == trials[0].recipe


def test_the_same_call_goes_on_where_it_stopped(recipe, tmp_path, trained, capsys):
    trials = load_trials(recipe, plan(tmp_path, PLAN), tmp_path / "runs")
    outcomes = ablate(trials)
    once = next(outcomes)
    outcomes.close()
    capsys.readouterr()
    assert next(ablate(trials)) == once
    assert "nothing left to do" in capsys.readouterr().err


def test_a_row_that_searches_otherwise_is_searched_by_its_own_settings(recipe, tmp_path, trained):
    text = '[rows]\n"cut short" = ["decode.max_length_ratio=0.001"]'
    trials = load_trials(recipe, plan(tmp_path, text), tmp_path / "runs")
    model = saved_model(tmp_path / "model")
    sources = [pair.source for pair in DEV]
    plain, short = (ablation.translate(load_model(model), trial.decode, sources) for trial in trials)
    assert sum(map(len, short)) < sum(map(len, plain))


def test_settings_of_the_base_are_in_every_row(recipe, tmp_path):
    trials = load_trials(recipe, plan(tmp_path, "base = ['model.dropout=0.4']\n" + PLAN), tmp_path)
    assert {trial.recipe.model.dropout for trial in trials} == {0.4}


@pytest.mark.parametrize("path", sorted(PLANS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_plan_that_is_shipped_fits_its_recipe(path, tmp_path):
    trials = load_trials(PLANS.parent / path.name, path, tmp_path)
    recipes = [trial.recipe.model_dump_json() + trial.decode.model_dump_json() for trial in trials]
    assert len(set(recipes)) == len(trials)  # each row changes something


def test_minutes_are_those_of_every_run(recipe, tmp_path):
    trials = load_trials(recipe, plan(tmp_path, "minutes = 20\n" + PLAN), tmp_path)
    assert {trial.recipe.train.minutes for trial in trials} == {20.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rows = 1", "rows"),
        ("[rows]\n", "rows = {}: Dictionary should have at least 1 item"),
        ("[row]\na = []", "row"),
        ("[rows]\na = ['model.depth=3']", "depth"),
        ("[rows]\n'a b' = []\n'a-b' = []", "'a-b' and 'a b' would share the folder"),
        ("[rows", "cannot be read"),
        ("[rows]\n'+' = []", "'\\+' has no letter or digit"),
        ("base = ['model.depth=3']\n[rows]\na = []", "depth"),
        ("[rows]\na = ['train.init=en-fr']", "model.d_model = 16, but train.init = 'en-fr' has"),
    ],
)
def test_a_faulty_plan_is_refused_before_anything_is_trained(recipe, tmp_path, text, message):
    with pytest.raises(UserError, match=message):
        load_trials(recipe, plan(tmp_path, text), tmp_path / "runs")


def test_a_missing_plan_is_named(recipe, tmp_path):
    with pytest.raises(UserError, match=r"plan\.toml does not exist"):
        load_trials(recipe, tmp_path / "plan.toml", tmp_path / "runs")


def test_the_script_prints_a_table(recipe, tmp_path, monkeypatch, capsys):
    outcomes = [Outcome(AS_IT_IS, 4_720_000, 900, 1.25, 40.0, 42.5, 60.0, None)]
    outcomes.append(Outcome("wider", 5_000_000, 800, 1.2, 41.25, 43.0, 61.0, 0.01))
    monkeypatch.setattr(ablation, "ablate", lambda trials: iter(outcomes))
    monkeypatch.setattr(sys, "argv", ["ablate", str(recipe), str(plan(tmp_path, PLAN)), "--output", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "| the recipe | 4.7 M | 900 | 1.250 | 40.0 | 42.5 | 60.0 |  |  |"
    assert lines[3] == "| wider | 5.0 M | 800 | 1.200 | 41.2 | 43.0 | 61.0 | +1.2 | 0.010 |"
