"""A run goes on exactly where it stopped, as itself, and refuses to go on as another."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small import tiny_recipe
from trainings import UPDATES, power_cut_before, rows, same, same_run, small_and_quiet, state_of, watch

from seq2seq.checkpoint import load_model
from seq2seq.config import Recipe, VariationConfig
from seq2seq.errors import UserError
from seq2seq.training import run as run_module
from seq2seq.training import validation
from seq2seq.training.checkpoints import checkpoints
from seq2seq.training.loop import train

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.fixture(scope="module")
def resumed(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that died before update 28, eight after its last checkpoint, and went on."""
    folder = tmp_path_factory.mktemp("runs") / "resumed"
    with small_and_quiet():
        with power_cut_before(28):
            train(recipe, folder)
        torch.manual_seed(999)  # the random state of another process
        train(recipe, folder, resume=True)
    return folder


# It goes on exactly.


def test_the_checkpoint_that_was_resumed_from_lay_inside_an_epoch(unbroken, recipe):
    progress = state_of(unbroken, 20)["progress"]
    assert progress["epoch"] >= 1
    assert progress["batch"] >= 1


def test_a_resumed_run_writes_the_same_metrics_as_an_unbroken_one(unbroken, resumed):
    assert rows(resumed) == rows(unbroken)


@pytest.mark.parametrize("part", ["model", "optimiser", "average", "random"])
def test_a_resumed_run_ends_in_the_same_state_to_the_last_bit(unbroken, resumed, part):
    assert same(state_of(resumed)[part], state_of(unbroken)[part])


def test_a_resumed_run_counts_as_an_unbroken_one(unbroken, resumed):
    one, other = state_of(unbroken)["progress"], state_of(resumed)["progress"]
    clocks = {"seconds": 0, "since_log": 0}
    assert {**one, **clocks} == {**other, **clocks}
    assert one["since_log"][:2] == other["since_log"][:2]
    assert load_model(resumed / "model").info == load_model(unbroken / "model").info


VARIED = VariationConfig(lower_case=0.3, joined=0.3, sampled_pieces=0.5, unknown_pieces=0.1)


@pytest.mark.parametrize(
    ("optimiser", "variation"), [("adamw", VARIED), ("muon", VariationConfig())], ids=["varied epochs", "muon"]
)
def test_other_settings_resume_exactly_too(corpus, tmp_path, optimiser, variation):
    recipe = tiny_recipe(corpus, optimiser=optimiser).model_copy(update={"variation": variation})
    train(recipe, tmp_path / "unbroken")
    with power_cut_before(28):
        train(recipe, tmp_path / "resumed")
    train(recipe, tmp_path / "resumed", resume=True)
    assert same_run(tmp_path / "unbroken", tmp_path / "resumed")


def test_patience_and_best_score_are_those_of_an_unbroken_run(corpus, tmp_path, monkeypatch):
    losses = {3: 3.0, 6: 2.0, 9: 2.5, 12: 2.1, 15: 1.0}
    monkeypatch.setattr(validation, "dev_loss", lambda run: losses[run.state.progress.update])
    recipe = tiny_recipe(corpus, updates=100, validate_every=3, patience=2, keep=9)
    train(recipe, tmp_path / "unbroken")
    with power_cut_before(11):
        train(recipe, tmp_path / "resumed")
    train(recipe, tmp_path / "resumed", resume=True)
    assert state_of(tmp_path / "resumed", 12)["progress"]["best_update"] == 6
    assert same_run(tmp_path / "resumed", tmp_path / "unbroken", 12)


def test_a_run_that_died_before_its_first_checkpoint_starts_from_its_beginning(recipe, unbroken, tmp_path, capsys):
    with power_cut_before(4):
        train(recipe, tmp_path / "run")
    train(recipe, tmp_path / "run", resume=True)
    assert "holds no checkpoint yet: the run starts from its beginning" in capsys.readouterr().err
    assert same_run(tmp_path / "run", unbroken)


def test_a_run_goes_on_from_an_earlier_checkpoint_and_later_ones_are_set_aside(recipe, unbroken, tmp_path, capsys):
    folder = tmp_path / "run"
    shutil.copytree(unbroken, folder)
    train(recipe, folder, resume_from=20)
    assert f"a later checkpoint is set aside: {folder}/checkpoints/00000030.set-aside" in capsys.readouterr().err
    assert same_run(folder, unbroken)
    assert (folder / "checkpoints/00000030.set-aside/state.pt").is_file()


def test_a_damaged_checkpoint_is_refused_and_its_offer_works(recipe, unbroken, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(unbroken, folder)
    (folder / "checkpoints/00000030/state.pt").write_bytes(b"half")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(UserError, match=r"00000030 is damaged: .* add --resume-from 20 to go on") as caught:
        train(recipe, folder, resume=True)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    train(recipe, folder, resume_from=int(str(caught.value).split("--resume-from ")[1].split()[0]))
    assert same_run(folder, unbroken)


# It is asked to stop.


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, None), (signal.SIGTERM, 143)])
def test_a_run_that_is_asked_to_stop_finishes_its_update_and_goes_on_later(
    recipe, unbroken, tmp_path, capsys, number, status
):
    with pytest.MonkeyPatch.context() as patch:
        watch(patch, lambda update, lr: os.kill(os.getpid(), number) if update == 13 else None)
        with pytest.raises(SystemExit if status else KeyboardInterrupt) as caught:
            train(recipe, tmp_path / "run")
    assert getattr(caught.value, "code", None) == status
    assert "stopped after update 13 with a checkpoint: go on with --resume" in capsys.readouterr().err
    assert state_of(tmp_path / "run", 13)["progress"]["update"] == 13
    train(recipe, tmp_path / "run", resume=True)
    assert same_run(tmp_path / "run", unbroken)


def test_a_second_interrupt_ends_a_run_at_once(recipe, tmp_path):
    def twice(update, lr):
        if update == 13:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.MonkeyPatch.context() as patch:
        watch(patch, twice)
        with pytest.raises(KeyboardInterrupt):
            train(recipe, tmp_path / "run")
    assert [path.name for path in checkpoints(tmp_path / "run/checkpoints")] == ["00000010"]


def test_a_run_that_is_asked_to_stop_in_its_last_update_has_ended(recipe, unbroken, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        watch(patch, lambda update, lr: os.kill(os.getpid(), signal.SIGTERM) if update == UPDATES else None)
        train(recipe, tmp_path / "run")
    assert same_run(tmp_path / "run", unbroken)


def test_signals_are_handled_as_before_once_the_run_is_over(recipe, tmp_path):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(UserError):
        train(recipe, tmp_path / "nothing", resume=True)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_run_in_a_thread_needs_no_signals(recipe, unbroken, tmp_path):
    thread = threading.Thread(target=train, args=(recipe, tmp_path / "run"))
    thread.start()
    thread.join()
    assert same_run(tmp_path / "run", unbroken)


def test_another_seed_makes_another_run(recipe, unbroken, corpus, tmp_path):
    train(tiny_recipe(corpus, updates=10, seed=2), tmp_path / "run")
    losses = [[row["loss"] for row in rows(folder) if "loss" in row][:2] for folder in (unbroken, tmp_path / "run")]
    assert losses[0] != losses[1]


# What it refuses.


def test_a_folder_that_holds_a_run_is_not_trained_over(unbroken, recipe):
    before = (unbroken / "metrics.jsonl").read_bytes()
    with pytest.raises(UserError, match="unbroken holds a run already: add --resume to go on, or give another"):
        train(recipe, unbroken)
    assert (unbroken / "metrics.jsonl").read_bytes() == before


def test_a_folder_without_a_run_is_not_resumed(recipe, tmp_path):
    with pytest.raises(UserError, match="nothing does not exist: there is no run to resume"):
        train(recipe, tmp_path / "nothing", resume=True)
    assert not (tmp_path / "nothing").exists()
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UserError, match="holds no run to resume"):
        train(recipe, tmp_path, resume=True)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_run_that_died_while_its_corpus_was_read_starts_from_its_beginning(recipe, unbroken, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/.lock").touch()  # all that there is then
    train(recipe, tmp_path / "run", resume=True)
    assert same_run(tmp_path / "run", unbroken)


def removed(model):
    shutil.rmtree(model)


def halved(model):
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[: weights.stat().st_size // 2])


@pytest.mark.parametrize("harm", [removed, halved])
def test_a_best_model_that_was_lost_is_put_back_from_its_checkpoint(recipe, unbroken, tmp_path, harm, capsys):
    folder = tmp_path / "run"
    shutil.copytree(unbroken, folder)
    harm(folder / "model")
    train(recipe, folder, resume=True)
    assert f"put back from {folder}/checkpoints/00000030" in capsys.readouterr().err
    assert same_run(folder, unbroken)


def test_a_best_model_that_no_checkpoint_has_is_told_and_the_run_goes_on(corpus, tmp_path, monkeypatch, capsys):
    losses = {3: 1.0, 6: 2.0, 9: 3.0, 12: 4.0}
    monkeypatch.setattr(validation, "dev_loss", lambda run: losses[run.state.progress.update])
    recipe = tiny_recipe(corpus, updates=12, validate_every=3, keep=2)
    with power_cut_before(11):
        train(recipe, tmp_path / "run")
    shutil.rmtree(tmp_path / "run/model")
    train(recipe, tmp_path / "run", resume=True)
    assert "model is missing; no checkpoint has it, so there is none until" in capsys.readouterr().err


def test_a_full_disk_is_told_with_what_it_means_for_the_run(recipe, tmp_path, monkeypatch):
    def full(path, chunks):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(run_module, "write_text", lambda path, text: full(path, [text]))
    with pytest.raises(UserError, match=r"run cannot be written \(No space left on device\); mend that and go on with"):
        train(recipe, tmp_path / "run")


def test_a_folder_in_which_another_process_trains_is_refused(unbroken, recipe):
    code = "import sys, filelock; lock = filelock.FileLock(sys.argv[1]); lock.acquire(); print('held', flush=True)"
    command = [sys.executable, "-c", f"{code}; input()", str(unbroken / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(UserError, match="unbroken is in use: another process trains there"):
            train(recipe, unbroken, resume=True)
        other.stdin.close()


def test_a_run_that_never_began_leaves_no_folder(recipe, tmp_path):
    data = recipe.data.model_copy(update={"train": [str(tmp_path / "missing.tsv")]})
    with pytest.raises(UserError, match="does not exist"):
        train(recipe.model_copy(update={"data": data}), tmp_path / "runs/run")
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_left_half_written_is_cleared_away(recipe, unbroken, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(unbroken, folder)
    for left in (".model.0123abcd.new", "checkpoints/.00000040.0123abcd.new", "checkpoints/.00000010.0123abcd.old"):
        (folder / left).mkdir()
    (folder / "checkpoints/00000010").mkdir()  # else the .old one would be put back
    train(recipe, folder, resume_from=20)
    assert not [path for path in folder.rglob(".*") if path.name != ".lock"]


@pytest.mark.parametrize(
    ("section", "change", "message"),
    [
        ("train", {"learning_rate": 0.02}, "train.learning_rate = 0.02 is not the run's 0.01: a run resumes as itself"),
        ("train", {"updates": 40}, "train.updates = 40 is not the run's 30"),
        ("model", {"dropout": 0.2}, "model.dropout = 0.2 is not the run's 0.1"),
        ("tokenizer", {"kind": "bpe"}, "tokenizer.kind = 'bpe' is not the run's 'unigram'"),
        ("data", {"target": "de"}, "data.target = 'de' is not the run's 'fr'"),
    ],
)
def test_a_run_is_not_resumed_with_another_recipe(unbroken, recipe, section, change, message):
    changed = recipe.model_copy(update={section: getattr(recipe, section).model_copy(update=change)})
    with pytest.raises(UserError, match=message):
        train(changed, unbroken, resume=True)


def test_a_setting_that_a_recipe_of_an_older_release_lacks_has_its_default(unbroken, recipe, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(unbroken, folder)
    values = json.loads((folder / "recipe.json").read_text(encoding="utf-8"))
    del values["train"]["clip_norm"]
    (folder / "recipe.json").write_text(json.dumps(values), encoding="utf-8")
    assert train(recipe, folder, resume=True) == folder / "model"
    changed = recipe.train.model_copy(update={"clip_norm": 2.0})
    with pytest.raises(UserError, match=r"train\.clip_norm = 2\.0 is not the run's 1\.0"):
        train(recipe.model_copy(update={"train": changed}), folder, resume=True)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"train": {"seed": "one"}}'])
def test_a_run_whose_recipe_is_damaged_is_not_resumed(unbroken, recipe, tmp_path, content):
    folder = tmp_path / "run"
    shutil.copytree(unbroken, folder)
    (folder / "recipe.json").write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=r"recipe\.json is missing or damaged, so .* cannot be resumed: ") as caught:
        train(recipe, folder, resume=True)
    assert "\n" not in str(caught.value)


def test_a_run_is_not_resumed_on_other_data(unbroken, recipe, monkeypatch):
    load = run_module.load_corpus

    def load_less(config):
        found = load(config)
        return replace(found, split=found.split._replace(train=found.split.train[:-1]))

    monkeypatch.setattr(run_module, "load_corpus", load_less)
    with pytest.raises(UserError, match=r"the data of .* has changed since 00000030"):
        train(recipe, unbroken, resume=True)


def test_a_finished_run_says_that_nothing_is_left_to_do(unbroken, corpus, capsys):
    before = {path: path.read_bytes() for path in unbroken.rglob("*") if path.is_file() and path.name != "recipe.json"}
    free = tiny_recipe(corpus, updates=UPDATES, validate_every=7, validation_sentences=1, patience=3, keep=1)
    assert train(free, unbroken, resume=True) == unbroken / "model"
    assert "nothing left to do" in capsys.readouterr().err
    assert all(path.read_bytes() == content for path, content in before.items())
