"""What matters is on disk whole or not at all, whenever its writer dies."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from seq2seq import storage
from seq2seq.storage import discard, obstacle, replacing, sweep, write_file, write_text

EITHER = pytest.mark.parametrize("native", [True, False], ids=["exchange", "two renames"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one file, alone in its parent."""
    folder = tmp_path / "runs" / "model"
    folder.mkdir(parents=True)
    (folder / "old").write_text("text", encoding="utf-8")
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def replace(folder: Path) -> None:
    with replacing(folder) as temporary:
        (temporary / "new").write_text("text", encoding="utf-8")


@EITHER
def test_a_folder_is_replaced_as_a_whole(folder, monkeypatch, native):
    if not native:
        monkeypatch.setattr(storage, "_swap", lambda one, other: False)
    replace(folder)
    assert names(folder) == ["new"]
    assert names(folder.parent) == ["model"]


def test_the_old_folder_is_in_place_while_the_new_one_is_written(folder):
    with replacing(folder) as temporary:
        assert names(folder) == ["old"]
        assert temporary.parent == folder.parent  # the same file system, so that the last step is one step
    assert names(folder) == []


def test_a_failure_while_a_folder_is_written_for_the_first_time_leaves_nothing(tmp_path):
    def interrupted() -> None:
        with replacing(tmp_path / "runs" / "model") as temporary:
            (temporary / "half").write_text("written", encoding="utf-8")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert names(tmp_path / "runs") == []


def test_a_failure_in_the_last_rename_puts_the_old_folder_back(folder, monkeypatch):
    rename = Path.rename

    def stubborn(path, target):
        if path.name.endswith(".new"):
            raise OSError("Device or resource busy")
        return rename(path, target)

    monkeypatch.setattr(storage, "_swap", lambda one, other: False)
    monkeypatch.setattr(Path, "rename", stubborn)
    with pytest.raises(OSError, match="resource busy"):
        replace(folder)
    assert names(folder) == ["old"]
    assert names(folder.parent) == ["model"]


@pytest.mark.skipif(sys.platform != "linux", reason="renameat2 is Linux's")
def test_two_names_are_exchanged_in_one_step(folder):
    other = folder.with_name("other")
    other.mkdir()
    assert storage._swap(folder, other)
    assert names(folder) == []
    assert names(other) == ["old"]
    assert not storage._swap(folder, folder.with_name("missing"))


KILLED = """
import os, signal
from pathlib import Path
from seq2seq import storage

def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

storage.{function} = die
storage._swap = {swap}
with storage.replacing(Path({folder!r})) as temporary:
    (temporary / "new").write_text("text", encoding="utf-8")
"""


@pytest.mark.parametrize(
    ("function", "left"),
    [("_flush", ["old"]), ("_exchange", ["old"]), ("shutil.rmtree", ["new"])],
)
@EITHER
def test_a_killed_writer_leaves_the_old_or_the_new_folder_and_what_can_be_swept(folder, function, left, native):
    code = KILLED.format(
        function=function, swap="storage._swap" if native else "lambda *names: False", folder=str(folder)
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    assert len(names(folder.parent)) == 2
    sweep(folder.parent)
    assert names(folder.parent) == ["model"]
    assert names(folder) == left


def test_a_folder_lost_between_two_renames_comes_back(folder):
    folder.rename(folder.with_name(".model.0123abcd.old"))
    sweep(folder.parent)
    assert names(folder.parent) == ["model"]
    assert names(folder) == ["old"]


def test_sweeping_takes_nothing_but_leftovers(folder):
    for name in (".hidden", ".gitignore", "model.new", ".model.0123abcd.part", ".x.0123abcd.new.txt"):
        (folder / name).write_text("mine", encoding="utf-8")
    before = names(folder)
    (folder / ".recipe.json.0123abcd.new").write_text("half", encoding="utf-8")
    sweep(folder)
    assert names(folder) == before
    sweep(folder / "nowhere")


def test_a_discarded_folder_is_gone(folder):
    discard(folder)
    assert names(folder.parent) == []


def test_a_file_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "file"
    write_text(path, "one\ntwö\n")
    assert path.read_bytes() == "one\ntwö\n".encode()

    def failing():
        yield b"half"
        assert path.read_bytes() == "one\ntwö\n".encode()
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_file(path, failing())
    assert path.read_bytes() == "one\ntwö\n".encode()
    assert names(tmp_path) == ["file"]


def test_a_file_is_on_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    order = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: order.append("flush"))
    monkeypatch.setattr(Path, "replace", lambda path, target: order.append("rename"))
    write_file(tmp_path / "file", [b"text"])
    assert order == ["flush", "rename", "flush"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [("new", None), ("new/deep", None), ("runs", None), (".", None), ("runs/model/old", "runs/model/old")]
    + [(f"runs/model/old/{rest}", "runs/model/old") for rest in ("x", "x/y")]
    + [("link", "link"), ("link/x", "link")],
)
def test_what_stands_in_the_way_of_a_folder(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, expected: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to("nowhere")
    assert obstacle(Path(path)) == (expected and Path(expected))
    assert obstacle(tmp_path / path) == (expected and tmp_path / expected)
