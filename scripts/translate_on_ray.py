"""`python scripts/translate_on_ray.py --input corpus.en --output corpus.fr`: bulk translation on Ray Data.

The rows of all inputs are numbered and copied into small Parquet files, the shards. Ray Data hands their names to a
pool of workers; each holds one model and writes its translation of a shard as a part of the same name, in one step.
When every part is there, they become the output. What is written beside an output OUT meanwhile:

    OUT.job.json   what was asked for, so that another job does not go on with the shards of this one; stays
    OUT.work/      source/part-00000000.parquet, ... the shards; parts/, their translations; gone when OUT is there

A part that exists is complete and is not translated again: killed at any moment, the same command goes on.
docs/bulk.md says more.
"""

import argparse
import hashlib
import io
import itertools
import json
import logging
import os
import shutil
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import filelock
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from tqdm import tqdm

from seq2seq import Translator, __version__, storage
from seq2seq.checkpoint import CONFIG, TOKENIZER, WEIGHTS, find_model
from seq2seq.commands.common import CHUNK, check_parent, model_option, search_options
from seq2seq.data.files import read_lines
from seq2seq.errors import UserError

ID, TRANSLATION, TRUNCATED = "id", "translation", "truncated"  # the columns that are added
SHARD_LINES = 4 * CHUNK  # whole chunks: the batches, and so the translations, are those of `seq2seq translate`
MOST_TASKS = 1000  # more shards than these share tasks, because every task costs the driver a little
MOST_TRIES = 5  # of a shard whose worker dies; Ray itself would try for ever


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


def is_parquet(path: Path) -> bool:
    """By its name."""
    return path.suffix == ".parquet"


def _described(path: Path) -> str:
    status = path.stat()
    return f"{path}, {status.st_size} bytes, changed {status.st_mtime_ns}"


# What was asked for


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the script; returns its exit status, as `seq2seq` has it."""
    options = build_parser().parse_args(arguments)
    try:
        run(options)
    except UserError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("interrupted; the same command goes on with the shards that are missing")
        return 130
    except OSError as error:
        say(f"{error.filename or 'system'}: {error.strerror or error}")
        return 1
    return 0


def build_parser() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(
        description="Translate files with many workers on Ray; line n of the output belongs to line n of the input.",
        epilog="example:\n  python scripts/translate_on_ray.py --input corpus.en --output corpus.fr --workers 2",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--input", type=Path, nargs="+", required=True, metavar="FILE", help="text (also .gz) or .parquet, in order")
    add("--output", type=Path, required=True, metavar="OUT", help="text file; a folder for Parquet or OUT.parquet")
    add("--column", default="text", help="column of a Parquet file that is translated (default: text)")
    model_option(parser)
    search_options(parser)
    add("--workers", type=int, metavar="N", help="models that work at once (default: as many as there is room for)")
    add("--cpus-per-worker", type=int, default=1, metavar="C", help="and so the threads of each (default: 1)")
    add("--gpus-per-worker", type=float, default=0, metavar="G", help="0.5 puts two on a GPU (default: 0, no GPU)")
    add("--shard-lines", type=int, default=SHARD_LINES, metavar="N", help=f"lines per shard (default: {SHARD_LINES})")
    add("--address", help="of a running Ray cluster, host:port or auto (default: Ray on this machine alone)")
    add("--resume", action="store_true", help="only go on with a job that was begun; begin none")
    return parser


def run(options: argparse.Namespace) -> None:
    """Cut, translate what is missing, put together."""
    check_options(options)
    job = read_job(options)
    check_output(job, options.resume)
    with only_driver(job):
        if job.output.exists():
            say(f"{job.output} is complete already")
        else:
            if not job.record.exists() or not job.source.exists():
                cut(job)
            translate_missing(job, options)
            publish(job)


def say(message: str) -> None:
    """One line to the person who waits."""
    print(f"translate_on_ray: {message}", file=sys.stderr, flush=True)


def check_options(options: argparse.Namespace) -> None:
    """Refuse numbers that mean nothing, and a missing Ray, before anything is read."""
    for name in ("workers", "cpus_per_worker", "shard_lines"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise UserError(f"--{name.replace('_', '-')} {value} is not 1 or more")
    if options.gpus_per_worker < 0:
        raise UserError(f"--gpus-per-worker {options.gpus_per_worker} is not 0 or more")
    if find_spec("ray") is None:
        raise UserError('Ray is not installed: pip install ".[ray]"')
    check_address(options.address or "")


def check_address(address: str) -> None:
    """Refuse an address where nothing listens; Ray itself would knock for ever."""
    host, _, port = address.rpartition(":")
    if not port.isdigit():
        return  # auto
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise UserError(f"--address {address}: no Ray cluster answers ({error})") from None


def read_job(options: argparse.Namespace) -> Job:
    """The job that the options ask for; inputs, model and search options are looked at before Ray starts."""
    check_inputs(options.input, options.column)
    folder = find_model(options.model)
    Translator.from_pretrained(folder).translate([], beam_size=options.beam_size, length_penalty=options.length_penalty)
    return Job(
        inputs=tuple(path.resolve() for path in options.input),
        output=options.output.resolve(),
        model=str(folder.resolve()) if Path(options.model or "").is_dir() and options.model else options.model,
        fingerprint=fingerprint(folder),
        beam_size=options.beam_size,
        length_penalty=options.length_penalty,
        column=options.column,
        shard_lines=options.shard_lines,
        device="cuda" if options.gpus_per_worker else "cpu",
    )


def fingerprint(folder: Path) -> str:
    """SHA-256 over the files of a model that decide its translations."""
    digest = hashlib.sha256()
    for name in (WEIGHTS, CONFIG, TOKENIZER):
        digest.update(hashlib.sha256((folder / name).read_bytes()).digest())
    return digest.hexdigest()


def check_inputs(paths: list[Path], column: str) -> None:
    """Refuse inputs that are not there, not of one kind, or lack the column."""
    for path in paths:
        if not path.is_file():
            raise UserError(f"{path} " + ("is not a file" if path.exists() else "does not exist"))
        if is_parquet(path) != is_parquet(paths[0]):
            raise UserError(f"{paths[0]} and {path}: give text files or Parquet files, not both")
    if not is_parquet(paths[0]):
        return
    schemas = [check_schema(path, column) for path in paths]
    for path, schema in zip(paths, schemas, strict=True):
        if not schema.equals(schemas[0]):
            raise UserError(f"{path} has other columns or types than {paths[0]}: run one job for each")


def check_schema(path: Path, column: str) -> pa.Schema:
    """The columns of a Parquet file that can be translated."""
    schema = open_parquet(path).schema_arrow
    if column not in schema.names:
        raise UserError(f"{path} has no column {column!r}: choose --column from {', '.join(schema.names)}")
    kind = schema.field(column).type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise UserError(f"{path}: column {column!r} holds {kind}, not text: choose another --column")
    for name in (ID, TRANSLATION, TRUNCATED):
        if name in schema.names:
            raise UserError(f"{path} has a column {name!r}, which the output needs: rename it")
    return schema


def open_parquet(path: Path) -> pq.ParquetFile:
    """A Parquet file, of which nothing but the description is read yet."""
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from None


def check_output(job: Job, resume: bool) -> None:
    """Refuse an output that cannot be written, and shards that another job left."""
    if not job.output.exists():
        check_parent(job.output)
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


# Shards


def cut(job: Job) -> None:
    """Copy the inputs into shards; the record is written last and says that they are all there."""
    say("cutting the input into shards")
    storage.sweep(job.work)  # what a killed driver had begun to cut
    if job.parts.exists():  # of another job, whose record was removed
        shutil.rmtree(job.parts)
    read = read_parquet if is_parquet(job.inputs[0]) else read_text
    tables = (table for path in job.inputs for table in read(path, job))  # so that no shard spans two inputs
    first = itertools.count()
    with storage.replacing(job.source) as folder:
        for number, table in enumerate(tables):
            ids = pa.array(itertools.islice(first, len(table)), pa.int64())
            write_table(table.add_column(0, ID, ids), folder / f"part-{number:08}.parquet")
    storage.write_text(job.record, json.dumps(job.described(), indent=2) + "\n")


def read_text(path: Path, job: Job) -> Iterator[pa.Table]:
    """Lines of a text file by the shard; one shard without lines if the file is empty."""
    lines = read_lines(path)
    chunk = list(itertools.islice(lines, job.shard_lines))
    while True:
        yield pa.table({job.column: pa.array(chunk, pa.string())})
        chunk = list(itertools.islice(lines, job.shard_lines))
        if not chunk:
            return


def read_parquet(path: Path, job: Job) -> Iterator[pa.Table]:
    """Rows of a Parquet file by the shard; one shard without rows if the file has none."""
    file = open_parquet(path)
    if not file.metadata.num_rows:
        yield file.schema_arrow.remove_metadata().empty_table()
    try:
        for batch in file.iter_batches(job.shard_lines):
            # Metadata may describe the columns (pandas and `datasets` do that), and there will be more of them.
            yield pa.Table.from_batches([batch]).replace_schema_metadata(None)
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path} is damaged: {str(error).splitlines()[0]}") from None


def write_table(table: pa.Table, path: Path) -> None:
    """A Parquet file that appears when it is complete."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    storage.write_file(path, [buffer.getbuffer()])


def read_table(path: Path, columns: list[str] | None = None) -> pa.Table:
    """One shard or part."""
    return pq.ParquetFile(path).read(columns)


class Worker:
    """One model, which translates shard after shard in a process of its own; Ray Data holds a pool of these."""

    def __init__(self, job: Job, threads: int) -> None:
        self.job, self.threads = job, threads
        self.translator: Translator | None = None  # comes with the first shard: Ray would bury an error in its own here

    def load(self) -> Translator:
        """The model, if it is the one that the driver saw."""
        import torch

        torch.set_num_threads(self.threads)  # else every worker starts a thread for every processor
        folder = find_model(self.job.model)
        if fingerprint(folder) != self.job.fingerprint:
            raise UserError(f"{folder} on {os.uname().nodename} is not the model that the job was begun with")
        translator = Translator.from_pretrained(folder)
        translator.model.to(self.job.device)
        return translator

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        """Do the shard that the batch names; what goes wrong is an answer too, as one line."""
        [name] = batch["shard"]
        sentences, error = 0, ""
        try:
            if not (self.job.parts / name).exists():  # Ray may ask again for what a lost node had done
                self.count_tries(name)
                sentences = self.translate(name)
        except (UserError, OSError, pa.ArrowException) as problem:
            error = str(problem) or type(problem).__name__
        return {"sentences": [sentences], "error": [error]}

    def count_tries(self, name: str) -> None:
        """Give up a shard that kills every worker, as too little memory does."""
        tries = self.job.work / f"{name}.tries"
        with tries.open("ab") as stream:
            stream.write(b".")
        if tries.stat().st_size > MOST_TRIES:
            raise UserError(
                f"{self.job.source / name}: the worker died {MOST_TRIES} times over this shard; "
                "if memory is short, start again with fewer --workers on each machine"
            )

    def translate(self, name: str) -> int:
        """Write one part; returns how many sentences went through the model."""
        self.translator = self.translator or self.load()
        table = read_table(self.job.source / name)
        texts = table[self.job.column].to_pylist()
        results = []
        for start in range(0, len(texts), CHUNK):
            results += self.translator.translate(
                [text or "" for text in texts[start : start + CHUNK]],
                beam_size=self.job.beam_size,
                length_penalty=self.job.length_penalty,
                attention=False,
            )
        translations = [None if text is None else done.text for text, done in zip(texts, results, strict=True)]
        table = table.append_column(TRANSLATION, pa.array(translations, pa.string()))
        table = table.append_column(TRUNCATED, pa.array([done.truncated for done in results], pa.bool_()))
        write_table(table, self.job.parts / name)
        return sum(len(done.sentences) for done in results)


# Ray


def translate_missing(job: Job, options: argparse.Namespace) -> None:
    """Have Ray translate every shard that has no part yet."""
    job.parts.mkdir(exist_ok=True)
    storage.sweep(job.parts)  # half-written parts of workers that were killed
    for tries in job.work.glob("*.tries"):
        tries.unlink()
    shards = sorted(path.name for path in job.source.iterdir())
    missing = [name for name in shards if not (job.parts / name).exists()]
    if len(missing) < len(shards):
        say(f"{len(shards) - len(missing)} of {len(shards)} shards are done already")
    if missing:
        start_ray(options.address)
        workers = count_workers(options)
        started = time.monotonic()
        sentences = translate_shards(job, missing, workers, options)
        seconds = time.monotonic() - started
        say(f"{sentences:,} sentences in {seconds:.1f} s, {sentences / seconds:.1f} a second, workers: {workers}")


def start_ray(address: str | None) -> None:
    """Connect to a cluster, or start Ray on this machine for as long as the script runs."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # Ray calls the way Ray Data uses it an error
    import ray

    here = {"include_dashboard": False, "object_store_memory": 100_000_000}  # names of shards are all it will hold
    try:
        ray.init(address or "local", log_to_driver=False, logging_level=logging.ERROR, **({} if address else here))
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise UserError(f"--address {address or 'local'}: Ray does not answer ({str(error).splitlines()[0]})") from None


def count_workers(options: argparse.Namespace) -> int:
    """As many workers as were asked for, or as there is room for on the machines; refuses to wait for room for ever."""
    import ray

    cpus, gpus = options.cpus_per_worker, options.gpus_per_worker
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    room = sum(
        int(min(node.get("CPU", 0) // cpus, node.get("GPU", 0) // gpus if gpus else float("inf"))) for node in nodes
    )
    workers = room if options.workers is None else options.workers
    if not 1 <= workers <= room:
        each = f"--cpus-per-worker {cpus} and --gpus-per-worker {gpus:g}"
        raise UserError(f"--workers {max(workers, 1)}: there is room for {room} with {each}: give less of one")
    return workers


def translate_shards(job: Job, names: list[str], workers: int, options: argparse.Namespace) -> int:
    """Hand the shards to a pool of workers; returns how many sentences they translated.

    Ray starts a worker that died again and repeats its shard. Names are handed out one at a time, so that no shard
    waits behind another while a worker is free.
    """
    import ray.data

    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    ray.data.DataContext.get_current().enable_progress_bars = False
    shards = ray.data.from_items([{"shard": name} for name in names], override_num_blocks=min(len(names), MOST_TASKS))
    done = shards.map_batches(
        Worker,
        fn_constructor_args=(job, options.cpus_per_worker),
        batch_size=1,
        compute=ray.data.ActorPoolStrategy(size=workers, max_tasks_in_flight_per_actor=1),
        num_cpus=options.cpus_per_worker,
        num_gpus=options.gpus_per_worker or None,
    )
    sentences = 0
    interval = 0.5 if sys.stderr.isatty() else 30.0
    try:
        for answer in tqdm(done.iter_rows(), total=len(names), unit="shard", mininterval=interval):
            if answer["error"]:
                raise UserError(answer["error"])
            sentences += answer["sentences"]
    except ray.exceptions.RayError as error:
        raise UserError(f"Ray gave up; the same command goes on ({str(error).splitlines()[-1]})") from None
    return sentences


# Output


def publish(job: Job) -> None:
    """Turn the parts, which are all there, into the output."""
    storage.sweep(job.parts)
    parts = sorted(job.parts.iterdir())
    assert [path.name for path in parts] == sorted(path.name for path in job.source.iterdir())
    rows = sum(pq.read_metadata(path).num_rows for path in parts)
    truncated = sum(pc.sum(read_table(path, [TRUNCATED])[TRUNCATED]).as_py() or 0 for path in parts)
    if job.parquet:
        job.parts.rename(job.output)
    else:
        storage.write_file(job.output, text_lines(parts))
    say(f"{job.output} is complete: {rows:,} lines, {truncated:,} of them cut at the length limit")


def text_lines(parts: list[Path]) -> Iterator[bytes]:
    """The translations of all parts, one a line."""
    for path in parts:
        for text in read_table(path, [TRANSLATION])[TRANSLATION].to_pylist():
            yield text.encode("utf-8") + b"\n"


if __name__ == "__main__":
    sys.exit(main())
