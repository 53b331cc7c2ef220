"""A bulk translation: what was asked for, what is written beside its output OUT, and who works on it.

- `OUT.job.json`, the record: what was asked for, so that another job does not go on with the shards of this one; stays
- `OUT.work/`: `source/part-00000000.parquet`, ... the shards; `parts/`, their translations; gone when OUT is there
"""

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock

from seq2seq import __version__, storage
from seq2seq.bulk.inputs import is_parquet
from seq2seq.errors import UserError
from seq2seq.folder import CONFIG, TOKENIZER, WEIGHTS


@dataclass(frozen=True)
class Job:
    """What the output depends on; workers may come and go, and their number may change."""

    inputs: tuple[Path, ...]
    output: Path
    model: str | None  # as given: every node finds its own copy
    fingerprint: str  # and this says whether it is the same
    beam_size: int | None
    length_penalty: float | None
    column: str
    shard_lines: int
    device: str

    @property
    def parquet(self) -> bool:
        """Whether the output is a folder of Parquet files rather than a text file."""
        return is_parquet(self.output) or is_parquet(self.inputs[0])

    @property
    def record(self) -> Path:
        """`OUT.job.json`, there as soon as all shards are cut."""
        return self.output.with_name(self.output.name + ".job.json")

    @property
    def work(self) -> Path:
        """`OUT.work`."""
        return self.output.with_name(self.output.name + ".work")

    @property
    def source(self) -> Path:
        """The folder of shards."""
        return self.work / "source"

    @property
    def parts(self) -> Path:
        """The folder of translated shards."""
        return self.work / "parts"

    def described(self) -> dict[str, Any]:
        """What the record holds: every value that decides a byte of the output, under the name that a user knows."""
        inputs = {f"input {number}": _described(path) for number, path in enumerate(self.inputs, 1)}
        return inputs | {
            "model (SHA-256)": self.fingerprint,
            "--beam-size": self.beam_size,
            "--length-penalty": self.length_penalty,
            "--column": self.column,
            "--shard-lines": self.shard_lines,
            "device": self.device,
            "seq2seq": __version__,
        }


def _described(path: Path) -> str:
    status = path.stat()
    return f"{path}, {status.st_size} bytes, changed {status.st_mtime_ns}"


def fingerprint(folder: Path) -> str:
    """SHA-256 over the files of a model that decide its translations."""
    digest = hashlib.sha256()
    for name in (WEIGHTS, CONFIG, TOKENIZER):
        digest.update(hashlib.sha256((folder / name).read_bytes()).digest())
    return digest.hexdigest()


def write_record(job: Job) -> None:
    """Say that the job was begun, and that all its shards are there."""
    storage.write_text(job.record, json.dumps(job.described(), indent=2) + "\n")


def check_record(job: Job, resume: bool) -> None:
    """Refuse an output that another job wrote or began; with `resume`, also a job that was not begun."""
    if not job.record.exists():
        if job.output.exists():
            raise UserError(f"--output {job.output} exists, and this job did not write it: give another, or remove it")
        if resume:
            raise UserError(f"--resume: {job.record} does not exist, so no job was begun here")
        return
    begun, asked = json.loads(job.record.read_text(encoding="utf-8")), job.described()
    for name in [*asked, *begun]:
        if begun.get(name) != asked.get(name):
            raise UserError(
                f"{job.record} is of another job: {name} was {begun.get(name, 'not given')}, "
                f"now {asked.get(name, 'not given')}; give another --output, or remove this file and the output"
            )


@contextmanager
def only_driver(job: Job) -> Iterator[None]:
    """Lock the job for as long as this process lives; take the work folder away when nothing in it is needed."""
    job.work.mkdir(exist_ok=True)
    try:
        lock = filelock.FileLock(job.work / "lock", timeout=0).acquire()
    except filelock.Timeout:
        raise UserError(f"{job.work} is in use: another run works on this output, wait for it or end it") from None
    try:
        with lock:
            yield
    finally:
        if job.output.exists() or not job.record.exists():  # all done, or not even cut
            shutil.rmtree(job.work, ignore_errors=True)
