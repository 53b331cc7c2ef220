"""`python scripts/translate_on_ray.py --input corpus.en --output corpus.fr`: bulk translation on Ray Data.

The rows of all inputs are numbered and copied into small Parquet files, the shards. Ray Data hands their names to a
pool of workers; each holds one model and writes its translation of a shard as a part of the same name, in one step.
When every part is there, they become the output. Jobs, shards and workers are in seq2seq/bulk; Ray is here alone.

A part that exists is complete and is not translated again: killed at any moment, the same command goes on.
docs/bulk.md says more.
"""

import argparse
import logging
import os
import socket
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from tqdm import tqdm

from seq2seq import Translator
from seq2seq.bulk.inputs import check_inputs
from seq2seq.bulk.job import Job, check_record, fingerprint, only_driver
from seq2seq.bulk.shards import clear, cut, is_cut, missing, publish, shard_names
from seq2seq.bulk.worker import Worker
from seq2seq.commands.common import CHUNK, OutputPath, check_parent, model_option, search_options
from seq2seq.errors import UserError, exit_status, first_line
from seq2seq.folder import find_model

PROGRAM = "translate_on_ray"
SHARD_LINES = CHUNK  # a whole chunk: the batches, and so the translations, are those of `seq2seq translate`
MOST_TASKS = 1000  # more shards than these share tasks, because every task costs the driver a little


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the script; returns its exit status, as `seq2seq` has it."""
    interrupted = "interrupted; the same command goes on with the shards that are missing"
    return exit_status(PROGRAM, lambda: run(build_parser().parse_args(arguments)), interrupted, prints_results=False)


def build_parser() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(
        description="Translate files with many workers on Ray; line n of the output belongs to line n of the input.",
        epilog="example:\n  python scripts/translate_on_ray.py --input corpus.en --output corpus.fr --workers 2",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--input", type=Path, nargs="+", required=True, metavar="FILE", help="text (also .gz) or .parquet, in order")
    output = "text file; a folder for Parquet or OUT.parquet"
    add("--output", action=OutputPath, required=True, metavar="OUT", help=output)
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
    if not job.output.exists():
        check_parent(job.output)
    check_record(job, options.resume)
    with only_driver(job):
        if job.output.exists():
            say(f"{job.output} is complete already")
            return
        if not is_cut(job):
            say("cutting the input into shards")
            cut(job)
        translate_missing(job, options)
        total = publish(job)
        say(f"{job.output} is complete: {total.rows:,} lines, {total.truncated:,} of them cut at the length limit")


def say(message: str) -> None:
    """One line to the person who waits."""
    print(f"{PROGRAM}: {message}", file=sys.stderr, flush=True)


# What was asked for


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
        model=str(folder.resolve()) if options.model and Path(options.model).is_dir() else options.model,
        fingerprint=fingerprint(folder),
        beam_size=options.beam_size,
        length_penalty=options.length_penalty,
        column=options.column,
        shard_lines=options.shard_lines,
        device="cuda" if options.gpus_per_worker else "cpu",
    )


# Ray


def translate_missing(job: Job, options: argparse.Namespace) -> None:
    """Have Ray translate every shard that has no part yet."""
    clear(job)
    total, names = len(shard_names(job)), missing(job)
    if len(names) < total:
        say(f"{total - len(names)} of {total} shards are done already")
    if names:
        start_ray(options.address)
        workers = count_workers(options)
        started = time.monotonic()
        sentences = translate_shards(job, names, workers, options)
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
        raise UserError(f"--address {address or 'local'}: Ray does not answer ({first_line(error)})") from None


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
        fn_constructor_args=(job, options.cpus_per_worker, CHUNK),
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


if __name__ == "__main__":
    sys.exit(main())
