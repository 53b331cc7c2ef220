"""What a run writes down about itself, so that it can be told apart and made again: `run.json`.

Seed and data once; code, versions, machine and processes anew each time that the run is started or resumed.
"""

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from seq2seq import __version__
from seq2seq.errors import UserError
from seq2seq.storage import write_text

RECORD = "run.json"
PACKAGES = ("torch", "numpy", "sentencepiece", "sacrebleu", "datasets", "safetensors")
COMPARED = ("versions", "threads", "processes", "machine")  # what must be equal for equal bits

Record = dict[str, Any]


def session(update: int, processes: int) -> Record:
    """One stretch of a run: when it began, at which update, by which code, on what."""
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "update": update,
        "command": sys.argv,
        "processes": processes,
        "threads": torch.get_num_threads(),
        "machine": machine(),
        "versions": versions(),
        "git": git_state(),
    }


def versions() -> dict[str, str]:
    """Versions of the code, of Python and of the packages that a result may depend on."""
    found = {"seq2seq": __version__, "python": platform.python_version()}
    return found | {name: importlib.metadata.version(name) for name in PACKAGES}


def machine() -> str:
    """Processor and system in words, with the GPU if there is one."""
    parts = [_processor(), f"{os.cpu_count()} cores", platform.system()]
    if torch.cuda.is_available():
        parts.append(torch.cuda.get_device_name())
    return ", ".join(part for part in parts if part)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def git_state() -> Record | None:
    """Commit of this code and whether files were changed since; None where it is not run from a git checkout."""
    folder = Path(__file__).parent
    if _git(folder, "ls-files", "--error-unmatch", Path(__file__).name) is None:
        return None
    commit, changes = _git(folder, "rev-parse", "HEAD"), _git(folder, "status", "--porcelain", ":/")
    if commit is None or changes is None:
        return None
    return {"commit": commit, "dirty": bool(changes), "changed": [line[3:] for line in changes.splitlines()][:20]}


def _git(folder: Path, *arguments: str) -> str | None:
    """What git prints; None if it is not there or does not succeed."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.rstrip("\n")


def read_record(folder: Path) -> Record:
    """The record of a run, empty if it has none yet."""
    path = folder / RECORD
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found["sessions"], list):
            raise TypeError("sessions is not a list")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged ({error}): mend or remove it") from None
    return dict(found)


def summary(folder: Path) -> Record:
    """The run in short, as its model card tells it: seed, sizes of the data, last session's code and machine."""
    record = read_record(folder)
    splits = record.get("data", {}).get("splits", {})
    sizes = {f"{name} pairs": split["pairs"] for name, split in splits.items()}
    return {"seed": record.get("seed"), "data": sizes, **record.get("sessions", [{}])[-1]}


def write_record(folder: Path, seed: int, data: Record, now: Record) -> list[str]:
    """Add a session to the record of a run; returns what differs from the session before."""
    before = read_record(folder).get("sessions", [])
    record = {"seed": seed, "data": data, "sessions": [*before, now]}
    write_text(folder / RECORD, json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    return [line for key in COMPARED if before for line in _differences(key, before[-1].get(key), now[key])]


def _differences(key: str, before: Any, now: Any) -> list[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        return [line for name in now for line in _differences(name, before.get(name), now[name])]
    return [f"{key} {before} -> {now}"] if before != now else []
