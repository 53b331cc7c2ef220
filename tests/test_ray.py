"""Bulk translation on Ray: the same translations, in order, whatever is killed on the way."""

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch
from test_bulk import LINES, ODD, contents, parquet, save_small_model, write

from seq2seq.bulk.job import Job, only_driver
from seq2seq.bulk.shards import clear, cut, missing, publish
from seq2seq.bulk.worker import Worker
from seq2seq.cli import main as seq2seq

SCRIPT = Path(__file__).parents[1] / "scripts/translate_on_ray.py"
MARK = "SEQ2SEQ_TEST_OF_RAY"  # in the environment of every process that a test starts, Ray's too
needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="looks into /proc")
Captured = pytest.CaptureFixture[str]


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("translate_on_ray", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["translate_on_ray"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


script = load_script()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_small_model(tmp_path_factory.mktemp("model") / "tiny")


def arguments(model: Path, inputs: list[Path], output: Path, *more: str, shard_lines: int = 16) -> list[str]:
    files = ["--input", *map(str, inputs), "--output", str(output)]
    return [*files, "--model", str(model), "--beam-size", "2", "--shard-lines", str(shard_lines), *more]


def job(model: Path, inputs: list[Path], output: Path) -> Job:
    asked: Job = script.read_job(script.build_parser().parse_args(arguments(model, inputs, output)))
    return asked


def start(command: list[str], mark: Path) -> subprocess.Popen[str]:
    """The script in a process group of its own, which Ctrl-C and kill -9 are meant for."""
    environment = os.environ | {MARK: str(mark)}
    whole = [sys.executable, str(SCRIPT), *command]
    return subprocess.Popen(whole, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True)


def run(command: list[str], mark: Path) -> str:
    """Run the script to its end; returns what it said."""
    process = start(command, mark)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    return said


# Text


@pytest.mark.slow
@needs_ray
def test_text_is_translated_as_the_command_line_does_it(model: Path, tmp_path: Path, capsys: Captured) -> None:
    inputs = [write(tmp_path / "a.en", LINES[:30] + ODD), write(tmp_path / "empty.en", [])]
    inputs.append(write(tmp_path / "b.en.gz", [*ODD, *LINES[30:]]))
    output = tmp_path / "out.fr"
    said = run(arguments(model, inputs, output, "--workers", "2"), tmp_path)

    expected = b""
    for path in inputs:
        assert seq2seq(["translate", "--model", str(model), "--beam-size", "2", "--input", str(path)]) == 0
        expected += capsys.readouterr().out.encode()
    assert output.read_bytes() == expected
    assert expected.count(b"\n") == 60 + 2 * len(ODD)
    assert "a second, workers: 2\n" in said
    assert f"{output} is complete: 74 lines, " in said
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.en",
        "b.en.gz",
        "empty.en",
        "out.fr",
        "out.fr.job.json",
    ]

    again = arguments(model, inputs, output)  # another number of workers is no other job
    assert script.main(again) == 0
    assert "is complete already" in capsys.readouterr().err
    for change, says in (
        (["--beam-size", "3"], "--beam-size was 2, now 3"),
        (["--shard-lines", "8"], "--shard-lines was 16, now 8"),
        (["--length-penalty", "0.5"], "--length-penalty was None, now 0.5"),
        (["--model", "en-fr"], "model (SHA-256) was "),
        (["--input", str(inputs[0])], "input 2 was "),
    ):
        assert script.main([*again, *change]) == 1
        assert says in capsys.readouterr().err
    write(inputs[0], LINES)
    assert script.main(again) == 1
    assert "input 1 was " in capsys.readouterr().err
    assert output.read_bytes() == expected


# Parquet

SHARDS = 16 + 10  # of 250 and 150 rows


def parts(folder: Path) -> dict[str, int]:
    """Parts that are there, with the moment of their last change."""
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("part-*.parquet")}


def processes(mark: Path, name: str = "") -> list[int]:
    """Processes that this test started, Ray's too, whose command line holds a name."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            ours = f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0")
            if ours and name.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:  # it has ended
            pass
    return found


def wait_for(condition: Callable[[], Any], process: subprocess.Popen[str] | None = None) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        assert process is None or process.poll() is None, process.communicate()[1]
        time.sleep(0.02)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("tables")
    return [parquet(folder / "a.parquet", 250), parquet(folder / "b.parquet", 150)]


@pytest.fixture(scope="module")
def undisturbed(model: Path, tables: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one worker writes that nobody interrupts, without Ray."""
    asked = job(model, tables, tmp_path_factory.mktemp("undisturbed") / "out")
    threads = torch.get_num_threads()
    with only_driver(asked):
        cut(asked)
        clear(asked)
        at_work = Worker(asked, threads=1, chunk=script.CHUNK)
        for name in missing(asked):
            assert at_work({"shard": [name]})["error"] == [""]
        publish(asked)
    torch.set_num_threads(threads)
    return asked.output


@needs_ray
@pytest.mark.slow
def test_killed_driver_and_killed_worker_change_nothing(
    model: Path, tables: list[Path], undisturbed: Path, tmp_path: Path
) -> None:
    command, done = arguments(model, tables, tmp_path / "out", "--workers", "2"), tmp_path / "out.work/parts"
    process = start(command, tmp_path)
    wait_for(lambda: parts(done), process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    wait_for(lambda: not processes(tmp_path))
    before = parts(done)
    assert 0 < len(before) < SHARDS
    assert not (tmp_path / "out").exists()

    process = start([*command, "--resume"], tmp_path)
    wait_for(lambda: len(parts(done)) > len(before), process)
    os.kill(processes(tmp_path, "ray::MapWorker")[0], signal.SIGKILL)
    assert len(parts(done)) < SHARDS
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert f"{len(before)} of {SHARDS} shards are done already" in said
    assert {name: moment for name, moment in parts(tmp_path / "out").items() if name in before} == before
    assert contents(tmp_path / "out") == contents(undisturbed)
    cut = sum(pq.read_table(undisturbed)["truncated"].to_pylist())
    assert f"out is complete: 400 lines, {cut} of them cut at the length limit" in said


@needs_ray
@pytest.mark.slow
def test_ctrl_c_ends_with_one_line_that_says_how_to_go_on(
    model: Path, tables: list[Path], undisturbed: Path, tmp_path: Path
) -> None:
    command, done = arguments(model, tables, tmp_path / "out", "--workers", "2"), tmp_path / "out.work/parts"
    process = start(command, tmp_path)
    wait_for(lambda: parts(done), process)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.endswith("interrupted; the same command goes on with the shards that are missing\n")
    assert "Traceback" not in said
    assert 0 < len(parts(done)) < SHARDS
    run(command, tmp_path)
    assert contents(tmp_path / "out") == contents(undisturbed)


# What is refused


@needs_ray
def test_two_drivers_do_not_work_on_one_output(model: Path, tmp_path: Path, capsys: Captured) -> None:
    inputs = [write(tmp_path / "a", LINES)]
    with only_driver(job(model, inputs, tmp_path / "out.fr")):
        assert script.main(arguments(model, inputs, tmp_path / "out.fr")) == 1
    assert "another run works on this output" in capsys.readouterr().err


def test_without_ray_one_line_says_how_to_install_it(
    model: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert script.main(arguments(model, [write(tmp_path / "a", LINES)], tmp_path / "out.fr")) == 1
    assert capsys.readouterr().err == 'translate_on_ray: Ray is not installed: pip install ".[ray]"\n'


@needs_ray
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (["--input", "none.en"], "none.en does not exist"),
        (["--input", "latin1.en"], "latin1.en, line 2: not UTF-8"),
        (["--input", "a.parquet", "--column", "txt"], "no column 'txt': choose --column from page, text, from"),
        (["--output", "a.en"], "a.en exists, and this job did not write it"),
        (["--output", "nowhere/out"], "does not exist"),
        (["--output", "a.en/out"], "does not exist"),
        (["--output", ""], "--output '' is empty: name where to write"),
        (["--model", "en-xx"], "'en-xx' is neither"),
        (["--beam-size", "0"], "beam_size 0"),
        (["--length-penalty", "-1"], "length_penalty -1.0"),
        (["--workers", "0"], "--workers 0 is not 1 or more"),
        (["--cpus-per-worker", "-1"], "--cpus-per-worker -1 is not 1 or more"),
        (["--gpus-per-worker", "-1"], "--gpus-per-worker -1.0 is not 0 or more"),
        (["--shard-lines", "0"], "--shard-lines 0 is not 1 or more"),
        (["--address", "127.0.0.1:1"], "--address 127.0.0.1:1: no Ray cluster answers"),
        (["--resume"], "no job was begun here"),
    ],
)
def test_a_users_mistake_is_one_line_and_leaves_nothing(
    change: list[str], says: str, model: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.en", LINES)
    (tmp_path / "latin1.en").write_bytes("A cat.\nUn caf\xe9.\n".encode("latin-1"))
    parquet(tmp_path / "a.parquet", 3)
    before = contents(tmp_path)
    assert script.main([*arguments(model, [Path("a.en")], Path("out.fr")), *change]) == 1
    out, err = capsys.readouterr()
    said = err.removeprefix("translate_on_ray: cutting the input into shards\n")
    assert out == ""
    assert says in said
    assert said.startswith("translate_on_ray: ")
    assert said.count("\n") == 1
    assert contents(tmp_path) == before
