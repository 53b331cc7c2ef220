"""What a run writes down about itself."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from seq2seq import __version__
from seq2seq.errors import UserError
from seq2seq.training import record
from seq2seq.training.loop import train
from seq2seq.training.record import git_state, read_record, session, summary, write_record


def test_a_run_records_recipe_data_versions_seed_and_code(unbroken, recipe):
    found = read_record(unbroken)
    assert found["seed"] == recipe.train.seed
    assert len(found["data"]["fingerprint"]) == 64
    (only,) = found["sessions"]
    assert only["update"] == 0
    assert only["versions"]["seq2seq"] == __version__
    assert only["versions"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert set(record.PACKAGES) < set(only["versions"])
    assert only["processes"] == 1
    assert only["git"] == git_state()
    assert json.loads((unbroken / "recipe.json").read_text(encoding="utf-8"))["train"]["seed"] == 1


def test_a_run_keeps_the_report_on_its_data(unbroken):
    assert "pairs" in (unbroken / "data.txt").read_text(encoding="utf-8")
    assert isinstance(json.loads((unbroken / "data.json").read_text(encoding="utf-8")), dict)


def test_the_code_is_named_by_its_commit(tmp_path, monkeypatch):
    module = tmp_path / "package" / "record.py"
    module.parent.mkdir()
    module.write_text("", encoding="utf-8")
    monkeypatch.setattr(record, "__file__", str(module))

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    git("init", "-q")
    assert git_state() is None  # the file is not part of the project around it, as in an installed package
    git("add", ".")
    git("commit", "-q", "-m", "first")
    assert git_state() == {"commit": git("rev-parse", "HEAD"), "dirty": False, "changed": []}
    module.write_text("x = 1\n", encoding="utf-8")
    assert git_state() == {"commit": git("rev-parse", "HEAD"), "dirty": True, "changed": ["package/record.py"]}


def test_without_git_the_state_is_unknown(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert git_state() is None


def test_every_session_is_added_and_what_changed_is_told(tmp_path):
    first = session(0, processes=1) | {"threads": 2, "versions": {"torch": "2.6", "numpy": "2.0"}}
    second = session(20, processes=4) | {"threads": 1, "versions": {"torch": "2.7", "numpy": "2.0"}}
    assert write_record(tmp_path, 1, {"fingerprint": "f"}, first) == []
    assert write_record(tmp_path, 1, {"fingerprint": "f"}, first) == []
    changes = write_record(tmp_path, 1, {"fingerprint": "f"}, second)
    assert changes == ["torch 2.6 -> 2.7", "threads 2 -> 1", "processes 1 -> 4"]
    assert [one["update"] for one in read_record(tmp_path)["sessions"]] == [0, 0, 20]
    write_record(tmp_path, 1, {"fingerprint": "f", "splits": {"train": {"pairs": 9, "fingerprint": "g"}}}, second)
    assert summary(tmp_path) == {"seed": 1, "data": {"train pairs": 9}, **second}


@pytest.mark.usefixtures("quiet")
def test_a_resumed_run_says_that_its_surroundings_have_changed(recipe, unbroken, tmp_path, monkeypatch, capsys):
    shutil.copytree(unbroken, tmp_path / "run")
    monkeypatch.setattr(record, "machine", lambda: "another machine")
    train(recipe, tmp_path / "run", resume_from=20)
    said = capsys.readouterr().err
    assert "-> another machine; losses may differ in their last digits" in said
    assert len(read_record(tmp_path / "run")["sessions"]) == 2


@pytest.mark.parametrize("content", ["{", "[]", '{"sessions": 3}', "{}"])
def test_a_damaged_record_is_named(tmp_path, content):
    (tmp_path / "run.json").write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=r"run\.json is damaged"):
        read_record(tmp_path)


def test_a_folder_without_a_record_has_an_empty_one(tmp_path: Path):
    assert read_record(tmp_path) == {}
    assert summary(tmp_path) == {"seed": None, "data": {}}
