"""The process of one contender: it prepares its task, then answers orders, a line of JSON each, until they end."""

import json
import os
import sys
from collections.abc import Callable
from typing import IO, Any, Protocol

from seq2seq.errors import UserError

Values = dict[str, Any]


class Task(Protocol):
    """The work of one contender, prepared."""

    facts: Values  # about it: threads, precision, parameters ...

    def turn(self, order: Values) -> Values:
        """Do the work of one turn; what was measured."""

    def finish(self) -> Values:
        """What is measured once, after all turns."""


def make_task(job: Values) -> Task:
    """The task that a job asks for; imports what it needs and no more."""
    kind, values = job["task"], {name: value for name, value in job.items() if name != "task"}
    make: Callable[..., Task]
    if kind == "train":
        from seq2seq.benchmark.training import Training as make  # noqa: N813
    elif kind == "translate":
        from seq2seq.benchmark.translating import Translating as make  # noqa: N813
    elif kind == "length":
        from seq2seq.benchmark.lengths import Lengths as make  # noqa: N813
    else:
        from seq2seq.benchmark.peak import Products as make  # noqa: N813
    return make(**values)


def serve(orders: IO[str], answers: IO[str]) -> None:
    """The first order is the job; an empty one asks for what `finish` measures. A user's error is an answer, too."""

    def answer(values: Values) -> None:
        answers.write(json.dumps(values) + "\n")
        answers.flush()

    try:
        task = make_task(json.loads(orders.readline()))
        answer(task.facts)
        for line in orders:
            order = json.loads(line)
            answer(task.turn(order) if order else task.finish())
    except UserError as error:
        answer({"error": str(error)})


def main() -> None:
    """Serve stdin and stdout; whatever a library prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve(sys.stdin, answers)


if __name__ == "__main__":
    main()
