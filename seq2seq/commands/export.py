"""`seq2seq export`: a model in the form of another engine."""

import argparse
from typing import Any

from seq2seq.commands.common import OutputPath, declare, model_option


def add_export(commands: Any) -> None:
    """Declare `seq2seq export`."""
    parser = declare(
        commands,
        "export",
        export,
        "write a model folder that an engine for servers loads as it is",
        "seq2seq export --format ctranslate2 --quantization int8 --output fast/\n"
        "  seq2seq translate --model fast/ --engine ctranslate2 < english.txt",
    )
    model_option(parser)
    parser.add_argument("--format", required=True, choices=["ctranslate2"], help="of the engine")
    parser.add_argument("--output", action=OutputPath, required=True, metavar="DIR", help="new model folder")
    parser.add_argument(
        "--quantization",
        default="float32",
        metavar="Q",
        help="float32 (default) or int8: smaller and faster, less exact",
    )


def export(options: argparse.Namespace) -> None:
    """`seq2seq export`."""
    from seq2seq.folder import find_model
    from seq2seq.translation.conversion import export as write

    write(find_model(options.model), options.output, options.quantization)
    print(options.output)
