"""Bulk translation on Ray: the same translations, in order, whatever is killed on the way."""

import gzip
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

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from small import PAIRS, loaded_model

from seq2seq.checkpoint import WEIGHTS, save_model
from seq2seq.cli import main as seq2seq
from seq2seq.config import DecodeConfig

SCRIPT = Path(__file__).parents[1] / "scripts/translate_on_ray.py"
MARK = "SEQ2SEQ_TEST_OF_RAY"  # in the environment of every process that a test starts, Ray's too
needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
LINES = [pair.source for pair in PAIRS]
ODD = ["", "The cat sees\u2028the apple. A dog finds the bread.", "   ", "42", "MY BROTHER WANTS THE BREAD.", "\r", ""]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="looks into /proc")
Captured = pytest.CaptureFixture[str]
Finished = subprocess.CompletedProcess[str]


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
    """A tiny model with random weights."""
    folder, loaded = tmp_path_factory.mktemp("model") / "tiny", loaded_model(decode=DecodeConfig(max_length_ratio=1.0))
    save_model(folder, loaded.model.state_dict(), loaded.tokenizer, loaded.info)
    return folder


def arguments(model: Path, inputs: list[Path], output: Path, *more: str, shard_lines: int = 16) -> list[str]:
    files = ["--input", *map(str, inputs), "--output", str(output)]
    return [*files, "--model", str(model), "--beam-size", "2", "--shard-lines", str(shard_lines), *more]


def job(model: Path, inputs: list[Path], output: Path, *more: str) -> Any:
    return script.read_job(script.build_parser().parse_args(arguments(model, inputs, output, *more)))


def worker(asked: Any) -> Any:
    asked.parts.mkdir()
    return script.Worker(asked, threads=torch.get_num_threads())


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


def write(path: Path, lines: list[str]) -> Path:
    data = "".join(line + "\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


# Text


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


def parquet(path: Path, rows: int) -> Path:
    """Rows with a text, which is sometimes missing, and two other columns; many small row groups."""
    texts = [None if i % 17 == 5 else LINES[7 * i % 60] for i in range(rows)]
    table = pa.table({"page": [i // 3 for i in range(rows)], "text": texts, "from": [[i, -i] for i in range(rows)]})
    pq.write_table(table, path, row_group_size=13)
    return path


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
    with script.only_driver(asked):
        script.cut(asked)
        at_work = worker(asked)
        for path in asked.source.iterdir():
            assert at_work({"shard": [path.name]})["error"] == [""]
        script.publish(asked)
    return Path(asked.output)


def test_parquet_keeps_ids_order_and_columns(undisturbed: Path, tables: list[Path]) -> None:
    table, source = pq.read_table(undisturbed), pa.concat_tables([pq.read_table(path) for path in tables])
    assert table.column_names == ["id", "page", "text", "from", "translation", "truncated"]
    assert table["id"].type == pa.int64()
    assert table["id"].to_pylist() == list(range(400))
    assert table.select(source.column_names).equals(source)
    missing = [text is None for text in source["text"].to_pylist()]
    assert [text is None for text in table["translation"].to_pylist()] == missing


@needs_ray
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


# Without Ray: cutting, a worker alone, what is refused


def test_shards_number_all_rows_and_span_no_two_inputs(model: Path, tmp_path: Path) -> None:
    inputs = [write(tmp_path / "a", LINES[:20]), write(tmp_path / "empty", []), write(tmp_path / "b.gz", LINES[20:37])]
    asked = job(model, inputs, tmp_path / "out.parquet")
    asked.work.mkdir()
    script.cut(asked)
    tables = [pq.read_table(path) for path in sorted(asked.source.iterdir())]
    assert [len(table) for table in tables] == [16, 4, 0, 16, 1]
    assert pa.concat_tables(tables).to_pydict() == {"id": list(range(37)), "text": LINES[:37]}


def test_parts_of_a_job_whose_record_was_removed_are_not_used(model: Path, tmp_path: Path) -> None:
    asked = job(model, [write(tmp_path / "a", LINES)], tmp_path / "out.fr")
    asked.parts.mkdir(parents=True)
    write(asked.parts / "part-00000000.parquet", ["of a job with another beam size"])
    script.cut(asked)
    assert not asked.parts.exists()


def test_a_worker_answers_with_what_went_wrong(model: Path, tmp_path: Path) -> None:
    asked = job(model, [write(tmp_path / "a", LINES[:2])], tmp_path / "out.fr")
    asked.work.mkdir()
    script.cut(asked)
    at_work, name = worker(asked), {"shard": ["part-00000000.parquet"]}
    (asked.work / "part-00000000.parquet.tries").write_bytes(b"." * script.MOST_TRIES)
    assert "died 5 times" in at_work(name)["error"][0]
    (asked.work / "part-00000000.parquet.tries").unlink()
    assert "No such file" in at_work({"shard": ["part-00000001.parquet"]})["error"][0]
    assert at_work(name) == {"sentences": [2], "error": [""]}
    assert at_work(name) == {"sentences": [0], "error": [""]}  # done already


def test_a_worker_refuses_a_model_that_has_changed(tmp_path: Path) -> None:
    loaded, folder = loaded_model(), tmp_path / "model"
    save_model(folder, loaded.model.state_dict(), loaded.tokenizer, loaded.info)
    asked = job(folder, [write(tmp_path / "a", LINES[:2])], tmp_path / "out.fr")
    asked.work.mkdir()
    script.cut(asked)
    (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:-1] + b"?")
    [error] = worker(asked)({"shard": ["part-00000000.parquet"]})["error"]
    assert "is not the model that the job was begun with" in error


@needs_ray
def test_two_drivers_do_not_work_on_one_output(model: Path, tmp_path: Path, capsys: Captured) -> None:
    inputs = [write(tmp_path / "a", LINES)]
    with script.only_driver(job(model, inputs, tmp_path / "out.fr")):
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
        (["--input", "."], ". is not a file"),
        (["--input", "a.en", "a.parquet"], "not both"),
        (["--input", "latin1.en"], "latin1.en, line 2: not UTF-8"),
        (["--input", "cut.gz"], "cut.gz cannot be read"),
        (["--input", "false.parquet"], "false.parquet cannot be read as Parquet"),
        (["--input", "a.parquet", "--column", "txt"], "no column 'txt': choose --column from page, text, from"),
        (["--input", "a.parquet", "--column", "page"], "column 'page' holds int64, not text"),
        (["--input", "a.parquet", "ids.parquet"], "ids.parquet has a column 'id', which the output needs"),
        (["--input", "a.parquet", "other.parquet"], "other.parquet has other columns or types than a.parquet"),
        (["--output", "a.en"], "a.en exists, and this job did not write it"),
        (["--output", "nowhere/out"], "does not exist"),
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
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"A dog sees the apple.\n" * 500)[:-20])
    write(tmp_path / "false.parquet", LINES)
    parquet(tmp_path / "a.parquet", 3)
    pq.write_table(pa.table({"id": [1], "text": ["A cat."]}), tmp_path / "ids.parquet")
    pq.write_table(pa.table({"text": ["A cat."]}), tmp_path / "other.parquet")
    before = contents(tmp_path)
    assert script.main([*arguments(model, [Path("a.en")], Path("out.fr")), *change]) == 1
    out, err = capsys.readouterr()
    said = err.removeprefix("translate_on_ray: cutting the input into shards\n")
    assert out == ""
    assert says in said
    assert said.startswith("translate_on_ray: ")
    assert said.count("\n") == 1
    assert contents(tmp_path) == before
