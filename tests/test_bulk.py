"""Bulk translation without Ray: what is refused, the shards, the record, one worker, the output."""

import gzip
import json
import pickle
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from small import PAIRS, loaded_model

from seq2seq.bulk.inputs import check_inputs, read_rows
from seq2seq.bulk.job import Job, check_record, fingerprint, only_driver
from seq2seq.bulk.shards import Totals, clear, cut, is_cut, missing, publish, read_table, shard_names
from seq2seq.bulk.worker import MOST_TRIES, Worker
from seq2seq.checkpoint import save_model
from seq2seq.cli import main as seq2seq
from seq2seq.config import DecodeConfig
from seq2seq.errors import UserError
from seq2seq.folder import WEIGHTS

LINES = [pair.source for pair in PAIRS]
ODD = ["", "The cat sees\u2028the apple. A dog finds the bread.", "   ", "42", "MY BROTHER WANTS THE BREAD.", "\r", ""]
FIRST = "part-00000000.parquet"


def save_small_model(folder: Path) -> Path:
    """A tiny model with random weights, whose translations are often cut at the length limit."""
    loaded = loaded_model(decode=DecodeConfig(max_length_ratio=1.0))
    save_model(folder, loaded.model.state_dict(), loaded.tokenizer, loaded.info)
    return folder


def write(path: Path, lines: list[str]) -> Path:
    data = "".join(line + "\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def parquet(path: Path, rows: int) -> Path:
    """Rows with a text, which is sometimes missing, and two other columns; many small row groups."""
    texts = [None if i % 17 == 5 else LINES[7 * i % 60] for i in range(rows)]
    kinds = pa.schema([("page", pa.int64()), ("text", pa.string()), ("from", pa.list_(pa.int64()))])
    columns = {"page": [i // 3 for i in range(rows)], "text": texts, "from": [[i, -i] for i in range(rows)]}
    table = pa.table(columns, schema=kinds)
    pq.write_table(table, path, row_group_size=13)
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_small_model(tmp_path_factory.mktemp("model") / "tiny")


def job(model: Path, inputs: list[Path], output: Path, **changes: Any) -> Job:
    values = {"beam_size": 2, "length_penalty": None, "column": "text", "shard_lines": 16, "device": "cpu"}
    return Job(tuple(inputs), output, str(model), fingerprint(model), **values | changes)


def begun(asked: Job) -> Job:
    """The job, with its shards cut."""
    asked.work.mkdir()
    cut(asked)
    return asked


def worker(asked: Job) -> Worker:
    return Worker(asked, threads=torch.get_num_threads(), chunk=8)


def translate(asked: Job) -> Totals:
    """A whole job, by one worker."""
    with only_driver(asked):
        cut(asked)
        clear(asked)
        at_work = worker(asked)
        for name in missing(asked):
            assert at_work({"shard": [name]})["error"] == [""]
        assert missing(asked) == []
        return publish(asked)


# The whole way


def test_lines_are_those_of_the_command_line(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = [write(tmp_path / "a.en", LINES[:20] + ODD), write(tmp_path / "empty", []), write(tmp_path / "b.gz", ODD)]
    assert translate(job(model, inputs, tmp_path / "out.fr")).rows == 20 + 2 * len(ODD)
    expected = b""
    for path in inputs:
        assert seq2seq(["translate", "--model", str(model), "--beam-size", "2", "--input", str(path)]) == 0
        expected += capsys.readouterr().out.encode()
    assert (tmp_path / "out.fr").read_bytes() == expected
    assert {path.name for path in tmp_path.iterdir()} == {"a.en", "empty", "b.gz", "out.fr", "out.fr.job.json"}


def test_parquet_keeps_ids_order_and_columns(model: Path, tmp_path: Path) -> None:
    inputs = [parquet(tmp_path / "a.parquet", 30), parquet(tmp_path / "b.parquet", 10)]
    totals = translate(job(model, inputs, tmp_path / "out"))
    table, source = pq.read_table(tmp_path / "out"), pa.concat_tables([pq.read_table(path) for path in inputs])
    assert table.column_names == ["id", "page", "text", "from", "translation", "truncated"]
    assert table["id"].type == pa.int64()
    assert table["id"].to_pylist() == list(range(40))
    assert table.select(source.column_names).equals(source)
    absent = [text is None for text in source["text"].to_pylist()]
    assert any(absent)
    assert [text is None for text in table["translation"].to_pylist()] == absent
    assert totals == Totals(40, sum(table["truncated"].to_pylist()))
    assert totals.truncated > 0


# Inputs


@pytest.mark.parametrize(
    ("names", "column", "says"),
    [
        (["none.en"], "text", "^none.en does not exist$"),
        (["."], "text", "^. is not a file$"),
        (["a.en", "a.parquet"], "text", "^a.en and a.parquet: give text files or Parquet files, not both$"),
        (["false.parquet"], "text", "^false.parquet cannot be read as Parquet: .*$"),
        (["a.parquet"], "txt", "^a.parquet has no column 'txt': choose --column from page, text, from$"),
        (["a.parquet"], "page", "^a.parquet: column 'page' holds int64, not text: choose another --column$"),
        (["a.parquet", "ids.parquet"], "text", "^ids.parquet has a column 'id', which the output needs: rename it$"),
        (["a.parquet", "b.parquet"], "text", "^b.parquet has other columns or types than a.parquet: run one job for"),
    ],
)
def test_inputs_that_are_refused(
    names: list[str], column: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.en", LINES)
    write(tmp_path / "false.parquet", LINES)
    parquet(tmp_path / "a.parquet", 3)
    pq.write_table(pa.table({"text": ["A cat."]}), tmp_path / "b.parquet")
    pq.write_table(pa.table({"id": [1], "text": ["A cat."]}), tmp_path / "ids.parquet")
    with pytest.raises(UserError, match=says) as caught:
        check_inputs([Path(name) for name in names], column)
    assert "\n" not in str(caught.value)


def test_inputs_that_are_taken(tmp_path: Path) -> None:
    check_inputs([write(tmp_path / "a", LINES), write(tmp_path / "b.gz", LINES)], "text")
    check_inputs([parquet(tmp_path / "a.parquet", 3), parquet(tmp_path / "b.parquet", 0)], "text")
    words = pa.array(["A cat.", "A dog."]).dictionary_encode()
    pq.write_table(pa.table({"body": words}), tmp_path / "words.parquet")
    check_inputs([tmp_path / "words.parquet"], "body")


def test_rows_come_in_tables_of_the_size_asked_for(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", 40)
    tables = list(read_rows(path, "text", 16))
    assert [len(table) for table in tables] == [16, 16, 8]
    assert pa.concat_tables(tables).equals(pq.read_table(path))
    [empty] = read_rows(parquet(tmp_path / "empty.parquet", 0), "text", 16)
    assert (len(empty), empty.column_names) == (0, ["page", "text", "from"])


def test_damage_found_while_cutting_leaves_nothing(model: Path, tmp_path: Path) -> None:
    latin, short, damaged = tmp_path / "latin1.en", tmp_path / "cut.gz", parquet(tmp_path / "a.parquet", 500)
    latin.write_bytes("A cat.\nUn caf\xe9.\n".encode("latin-1"))
    short.write_bytes(gzip.compress(b"A dog sees the apple.\n" * 500)[:-20])
    data = damaged.read_bytes()
    damaged.write_bytes(data[:50] + b"\xff" * 400 + data[450:])
    before = contents(tmp_path)
    for path, says in (
        (latin, "latin1.en, line 2: not UTF-8"),
        (short, "cut.gz cannot be read"),
        (damaged, "a.parquet is damaged"),
    ):
        asked = job(model, [path], tmp_path / "out.fr")
        with pytest.raises(UserError, match=says), only_driver(asked):
            cut(asked)
        assert contents(tmp_path) == before


# Shards and parts


def test_shards_number_all_rows_and_span_no_two_inputs(model: Path, tmp_path: Path) -> None:
    inputs = [write(tmp_path / "a", LINES[:20]), write(tmp_path / "empty", []), write(tmp_path / "b.gz", LINES[20:37])]
    asked = begun(job(model, inputs, tmp_path / "out.parquet"))
    tables = [read_table(asked.source / name) for name in shard_names(asked)]
    assert [len(table) for table in tables] == [16, 4, 0, 16, 1]
    assert pa.concat_tables(tables).to_pydict() == {"id": list(range(37)), "text": LINES[:37]}


def test_what_pandas_says_of_the_columns_is_left_behind(model: Path, tmp_path: Path) -> None:
    described = pa.table({"text": LINES[:3]}).replace_schema_metadata({"pandas": "{}"})
    pq.write_table(described, tmp_path / "a.parquet")
    asked = begun(job(model, [tmp_path / "a.parquet"], tmp_path / "out"))
    assert not read_table(asked.source / FIRST).schema.metadata


def test_parts_of_a_job_whose_record_was_removed_are_not_used(model: Path, tmp_path: Path) -> None:
    asked = job(model, [write(tmp_path / "a", LINES)], tmp_path / "out.fr")
    asked.parts.mkdir(parents=True)
    write(asked.parts / FIRST, ["of a job with another beam size"])
    cut(asked)
    assert not asked.parts.exists()


def test_what_was_done_stays_and_what_was_half_done_goes(model: Path, tmp_path: Path) -> None:
    asked = begun(job(model, [write(tmp_path / "a", LINES)], tmp_path / "out.fr"))
    assert len(shard_names(asked)) == 4
    asked.parts.mkdir()
    write(asked.parts / FIRST, ["done"])
    write(asked.parts / ".part-00000001.parquet.0123abcd.new", ["half"])
    write(asked.work / "part-00000001.parquet.tries", ["."])
    clear(asked)
    assert contents(asked.parts) == {FIRST: b"done\n"}
    assert not list(asked.work.glob("*.tries"))
    assert missing(asked) == shard_names(asked)  # what "done" stands for is no Parquet file, so it is done again
    assert contents(asked.parts) == {}
    shutil.copyfile(asked.source / FIRST, asked.parts / FIRST)
    assert missing(asked) == shard_names(asked)[1:]


def test_a_part_that_lost_its_end_is_done_again(model: Path, tmp_path: Path) -> None:
    asked = begun(job(model, [write(tmp_path / "a", LINES)], tmp_path / "out.fr"))
    shutil.copytree(asked.source, asked.parts)
    assert missing(asked) == []
    part = asked.parts / FIRST
    part.write_bytes(part.read_bytes()[:-20])
    assert missing(asked) == [FIRST]


# The record and the lock


def test_the_record_is_written_when_all_shards_are_there(model: Path, tmp_path: Path) -> None:
    asked = job(model, [write(tmp_path / "a", LINES)], tmp_path / "out.fr")
    check_record(asked, resume=False)
    with pytest.raises(UserError, match="no job was begun here"):
        check_record(asked, resume=True)
    assert not is_cut(asked)
    begun(asked)
    assert is_cut(asked)
    check_record(asked, resume=True)
    assert json.loads(asked.record.read_text()) == asked.described()


def test_the_record_refuses_another_job(model: Path, tmp_path: Path) -> None:
    inputs = [write(tmp_path / "a", LINES), write(tmp_path / "b", LINES)]
    asked = begun(job(model, inputs, tmp_path / "out.fr"))
    for change, says in (
        ({"beam_size": 3}, "--beam-size was 2, now 3"),
        ({"length_penalty": 0.5}, "--length-penalty was None, now 0.5"),
        ({"column": "body"}, "--column was text, now body"),
        ({"shard_lines": 8}, "--shard-lines was 16, now 8"),
        ({"device": "cuda"}, "device was cpu, now cuda"),
        ({"fingerprint": "00"}, r"model \(SHA-256\) was [0-9a-f]{64}, now 00"),
        ({"inputs": (inputs[0],)}, "input 2 was .*/b, .* now not given"),
        ({"inputs": (*inputs, inputs[0])}, "input 3 was not given, now .*/a, "),
    ):
        with pytest.raises(UserError, match=f"is of another job: {says}.*; give another --output"):
            check_record(replace(asked, **change), resume=False)
    write(inputs[0], LINES[1:])
    with pytest.raises(UserError, match="input 1 was "):
        check_record(asked, resume=False)


def test_a_file_that_another_program_wrote_is_not_replaced(model: Path, tmp_path: Path) -> None:
    asked = job(model, [write(tmp_path / "a", LINES)], write(tmp_path / "out.fr", ["mine"]))
    with pytest.raises(UserError, match=r"out.fr exists, and this job did not write it"):
        check_record(asked, resume=False)


def test_two_drivers_do_not_work_on_one_output(model: Path, tmp_path: Path) -> None:
    asked = job(model, [write(tmp_path / "a", LINES)], tmp_path / "out.fr")
    with only_driver(asked):
        cut(asked)
        with pytest.raises(UserError, match="another run works on this output"), only_driver(asked):
            pass
    assert is_cut(asked)  # the work folder stays for the next run


# The worker


def test_a_worker_answers_with_what_went_wrong(model: Path, tmp_path: Path) -> None:
    asked = begun(job(model, [write(tmp_path / "a", LINES[:2])], tmp_path / "out.fr"))
    clear(asked)
    at_work, name = worker(asked), {"shard": [FIRST]}
    (asked.work / f"{FIRST}.tries").write_bytes(b"." * MOST_TRIES)
    assert "died 5 times" in at_work(name)["error"][0]
    (asked.work / f"{FIRST}.tries").unlink()
    assert "No such file" in at_work({"shard": ["part-00000001.parquet"]})["error"][0]
    assert at_work(name) == {"sentences": [2], "error": [""]}
    assert at_work(name) == {"sentences": [0], "error": [""]}  # done already


def test_a_worker_refuses_a_model_that_has_changed(tmp_path: Path) -> None:
    folder = save_small_model(tmp_path / "model")
    asked = begun(job(folder, [write(tmp_path / "a", LINES[:2])], tmp_path / "out.fr"))
    clear(asked)
    (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:-1] + b"?")
    [error] = worker(asked)({"shard": [FIRST]})["error"]
    assert "is not the model that the job was begun with" in error


def test_a_worker_travels_to_another_process_by_its_name(model: Path, tmp_path: Path) -> None:
    asked = job(model, [write(tmp_path / "a", LINES[:2])], tmp_path / "out.fr")
    assert len(pickle.dumps(Worker)) < 100
    assert pickle.loads(pickle.dumps(asked)) == asked
