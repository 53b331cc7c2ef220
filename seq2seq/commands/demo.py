"""`seq2seq demo`."""

import argparse
from typing import Any

from seq2seq.commands.common import declare, model_option


def add_demo(commands: Any) -> None:
    """Declare `seq2seq demo`."""
    parser = declare(
        commands, "demo", demo, "open the page: translations next to their attention", "seq2seq demo --port 7860"
    )
    model_option(parser)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    parser.add_argument("--port", type=int, default=7860, help="port (default: 7860)")


def demo(options: argparse.Namespace) -> None:
    """`seq2seq demo`."""
    from seq2seq.translation.translator import Translator

    translator = Translator.from_pretrained(options.model)
    from seq2seq.demo import launch

    launch(translator, host=options.host, port=options.port)
