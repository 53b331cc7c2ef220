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
from seq2seq.errors import UserError
from seq2seq.storage import write_text


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; returns its exit status, as `seq2seq` has it."""
    options = build_parser().parse_args(arguments)
    try:
        check(options)
        run(options)
    except UserError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    except OSError as error:
        say(f"{error.filename or 'system'}: {error.strerror or error}")
        return 1
    return 0


def run(options: argparse.Namespace) -> None:
    """The tables go to stdout as they come, everything to the JSON file."""
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
    print(f"benchmark: {message}", file=sys.stderr, flush=True)
