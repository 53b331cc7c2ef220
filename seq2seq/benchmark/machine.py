"""What is measured on, and with: the machine, the clock, the processor's time, memory."""

import ctypes
import importlib.metadata
import os
import resource
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import torch

from seq2seq.training import record

FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile", "amx_bf16", "amx_int8", "asimd", "bf16", "sve")
PEERS = ("ctranslate2", "transformers")  # packages whose version matters where they are installed
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def facts(threads: int) -> dict[str, Any]:
    """Processor, memory, versions, threads, load and date, as a table of measurements must name them."""
    return {
        "machine": record.machine(),
        "memory_gb": round(os.sysconf("SC_PHYS_PAGES") * PAGE / 2**30, 1),
        "flags": flags(),
        "versions": versions(),
        "threads": threads,
        "preload": os.environ.get("LD_PRELOAD", ""),
        "load": [round(load, 2) for load in os.getloadavg()],
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "git": record.git_state(),
    }


def flags() -> list[str]:
    """The instruction sets that decide how fast matrices are multiplied."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    found = next((line.partition(":")[2].split() for line in lines if line.lower().startswith(("flags", "feat"))), [])
    return [flag for flag in FLAGS if flag in found]


def versions() -> dict[str, str]:
    """Of the code, Python, torch, and whatever peer is installed."""
    ours = {name: version for name, version in record.versions().items() if name in ("seq2seq", "python", "torch")}
    for name in PEERS:
        try:
            ours[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return ours


def busy_seconds() -> float | None:
    """Processor seconds that the whole machine has worked since it started, all cores; None where it does not tell."""
    try:
        with Path("/proc/stat").open(encoding="ascii") as lines:
            user, nice, system, _idle, _waiting, *rest = map(int, lines.readline().split()[1:9])
    except (OSError, ValueError):
        return None
    return (user + nice + system + sum(rest)) / TICKS


def processor_seconds(children: bool = False) -> float:
    """Processor seconds of this process, or of the children that it has waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN if children else resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


class Stopwatch:
    """Seconds by the clock, of the processor, and how many cores something else kept busy meanwhile."""

    def __init__(self, children: bool = False) -> None:
        self.children = children

    def __enter__(self) -> Self:
        self._busy, self._processor = busy_seconds(), processor_seconds(self.children)
        self._started = time.perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        self.seconds = self.elapsed
        self.cpu_seconds = processor_seconds(self.children) - self._processor
        busy = busy_seconds()
        unknown = busy is None or self._busy is None
        self.others = None if unknown else max(0.0, busy - self._busy - self.cpu_seconds) / self.seconds  # type: ignore[operator]

    @property
    def elapsed(self) -> float:
        """Seconds since the start, while it runs."""
        return time.perf_counter() - self._started

    def measured(self) -> dict[str, Any]:
        """What a turn reports of its time."""
        return {"seconds": self.seconds, "cpu_seconds": self.cpu_seconds, "others": self.others}


def forget_peak() -> None:
    """Let `peak_memory` start again from what is in use now, where the system allows it."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)  # free memory that the allocator holds would hide what is taken next
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def peak_memory() -> int:
    """The most bytes of memory that this process held since `forget_peak`, or since it started."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


def default_threads() -> int:
    """As many as torch takes by itself."""
    return torch.get_num_threads()
