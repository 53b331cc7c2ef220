"""The `seq2seq` command. Results go to stdout, everything else to stderr; each subcommand imports what it needs.

Exit status: 0 done, 1 a user's error in one line, 2 wrong usage, 130 interrupted.
"""

import argparse
import sys
from collections.abc import Sequence

from seq2seq import __version__
from seq2seq.commands.align import add_align
from seq2seq.commands.data import add_data
from seq2seq.commands.demo import add_demo
from seq2seq.commands.evaluate import add_evaluate
from seq2seq.commands.export import add_export
from seq2seq.commands.inspect import add_inspect
from seq2seq.commands.score import add_score
from seq2seq.commands.serve import add_serve
from seq2seq.commands.train import add_average, add_train
from seq2seq.commands.translate import add_translate
from seq2seq.errors import exit_status


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    return exit_status("seq2seq", lambda: run(arguments))


def run(arguments: Sequence[str] | None) -> None:
    """The subcommand that the arguments name."""
    options = build_parser().parse_args(arguments)
    options.run(options)


def build_parser() -> argparse.ArgumentParser:
    """All subcommands and their options."""
    parser = argparse.ArgumentParser(
        prog="seq2seq", description="Train, use, score and look into a small translation Transformer."
    )
    parser.add_argument("--version", action="version", version=f"seq2seq {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    first = (add_train, add_data, add_translate, add_evaluate, add_score)
    for add in (*first, add_align, add_average, add_export, add_inspect, add_serve, add_demo):
        add(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
