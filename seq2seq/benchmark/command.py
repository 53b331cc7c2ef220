"""`scripts/benchmark.py`: measure, print the tables, write every number down."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seq2seq.benchmark import machine
from seq2seq.benchmark.options import build_parser, check
from seq2seq.benchmark.tables import header, notes
from seq2seq.errors import UserError, exit_status
from seq2seq.storage import write_text

PROGRAM = "benchmark"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; returns its exit status, as `seq2seq` has it."""
    return exit_status(PROGRAM, lambda: run(build_parser().parse_args(arguments)))


def run(options: argparse.Namespace) -> None:
    """The tables go to stdout as they come, everything to the JSON file."""
    check(options)
    options.say = say
    facts = machine.facts(options.threads)
    kinds = (str, int, float, list, Path)
    settings = {name: value for name, value in vars(options).items() if isinstance(value, kinds)}
    measured: dict[str, Any] = {}
    record = {"machine": facts, "settings": settings, "results": measured}
    print(header(facts), flush=True)
    failed = None
    for section in options.compare(options):
        results = section.results
        failed = failed or next((player for player in results.players if player.error), None)
        if not results.turns:
            continue
        remarks = [*section.remarks, *notes(results)]
        blocks = [f"### {section.title}", section.table, *(["\n".join(remarks)] if remarks else [])]
        print("\n" + "\n\n".join(blocks), flush=True)
        measured[section.name] = results.as_json()
        if options.json is not None:
            write_text(options.json, json.dumps(record, indent=1, ensure_ascii=False, default=str) + "\n")
    if failed:
        much = "not everything" if measured else "nothing"
        raise UserError(f"{much} was measured: {failed.label}: {failed.error}")


def say(message: str) -> None:
    """One line to the person who waits."""
    print(f"{PROGRAM}: {message}", file=sys.stderr, flush=True)
