"""How a service bears many clients at once: sentences a second, waiting times, and whether each gets its own answer.

python scripts/loadtest.py --clients 1,8,32,128 --seconds 60
"""

import argparse
import asyncio
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path

import httpx

from seq2seq.benchmark.load import TITLES, alone, row, run_load, set_near_ties_apart
from seq2seq.benchmark.tables import markdown
from seq2seq.benchmark.watch import watched
from seq2seq.errors import UserError, exit_status

PROGRAM = "loadtest"
START = 120.0  # seconds within which a server is ready


def run() -> None:
    """Read the command line and do it."""
    options = _options()
    sentences = _sentences(options.sentences)
    runs = []
    with _service(options) as url:
        expected = asyncio.run(alone(url, sentences, options.direction)) if options.check else None
        for clients in options.clients:
            with watched(url) as seen:
                load = asyncio.run(
                    run_load(url, sentences, clients, options.seconds, options.direction, expected, options.answers)
                )
            if options.check:
                asyncio.run(set_near_ties_apart(url, load, options.direction))
            runs.append((load, seen))
            print(f"{PROGRAM}: {clients} clients: {load.rate:.1f} sentences/s", file=sys.stderr)
    print(markdown(TITLES, [row(*run) for run in runs]))
    for load, _ in runs:
        if options.check:
            others = f"{len(load.wrong)} other than when alone, {load.near_ties} of two that are as probable"
            print(f"{load.clients} clients: {len(load.latencies):,} answers, {others}")
    if options.json:
        options.json.write_text(
            json.dumps([asdict(load) | {"seen": asdict(seen)} for load, seen in runs], ensure_ascii=False),
            encoding="utf-8",
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--url", help="of a running service (default: one is started for the test)")
    parser.add_argument("--clients", type=_numbers, default=[1, 8, 32, 128], metavar="N,N", help="at once, in turn")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each run (default: 60)")
    parser.add_argument("--answers", type=int, metavar="N", help="end a run earlier, after so many answers")
    parser.add_argument("--check", action="store_true", help="compare each answer with that of the sentence alone")
    parser.add_argument("--sentences", type=Path, metavar="FILE", help="a sentence a line (default: the sample corpus)")
    parser.add_argument("--direction", type=_direction, default=("en", "fr"), metavar="A-B", help="default: en-fr")
    parser.add_argument("--json", type=Path, metavar="FILE", help="everything that was measured")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the service")
    parser.add_argument("serve", nargs="*", help="after --: options of `seq2seq serve`, as --engine ctranslate2")
    return parser.parse_args()


def _numbers(text: str) -> list[int]:
    numbers = [int(part) for part in text.split(",")]
    if min(numbers) < 1:
        raise ValueError
    return numbers


def _direction(text: str) -> tuple[str, str]:
    source, target = text.split("-")
    return source, target


def _sentences(path: Path | None) -> list[str]:
    """Sentences that end as such, so that a text of them is split where they were joined."""
    if path is None:
        lines = files("seq2seq").joinpath("data/sample.tsv").read_text(encoding="utf-8").split("\n")
    elif path.is_file():
        lines = path.read_text(encoding="utf-8").split("\n")
    else:
        raise UserError(f"--sentences {path} does not exist")
    found = [line.split("\t")[0] for line in lines]
    return [text for text in dict.fromkeys(found) if text.endswith((".", "!", "?")) and text[0].isupper()][:500]


@contextmanager
def _service(options: argparse.Namespace) -> Iterator[str]:
    """The address of the service that is tested."""
    if options.url:
        yield options.url
        return
    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        config = Path(folder) / "service.toml"
        config.write_text("\n".join(options.set), encoding="utf-8")
        probe.close()
        command = ["serve", "--port", str(port), "--config", str(config), *options.serve]
        with _started([sys.executable, "-m", "seq2seq", *command], f"http://127.0.0.1:{port}") as url:
            yield url


@contextmanager
def _started(command: Sequence[str], url: str) -> Iterator[str]:
    with subprocess.Popen(command) as process:
        try:
            end = time.monotonic() + START
            while not _is_ready(url):
                if process.poll() is not None or time.monotonic() > end:
                    raise UserError("the service has not started")
                time.sleep(0.2)
            yield url
        finally:
            process.terminate()
            process.wait()


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz").status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


if __name__ == "__main__":
    sys.exit(exit_status(PROGRAM, run))
