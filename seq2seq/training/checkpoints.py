"""The checkpoints of a run: each a model folder with the averaged weights, the training state and checksums beside it.

A checkpoint is there whole or not at all. One that has been damaged since is named and refused, never skipped.
"""

import hashlib
import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from seq2seq.checkpoint import write_model
from seq2seq.data.tokenizer import Tokenizer
from seq2seq.errors import UserError, first_line
from seq2seq.folder import ModelInfo
from seq2seq.storage import discard, replacing

STATE = "state.pt"
MANIFEST = "checksums.json"  # SHA-256 of every other file of the checkpoint


def save_checkpoint(
    path: Path, state: dict[str, Any], weights: Mapping[str, Tensor], tokenizer: Tokenizer, info: ModelInfo
) -> None:
    """Write a training state, and the weights that were validated as a model beside it."""
    try:
        with replacing(path) as temporary:
            write_model(temporary, weights, tokenizer, info)
            buffer = io.BytesIO()
            torch.save(state, buffer)
            (temporary / STATE).write_bytes(buffer.getbuffer())
            sums = {file.name: _checksum(file) for file in sorted(temporary.iterdir())}
            (temporary / MANIFEST).write_text(json.dumps(sums, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        reason = error.strerror or error
        raise UserError(f"checkpoint {path} cannot be written: {reason}; mend that and go on with --resume") from None


def read_state(path: Path) -> dict[str, Any]:
    """The training state of a checkpoint that `newest` or `at` has found to be as it was written."""
    try:
        state: dict[str, Any] = torch.load(path / STATE, map_location="cpu", weights_only=True)
    except Exception as error:  # torch.load raises many kinds
        raise UserError(f"checkpoint {path} cannot be resumed from: {first_line(error)}") from None
    return state


def verify(path: Path) -> None:
    """Refuse a checkpoint that is not, byte for byte, what was written."""
    try:
        sums = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        changed = [name for name, checksum in sums.items() if _checksum(path / name) != checksum]
        complete = STATE in sums
    except FileNotFoundError as error:
        raise UserError(f"checkpoint {path} is damaged: {Path(error.filename).name} is missing") from None
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise UserError(f"checkpoint {path} is damaged: {MANIFEST} cannot be read ({error})") from None
    if changed or not complete:
        name = changed[0] if changed else MANIFEST
        raise UserError(f"checkpoint {path} is damaged: {name} is not as it was written")


def checkpoints(folder: Path) -> list[Path]:
    """The checkpoints of a run, oldest first."""
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in found if re.fullmatch(r"\d{8}", path.name))


def newest(folder: Path) -> Path | None:
    """The checkpoint to resume from, if there is one; a damaged one is refused, and the sound one before it offered."""
    saved = checkpoints(folder)
    if not saved:
        return None
    try:
        verify(saved[-1])
    except UserError as error:
        raise UserError(f"{error}; {_offer(saved[:-1])}") from None
    return saved[-1]


def _offer(saved: list[Path]) -> str:
    """What to do when the checkpoints after these cannot be used."""
    for path in reversed(saved):
        try:
            verify(path)
        except UserError:
            continue
        return f"add --resume-from {int(path.name)} to go on from the sound one before it"
    return "there is no sound one before it: start the run again with another --output"


def at(folder: Path, update: int) -> Path:
    """The checkpoint of a certain update, which the user has asked for; refused if it is damaged."""
    saved = {int(path.name): path for path in checkpoints(folder)}
    if update not in saved:
        known = ", ".join(map(str, saved)) or "none"
        raise UserError(f"--resume-from {update}: {folder} holds no such checkpoint ({known})")
    verify(saved[update])
    return saved[update]


def set_aside(folder: Path, after: Path) -> list[Path]:
    """Rename later checkpoints, so that the run goes on from `after` and none of them is taken for its own."""
    moved = []
    for path in checkpoints(folder):
        if path.name > after.name:
            target = path.with_name(f"{path.name}.set-aside")
            if target.exists():
                discard(target)
            moved.append(path.rename(target))
    return moved


def prune(folder: Path, keep: int) -> None:
    """Delete all but the newest checkpoints."""
    for old in checkpoints(folder)[:-keep]:
        discard(old)


def _checksum(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
