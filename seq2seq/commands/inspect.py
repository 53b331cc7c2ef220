"""`seq2seq inspect`: the attention of one sentence, and every view of the explorer."""

import argparse
from collections.abc import Callable
from typing import Any

from seq2seq.commands.common import OutputPath, check_parent, declare, model_option, write_file
from seq2seq.errors import UserError

ENDINGS = (".html", ".png", ".json")
MAPS = ("cross", "encoder", "decoder")
EXPLORER = (
    "contexts",
    "geometry",
    "steps",
    "example",
    "sides",
    "mask",
    "heads",
    "decoding",
    "cost",
    "recipe",
    "occlusion",
)


def add_inspect(commands: Any) -> None:
    """Declare `seq2seq inspect`."""
    parser = declare(
        commands,
        "inspect",
        inspect,
        "translate one sentence and show its attention",
        'seq2seq inspect "The bank was crowded near the river." --view steps --word bank --output steps.html',
    )
    parser.add_argument("text", metavar="TEXT", help="one sentence")
    model_option(parser)
    parser.add_argument(
        "--view",
        default="cross",
        metavar="NAME",
        help=f"a map: {', '.join(MAPS)} (default: cross); or a view of the explorer: {', '.join(EXPLORER)}",
    )
    parser.add_argument(
        "--layer",
        type=int,
        metavar="L",
        help="0-based; default: in a map the one that aligns best, or the last; in a view the middle",
    )
    parser.add_argument("--head", type=int, metavar="H", help="0-based; default: mean over heads, or head 0")
    parser.add_argument(
        "--output", action=OutputPath, metavar="FILE", help=".html, .png or .json (default: text, here)"
    )
    parser.add_argument("--beam-size", type=int, metavar="N", help="hypotheses kept; 1 is greedy")
    _explorer_options(parser.add_argument_group("views of the explorer"))


def _explorer_options(group: Any) -> None:
    group.add_argument("--kind", choices=MAPS, help="attention of geometry and steps (default: encoder)")
    group.add_argument("--word", metavar="W", help="that asks: a piece or its number from 0; of contexts, the word")
    group.add_argument("--key", metavar="W", help="that answers, in steps: a piece or its number from 0")
    group.add_argument("--beside", metavar="TEXT", help="second sentence with the word, of contexts")
    group.add_argument("--unscaled", action="store_true", help="steps without the division by sqrt(d_head)")
    group.add_argument("--until", type=int, metavar="N", help="step up to which decoding is shown")
    group.add_argument("--force", metavar="STEP=W, ...", help="words that decoding must write from a step (from 0) on")
    group.add_argument("--forbid", metavar="STEP=W, ...", help="words that decoding may not begin at a step")


def inspect(options: argparse.Namespace) -> None:
    """`seq2seq inspect`."""
    if options.output is not None:
        check_parent(options.output)
        if options.output.suffix.lower() not in ENDINGS:
            raise UserError(f"--output {options.output}: the name must end in {', '.join(ENDINGS)}")
    if options.view not in (*MAPS, *EXPLORER):
        raise UserError(f"--view {options.view!r} is not one of {', '.join((*MAPS, *EXPLORER))}")
    _check_taken(options)
    form = "" if options.output is None else options.output.suffix.lower()
    shown = _map(options, form) if options.view in MAPS else _explore(options, form)
    if options.output is None:
        print(shown.decode())
    else:
        write_file([shown], options.output)
        print(options.output)


def _check_taken(options: argparse.Namespace) -> None:
    """Refuse what a view would ignore."""
    from seq2seq.insight.gallery import VIEWS

    takes = VIEWS[options.view].takes if options.view in EXPLORER else frozenset({"layer", "head", "beam_size"})
    asked = {
        "--kind": (options.kind is not None, {"kind"}),
        "--layer": (options.layer is not None, {"layer"}),
        "--head": (options.head is not None, {"head"}),
        "--word": (options.word is not None, {"word", "asking"}),
        "--key": (options.key is not None, {"answering"}),
        "--beside": (options.beside is not None, {"beside"}),
        "--unscaled": (options.unscaled, {"scaled"}),
        "--until": (options.until is not None, {"until"}),
        "--force": (options.force is not None, {"force"}),
        "--forbid": (options.forbid is not None, {"forbid"}),
    }
    ignored = [name for name, (given, controls) in asked.items() if given and not controls & takes]
    if ignored:
        taken = [name for name, (_, controls) in asked.items() if controls & takes]
        raise UserError(f"--view {options.view} takes no {ignored[0]}: {', '.join(taken) or 'no option of its own'}")


def _map(options: argparse.Namespace, form: str) -> bytes:
    """One attention map."""
    from seq2seq.insight import views
    from seq2seq.insight.inspection import inspect as look
    from seq2seq.translation.translator import Translator

    writers: dict[str, Callable[[views.View], bytes]] = {
        "": lambda view: views.as_text(view).encode(),
        ".html": views.as_html,
        ".png": views.as_png,
        ".json": views.as_json,
    }
    found = look(Translator.from_pretrained(options.model), options.text, options.beam_size)
    return writers[form](views.choose(found, options.view, options.layer, options.head))


def _explore(options: argparse.Namespace, form: str) -> bytes:
    """A view of the explorer."""
    from seq2seq.insight.gallery import Exhibit, explore
    from seq2seq.translation.translator import Translator

    found = explore(
        Translator.from_pretrained(options.model),
        options.text,
        options.view,
        beside=options.beside,
        kind=options.kind or "encoder",
        layer=options.layer,
        head=options.head,
        word=options.word,
        key=options.key,
        scaled=not options.unscaled,
        beam_size=options.beam_size,
        until=options.until,
        force=options.force,
        forbid=options.forbid,
    )
    writers: dict[str, Callable[[Exhibit], bytes]] = {
        "": lambda exhibit: str(exhibit).encode(),
        ".html": Exhibit.html,
        ".png": Exhibit.png,
        ".json": Exhibit.json,
    }
    return writers[form](found)
