"""One run in several processes learns what one process learns, lets one of them write, and survives their deaths."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from small import shape, tiny_recipe, write_recipe, write_word_links
from trainings import rows, same_run, small_and_quiet, state_of

from seq2seq.config import Recipe, VariationConfig
from seq2seq.errors import UserError
from seq2seq.training.distributed import Group, joined
from seq2seq.training.loop import train

UPDATES = 20
pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without torch.distributed")
TRAIN = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from trainings import small_and_quiet
from seq2seq.cli import main
with small_and_quiet():
    status = main(["train", *sys.argv[1:]])
for name in Path("/proc/self/task").glob("*/comm"):
    if "gloo" in name.read_text():
        print("left over:", name.read_text().strip(), file=sys.stderr)
sys.exit(status)
"""


def varied_recipe(corpus: Path, **train: Any) -> Recipe:
    """Without dropout, which is drawn in each process by itself; with what the first one alone reads or draws.

    That is: epochs that differ, and links to align by.
    """
    values = {"updates": UPDATES, "links": str(write_word_links(corpus))}
    recipe = tiny_recipe(corpus, shape(encoder_layers=1, decoder_layers=1), **(values | train))
    return recipe.model_copy(update={"variation": VariationConfig(lower_case=0.5, sampled_pieces=0.5)})


@pytest.fixture(scope="module")
def folder(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where recipe and script of these runs lie."""
    folder = tmp_path_factory.mktemp("distributed")
    script = TRAIN.format(tests=str(Path(__file__).parent))
    (folder / "train.py").write_text(script, encoding="utf-8")
    write_recipe(folder / "tiny.toml", varied_recipe(corpus))
    return folder


def command(folder: Path, processes: int, output: Path, *options: str) -> list[str]:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    return [*launcher, str(folder / "train.py"), str(folder / "tiny.toml"), "--output", str(output), *options]


def run(folder: Path, processes: int, output: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    arguments = command(folder, processes, output, *options)
    return subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=240, env=environment)


def run_to_the_end(folder: Path, processes: int, output: Path, *options: str) -> str:
    """What such a run said on stderr."""
    done = run(folder, processes, output, *options)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def single(folder: Path, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run by one process."""
    output = tmp_path_factory.mktemp("runs") / "single"
    with small_and_quiet():
        train(varied_recipe(corpus), output)
    return output


@pytest.fixture(scope="module")
def double(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The same run by two processes."""
    output = tmp_path_factory.mktemp("runs") / "double"
    done = run(folder, 2, output)
    assert done.returncode == 0, done.stderr
    return output, done


def test_two_processes_lose_what_one_process_loses(single, double):
    found, expected = rows(double[0]), rows(single)
    assert [row["update"] for row in found] == [row["update"] for row in expected]
    for row, other in zip(found, expected, strict=True):
        assert row == pytest.approx(other, rel=2e-5)


def test_two_processes_end_with_the_weights_of_one(single, double):
    found, expected = state_of(double[0], UPDATES), state_of(single, UPDATES)
    for name, weight in expected["model"].items():
        if name.endswith("w_k.bias"):
            continue  # adds the same to all scores of a row, so its gradient is nothing but rounding
        torch.testing.assert_close(found["model"][name], weight, rtol=1e-3, atol=1e-4)
    assert found["progress"]["tokens"] == expected["progress"]["tokens"]


def test_only_one_process_speaks_and_writes(double):
    output, done = double
    assert done.stdout == f"{output}/model\n"
    assert done.stderr.count("2 processes of 1 thread(s)") == 1
    assert done.stderr.count("all 20 updates are done") == 1
    assert json.loads((output / "run.json").read_text(encoding="utf-8"))["sessions"][0]["processes"] == 2


def test_no_thread_of_the_group_is_left_when_a_process_ends(double):
    assert "left over" not in double[1].stderr  # Python's exit would race with it, now and then ending in SIGABRT


def test_each_process_has_random_numbers_of_its_own(double):
    one, other = state_of(double[0], UPDATES)["random"]
    assert not torch.equal(one["cpu"], other["cpu"])


@pytest.mark.slow
def test_a_run_goes_on_exactly_with_as_many_processes_and_also_with_more(folder, tmp_path):
    dropout = ["--set", "model.dropout=0.1"]
    run_to_the_end(folder, 2, tmp_path / "unbroken", *dropout)
    shutil.copytree(tmp_path / "unbroken", tmp_path / "resumed")
    assert "resumed from" in run_to_the_end(folder, 2, tmp_path / "resumed", *dropout, "--resume-from", "10")
    assert same_run(tmp_path / "resumed", tmp_path / "unbroken", UPDATES)
    assert "processes 2 -> 3" in run_to_the_end(folder, 3, tmp_path / "resumed", *dropout, "--resume-from", "10")
    assert len(state_of(tmp_path / "resumed", UPDATES)["random"]) == 3
    losses = [[row["loss"] for row in rows(tmp_path / name) if "loss" in row] for name in ("unbroken", "resumed")]
    assert losses[0] != losses[1]  # other dropout
    assert losses[0] == pytest.approx(losses[1], rel=0.1)


@pytest.mark.slow
def test_more_processes_than_sentences_in_a_batch_change_nothing(folder, corpus, tmp_path):
    small = ["--set", "train.batch_tokens=40", "--set", "train.updates=10"]
    run_to_the_end(folder, 4, tmp_path / "four", *small)
    with small_and_quiet():
        train(varied_recipe(corpus, updates=10, batch_tokens=40), tmp_path / "one")
    for row, other in zip(rows(tmp_path / "four"), rows(tmp_path / "one"), strict=True):
        assert row == pytest.approx(other, rel=2e-5)


def test_a_mistake_is_told_once(folder, double):
    done = run(folder, 2, double[0])
    assert done.returncode == 1
    assert done.stderr.count("holds a run already: add --resume to go on") == 1
    assert "Traceback" not in done.stderr.split("ChildFailedError")[0].split("torch/distributed/elastic")[0]


@contextmanager
def started(folder: Path, output: Path) -> Iterator[subprocess.Popen[str]]:
    """A run of two processes that has a checkpoint and would go on for long."""
    arguments = command(folder, 2, output, "--set", "train.updates=100000", "--set", "train.validate_every=10")
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as one:
        watchdog = threading.Timer(120, one.kill)
        watchdog.start()
        while not list(output.glob("checkpoints/*")) and one.poll() is None:
            time.sleep(0.05)
        yield one
        watchdog.cancel()


def workers(launcher: int) -> dict[int, int]:
    """Process ids of a launcher's workers by their rank."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
            variables = (path / "environ").read_bytes().split(b"\0")
        except (OSError, ValueError):
            continue
        ranks = [int(one[5:]) for one in variables if one.startswith(b"RANK=")]
        if parent == launcher and ranks:
            found[ranks[0]] = int(path.name)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
@pytest.mark.parametrize("victim", [0, 1])
def test_a_dead_process_ends_the_run_with_a_clear_message_and_one_process_goes_on(folder, tmp_path, victim):
    with started(folder, tmp_path / "run") as launcher:
        os.kill(workers(launcher.pid)[victim], signal.SIGKILL)
        _, said = launcher.communicate()
    assert launcher.returncode == 1
    message = f"another of the 2 processes has died or cannot be reached, so process {1 - victim} ends, too"
    assert message in said, said
    with small_and_quiet() as patch:
        patch.chdir(folder)
        from seq2seq.config import load_recipe

        changes = ["train.updates=100000", "train.validate_every=10"]
        patch.setattr("seq2seq.training.loop.train_step", stop)
        with pytest.raises(StopError):
            train(load_recipe(folder / "tiny.toml", changes), tmp_path / "run", resume=True)


class StopError(Exception):
    """The run has gone on as far as the test needs."""


def stop(run: object, chunk: Sequence[object], lr: float) -> None:
    raise StopError


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
def test_a_run_of_two_processes_that_is_asked_to_stop_leaves_a_checkpoint(folder, tmp_path):
    with started(folder, tmp_path / "run") as launcher:
        launcher.send_signal(signal.SIGTERM)
        _, said = launcher.communicate()
    stopped = int(said.split("stopped after update ")[1].split()[0].replace(",", ""))
    assert state_of(tmp_path / "run", stopped)["progress"]["update"] == stopped


# The group of one, and what needs no second process.


def test_a_process_by_itself_is_a_group_of_one():
    with joined(cuda=False) as group:
        assert group == Group(0, 1)
        assert group.first
        assert group.total(1.5, True) == [1.5, True]
        assert group.share(lambda: "value") == "value"
        assert group.collect("value") == ["value"]
        module = torch.nn.Linear(1, 1)
        assert group.parallel(module) is module


def test_an_error_of_a_user_in_a_group_of_one_is_raised_as_it_is():
    def fail() -> None:
        raise UserError("the reason")

    with pytest.raises(UserError, match="the reason"):
        Group().share(fail)


def test_an_error_that_is_not_about_processes_is_not_taken_for_the_death_of_one():
    with pytest.raises(RuntimeError, match="shapes do not match"), joined(cuda=False):
        raise RuntimeError("shapes do not match")
