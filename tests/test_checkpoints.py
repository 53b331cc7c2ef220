"""Checkpoints: whole, in number, a model each; what was damaged is named and refused, and the one before offered."""

import errno
import hashlib
import json
from pathlib import Path

import pytest
import torch
from small import model_info, tokenizer
from trainings import same, started

from seq2seq.checkpoint import load_model
from seq2seq.errors import UserError
from seq2seq.training.checkpoints import (
    at,
    checkpoints,
    newest,
    prune,
    read_state,
    save_checkpoint,
    set_aside,
    verify,
)


def save(folder: Path, update: int, seed: int = 0) -> Path:
    state = started(seed)
    path = folder / f"{update:08d}"
    save_checkpoint(path, state.values(), state.model.state_dict(), tokenizer(), model_info(state.model.config))
    return path


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A folder with three checkpoints."""
    for update in (10, 20, 100):
        save(tmp_path, update, seed=update)
    return tmp_path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_checkpoint_is_read_back_as_it_was(tmp_path):
    path = save(tmp_path, 8, seed=3)
    assert same(read_state(path), started(seed=3).values())
    assert names(path) == ["checksums.json", "config.json", "model.safetensors", "state.pt", "tokenizer.model"]


def test_a_checkpoint_is_a_model_folder(tmp_path):
    loaded = load_model(save(tmp_path, 8, seed=3))
    assert torch.equal(loaded.model.embedding.weight, started(seed=3).model.embedding.weight.half().float())
    assert loaded.tokenizer.model == tokenizer().model


def test_they_are_listed_by_age(saved):
    (saved / "best").mkdir()
    (saved / ".00000110.1a2b3c4d.new").mkdir()
    assert [path.name for path in checkpoints(saved)] == ["00000010", "00000020", "00000100"]
    assert checkpoints(saved / "nowhere") == []


def test_the_newest_ones_are_kept(saved):
    prune(saved, keep=2)
    assert names(saved) == ["00000020", "00000100"]
    prune(saved, keep=5)
    assert names(saved) == ["00000020", "00000100"]


def test_a_checkpoint_of_the_same_update_is_replaced(saved):
    save(saved, 20, seed=5)
    assert len(names(saved)) == 3
    assert same(read_state(saved / "00000020"), started(seed=5).values())


def test_a_full_disk_while_saving_leaves_the_checkpoints_as_they_were(saved, monkeypatch):
    before = {path: path.read_bytes() for path in saved.rglob("*") if path.is_file()}
    write = Path.write_bytes

    def full(path, content):
        if path.name == "state.pt":
            write(path, bytes(content[: len(content) // 2]))
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(UserError, match=r"00000200 cannot be written: No space left on device; mend that and go on"):
        save(saved, 200)
    assert {path: path.read_bytes() for path in saved.rglob("*") if path.is_file()} == before
    assert names(saved) == ["00000010", "00000020", "00000100"]


# Damage.


def truncated(path: Path) -> None:
    file = path / "state.pt"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def altered(path: Path) -> None:
    content = bytearray((path / "state.pt").read_bytes())
    content[len(content) // 2] ^= 1
    (path / "state.pt").write_bytes(content)


def emptied(path: Path) -> None:
    (path / "state.pt").write_bytes(b"")


def without_state(path: Path) -> None:
    (path / "state.pt").unlink()


def other_weights(path: Path) -> None:
    (path / "model.safetensors").write_bytes(b"\0" * 100)


def without_tokenizer(path: Path) -> None:
    (path / "tokenizer.model").unlink()


def without_checksums(path: Path) -> None:
    (path / "checksums.json").unlink()


def broken_checksums(path: Path) -> None:
    (path / "checksums.json").write_text('{"state.pt": ', encoding="utf-8")


def no_checksums(path: Path) -> None:
    (path / "checksums.json").write_text("[]", encoding="utf-8")


def checksum_of_nothing(path: Path) -> None:
    (path / "checksums.json").write_text("{}", encoding="utf-8")


DAMAGES = [
    (truncated, "state.pt is not as it was written"),
    (altered, "state.pt is not as it was written"),
    (emptied, "state.pt is not as it was written"),
    (without_state, "state.pt is missing"),
    (other_weights, "model.safetensors is not as it was written"),
    (without_tokenizer, "tokenizer.model is missing"),
    (without_checksums, "checksums.json is missing"),
    (broken_checksums, r"checksums.json cannot be read"),
    (no_checksums, r"checksums.json cannot be read"),
    (checksum_of_nothing, r"checksums.json is not as it was written"),
]


@pytest.mark.parametrize(("damage", "reason"), DAMAGES)
def test_a_damaged_checkpoint_is_named_and_refused_and_the_one_before_it_is_offered(saved, damage, reason):
    damage(saved / "00000100")
    with pytest.raises(UserError, match=rf"checkpoint .*00000100 is damaged: {reason}") as caught:
        newest(saved)
    assert str(caught.value).endswith("; add --resume-from 20 to go on from the sound one before it")
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match="00000100 is damaged"):
        at(saved, 100)


def test_a_sound_one_is_offered_past_other_damaged_ones(saved):
    for name in ("00000100", "00000020"):
        truncated(saved / name)
    with pytest.raises(UserError, match=r"00000100 is damaged.*; add --resume-from 10 to go on"):
        newest(saved)


def test_without_a_sound_one_there_is_no_offer(tmp_path):
    truncated(save(tmp_path, 8))
    with pytest.raises(UserError, match="there is no sound one before it: start the run again with another --output"):
        newest(tmp_path)


def test_the_newest_sound_checkpoint_is_found(saved):
    assert newest(saved) == saved / "00000100"
    assert newest(saved / "nowhere") is None


def test_a_file_that_somebody_has_added_does_no_harm(saved):
    (saved / "00000100/notes.txt").write_text("mine", encoding="utf-8")
    verify(saved / "00000100")
    assert newest(saved) == saved / "00000100"


def test_a_state_that_is_a_pickle_of_anything_is_not_loaded(saved):
    path = saved / "00000100"
    torch.save({"model": Path("an object of any class")}, path / "state.pt")
    sums = json.loads((path / "checksums.json").read_text(encoding="utf-8"))
    del sums["state.pt"]
    rewritten = {**sums, "state.pt": hashlib.sha256((path / "state.pt").read_bytes()).hexdigest()}
    (path / "checksums.json").write_text(json.dumps(rewritten), encoding="utf-8")
    with pytest.raises(UserError, match="00000100 cannot be resumed from: Weights only load failed"):
        read_state(path)


# Another one than the last.


def test_a_checkpoint_is_found_by_its_update(saved):
    assert at(saved, 20) == saved / "00000020"
    with pytest.raises(UserError, match=r"--resume-from 30: .* holds no such checkpoint \(10, 20, 100\)"):
        at(saved, 30)
    with pytest.raises(UserError, match=r"holds no such checkpoint \(none\)"):
        at(saved / "nowhere", 30)


def test_later_checkpoints_are_set_aside_and_not_lost(saved):
    assert set_aside(saved, after=saved / "00000010") == [
        saved / "00000020.set-aside",
        saved / "00000100.set-aside",
    ]
    assert checkpoints(saved) == [saved / "00000010"]
    verify(saved / "00000100.set-aside")
    save(saved, 20, seed=7)
    set_aside(saved, after=saved / "00000010")  # a second time
    assert same(read_state(saved / "00000020.set-aside"), started(seed=7).values())
