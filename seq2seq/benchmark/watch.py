"""A service seen from beside its load: how soon it says that it lives, and how much memory it holds.

Who looks is a process by itself, as a probe of an orchestrator is. The clients of a load test share one event loop, and
a hundred answers at once hold up everything in it, whatever the service does.
"""

import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection

import httpx

EVERY = 0.25  # seconds between two looks
PATIENCE = 30.0  # seconds that one waits for an answer


@dataclass
class Seen:
    """What a service answered, look by look."""

    livez: list[float] = field(default_factory=list)  # seconds until it said that it lives, or did not
    memory: list[float] = field(default_factory=list)  # of the process, in bytes
    failed: int = 0  # looks at which it did not


@contextmanager
def watched(url: str) -> Iterator[Seen]:
    """Look again and again while the block runs; what was seen is there when it has ended."""
    seen = Seen()
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_watch, args=(url, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        ours.recv()  # it has begun
        yield seen
    finally:
        with suppress(OSError, EOFError):  # it has ended already
            ours.send("stop")
            seen.livez, seen.memory, seen.failed = astuple(ours.recv())
        process.join()


def _watch(url: str, pipe: Connection) -> None:
    """Look until the other side says stop or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other side ends it
    seen = Seen()
    with httpx.Client(base_url=url, timeout=PATIENCE) as client, suppress(OSError):
        pipe.send("begun")
        while not pipe.poll(EVERY):
            _look(client, seen)
        pipe.send(seen)


def _look(client: httpx.Client, seen: Seen) -> None:
    started = time.perf_counter()
    try:
        alive = client.get("/livez").is_success
    except httpx.TransportError:
        alive = False
    seen.livez.append(time.perf_counter() - started)
    seen.failed += not alive
    with suppress(httpx.TransportError):
        metrics = client.get("/metrics").text
        if found := re.search(r"^process_resident_memory_bytes (\S+)", metrics, re.MULTILINE):
            seen.memory.append(float(found[1]))
