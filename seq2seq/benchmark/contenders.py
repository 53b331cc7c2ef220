"""What competes: a name and its settings, as `ours:bfloat16:threads=1:preload=/usr/lib/libtcmalloc.so`."""

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from seq2seq.errors import UserError

INHERIT = None  # the allocator that the benchmark itself was started with


@dataclass(frozen=True)
class Contender:
    """One competitor, which works in a process of its own."""

    label: str  # as it was asked for, but for the folders of its libraries
    name: str
    precision: str | None = None
    threads: int = 1
    preload: str | None = INHERIT  # libraries, with colons between them

    def environment(self) -> dict[str, str]:
        """The environment of its process."""
        values = dict(os.environ)
        values |= {name: str(self.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
        if self.preload is not INHERIT:
            values["LD_PRELOAD"] = self.preload
        return values


def parse_contenders(text: str, known: Collection[str], precisions: Sequence[str], threads: int) -> list[Contender]:
    """Contenders with commas between them; the first is the one that the others are compared with."""
    found = [parse_contender(spec.strip(), known, precisions, threads) for spec in text.split(",") if spec.strip()]
    if not found:
        raise UserError(f"--contenders {text!r} names none; known: {', '.join(known)}")
    labels = [contender.label for contender in found]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise UserError(f"--contenders names {twice} twice")
    return found


def parse_contender(spec: str, known: Collection[str], precisions: Sequence[str], threads: int) -> Contender:
    """NAME, then in any order a precision, threads=N and preload=LIBRARY (also several times)."""
    name, *settings = spec.split(":")
    if name not in known:
        raise UserError(f"contender {spec!r}: {name!r} is not one of {', '.join(known)}")
    precision, libraries = None, None
    for setting in settings:
        key, _, value = setting.partition("=")
        if setting in precisions:
            precision = setting
        elif key == "threads" and value.isdigit() and int(value) > 0:
            threads = int(value)
        elif key == "preload":
            libraries = [*(libraries or []), *_libraries(value)]
        else:
            rule = ", ".join([*precisions, "threads=N (1 or more)", "preload=LIBRARY", "preload=none"])
            raise UserError(f"contender {spec!r}: {setting!r} is not one of {rule}")
    label = ":".join([name, *[_short(setting) for setting in settings]])
    return Contender(label, name, precision, threads, INHERIT if libraries is None else ":".join(libraries))


def _short(setting: str) -> str:
    key, equals, value = setting.partition("=")
    return f"{key}={Path(value).name}" if equals else setting


def _libraries(path: str) -> Sequence[str]:
    if path == "none":
        return []
    if not Path(path).is_file():
        raise UserError(f"preload={path}: there is no such file")  # the loader would only warn, on stderr
    return [path]
