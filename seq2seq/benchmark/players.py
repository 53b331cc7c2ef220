"""Who takes turns: a worker with its task, an outside command, a whole process from a cold start."""

import json
import shlex
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from seq2seq.benchmark.contenders import Contender
from seq2seq.benchmark.machine import Stopwatch

GRACE = 10  # seconds that a worker has to end by itself
Values = dict[str, Any]


class PlayerError(Exception):
    """A player cannot go on; why, in one line."""


@dataclass(frozen=True)
class Case:
    """One thing that is measured of every player."""

    label: str
    order: Mapping[str, Any] = field(default_factory=dict)
    shared: str | None = None  # what the first worker of a round measures and the others then do, for its "seconds"

    def after(self, measured: Mapping[str, Any]) -> "Case":
        """The same for the others of the round."""
        if self.shared is None or "seconds" not in self.order:
            return self
        rest = {name: value for name, value in self.order.items() if name != "seconds"}
        return replace(self, order=rest | {self.shared: measured[self.shared]})


class Player(ABC):
    """One row of a table: its turns, and what ended them if something did."""

    leads = False  # whether the others of a round may have to do as much as it did

    def __init__(self, label: str, threads: int | None = None) -> None:
        self.label, self.threads = label, threads
        self.facts: Values = {}
        self.final: Values = {}
        self.error: str | None = None
        self.finished = False  # has done all that was asked for, before the last round

    def start(self) -> None:  # noqa: B027  # most need not
        """Get ready."""

    @abstractmethod
    def turn(self, number: int, case: Case) -> Values:
        """One turn, in round `number` from 1; what was measured."""

    def finish(self) -> None:  # noqa: B027
        """Fill `final` after the last round."""

    def close(self) -> None:  # noqa: B027
        """End whatever still runs."""


class Worker(Player):
    """A contender in a process of its own, which sleeps on a pipe but for its turns."""

    leads = True

    def __init__(self, contender: Contender, job: Values) -> None:
        super().__init__(contender.label, contender.threads)
        self.contender, self.job = contender, job
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start the process and wait until it is ready for its first turn."""
        self._words = tempfile.TemporaryFile()  # noqa: SIM115  # what it says on stderr; `close` closes it
        self._process = subprocess.Popen(
            [sys.executable, "-m", "seq2seq.benchmark.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            text=True,
            env=self.contender.environment(),
        )
        self.facts = self._ask(self.job)

    def turn(self, number: int, case: Case) -> Values:
        """Wake it for one turn."""
        measured = self._ask(dict(case.order) | {"round": number})
        self.finished = bool(measured.get("finished"))
        return measured

    def finish(self) -> None:
        """Ask for what it measures once."""
        self.final = self._ask({})

    def _ask(self, order: Values) -> Values:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = ""
        if not line:
            raise PlayerError(self._last_words(process.wait()))
        answer: Values = json.loads(line)
        if "error" in answer:
            raise PlayerError(answer["error"])
        return answer

    def _last_words(self, status: int) -> str:
        self._words.seek(0)
        said = last_line(self._words.read().decode("utf-8", "replace"))
        ended = f"ended by signal {-status}" if status < 0 else f"ended with status {status}"
        return f"{ended}: {said}" if said else ended

    def close(self) -> None:
        """Let it end, or end it."""
        if self._process is None:
            return
        try:
            self._process.communicate(timeout=GRACE)  # closes its stdin, which is the end of its orders
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        self._words.close()
        self._process = None


class Outside(Player):
    """A command of the user's, run once a round; the JSON lines that it prints are its measurements."""

    def __init__(self, label: str, command: str, key: str, rounds: int, threads: int) -> None:
        super().__init__(label, threads)
        self.command, self.key, self.rounds = command, key, rounds
        self._round, self._lines = 0, list[Values]()

    def turn(self, number: int, case: Case) -> Values:
        """Run the command, if it was not in this round, and pick the line that belongs to the case."""
        if number != self._round:
            self._lines = self._run()
            self._round, self.finished = number, number >= self.rounds
        wanted = {name: case.order[name] for name in ("beam",) if name in case.order}
        fitting = [line for line in self._lines if all(line.get(key, wanted[key]) == wanted[key] for key in wanted)]
        if not fitting:
            raise PlayerError(f"no JSON line with {self.key}" + "".join(f" and {k} {v}" for k, v in wanted.items()))
        return fitting[-1]

    def _run(self) -> list[Values]:
        with Stopwatch(children=True) as watch:
            done = run(self.command)
        if done.returncode:
            said = last_line(done.stderr) or last_line(done.stdout)
            raise PlayerError(f"ended with status {done.returncode}" + (f": {said}" if said else ""))
        lines = json_lines(done.stdout + "\n" + done.stderr)
        return [watch.measured() | line for line in lines if isinstance(line.get(self.key), int | float)]


class Cold(Player):
    """A whole process, from its start to its end, in the environment of a contender."""

    def __init__(self, contender: Contender, command: Sequence[str]) -> None:
        super().__init__(contender.label, contender.threads)
        self.command, self.environment = list(command), contender.environment()

    def turn(self, number: int, case: Case) -> Values:
        """Run it once."""
        with Stopwatch(children=True) as watch:
            done = run(self.command, self.environment)
        if done.returncode:
            raise PlayerError(last_line(done.stderr) or f"{shlex.join(self.command)}: status {done.returncode}")
        return watch.measured()


def run(command: str | Sequence[str], env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a shell command, or a program with its arguments, to its end."""
    shell = isinstance(command, str)
    return subprocess.run(command, shell=shell, env=env, capture_output=True, text=True, errors="replace", check=False)


def json_lines(text: str) -> list[Values]:
    """The lines that are JSON objects."""
    found = []
    for line in text.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def last_line(text: str) -> str:
    """The last line that says something."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
