"""`seq2seq inspect`: the attention of one sentence."""

import argparse
from collections.abc import Callable
from typing import Any

from seq2seq.commands.common import OutputPath, check_parent, declare, model_option, write_file
from seq2seq.errors import UserError


def add_inspect(commands: Any) -> None:
    """Declare `seq2seq inspect`."""
    parser = declare(
        commands,
        "inspect",
        inspect,
        "translate one sentence and show its attention",
        'seq2seq inspect "The bank was crowded near the river." --output map.html',
    )
    parser.add_argument("text", metavar="TEXT", help="one sentence")
    model_option(parser)
    parser.add_argument("--view", default="cross", help="cross (default), encoder or decoder")
    parser.add_argument("--layer", type=int, metavar="L", help="0-based; default: the layer that aligns best")
    parser.add_argument("--head", type=int, metavar="H", help="0-based; default: mean over heads")
    parser.add_argument(
        "--output", action=OutputPath, metavar="FILE", help=".html, .png or .json (default: a table here)"
    )
    parser.add_argument("--beam-size", type=int, metavar="N", help="hypotheses kept; 1 is greedy")


def inspect(options: argparse.Namespace) -> None:
    """`seq2seq inspect`."""
    from seq2seq.insight import views
    from seq2seq.insight.inspection import inspect as look
    from seq2seq.translation.translator import Translator

    writers: dict[str, Callable[[views.View], bytes]] = {
        ".html": views.as_html,
        ".png": views.as_png,
        ".json": views.as_json,
    }
    if options.output is not None:
        check_parent(options.output)
        if options.output.suffix not in writers:
            raise UserError(f"--output {options.output}: the name must end in {', '.join(writers)}")
    found = look(Translator.from_pretrained(options.model), options.text, options.beam_size)
    view = views.choose(found, options.view, options.layer, options.head)
    if options.output is None:
        print(views.as_text(view))
    else:
        write_file([writers[options.output.suffix](view)], options.output)
        print(options.output)
