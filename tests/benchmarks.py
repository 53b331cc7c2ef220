"""A player that stays in this process, turns that are known, and short options, shared by tests of the benchmark."""

import json
from typing import Any

from seq2seq.benchmark.contenders import Contender
from seq2seq.benchmark.players import Case, Player, PlayerError
from seq2seq.benchmark.rounds import Results, Turn
from seq2seq.benchmark.worker import make_task
from seq2seq.errors import UserError

SHORT = ["--rounds", "2", "--threads", "1"]
TRAIN = [*SHORT, "--seconds", "0.05", "--batch-tokens", "128", "--warm-up", "1", "--vocab", "600"]


class Here(Player):
    """A worker that works in this process; orders and answers still go through JSON."""

    leads = True

    def __init__(self, contender: Contender, job: dict[str, Any]) -> None:
        super().__init__(contender.label, contender.threads)
        self.contender, self.job = contender, job

    def start(self) -> None:
        try:
            self.task = make_task(json.loads(json.dumps(self.job)))
        except UserError as error:
            raise PlayerError(str(error)) from None
        self.facts = json.loads(json.dumps(self.task.facts))

    def turn(self, number: int, case: Case) -> dict[str, Any]:
        measured = json.loads(json.dumps(self.task.turn({**case.order, "round": number})))
        self.finished = bool(measured.get("finished"))
        return measured

    def finish(self) -> None:
        self.final = json.loads(json.dumps(self.task.finish()))


class Steady(Player):
    """Its rate is the number of the round."""

    def turn(self, number: int, case: Case) -> dict[str, Any]:
        return {"rate": float(number)}


def results(less_is_better: bool = False) -> Results:
    """Rates by round: a 10, 20, 40; b 20, 30 and no third."""
    a, b = Steady("a"), Steady("b")
    rates = {"a": [10, 20, 40], "b": [20, 30]}
    turns = [
        Turn(name, "", number, {"rate": rate, "seconds": 2.0, "cpu_seconds": 3.0}, disturbed=name == "b")
        for name, values in rates.items()
        for number, rate in enumerate(values, 1)
    ]
    return Results([a, b], [Case("")], "rate", less_is_better, turns)


def cells(output: str, name: str) -> list[str]:
    """The cells of the first row of a table that begins with a name."""
    line = next(line for line in output.splitlines() if line.startswith(f"| {name} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]
