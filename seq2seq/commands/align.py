"""`seq2seq align`: which word belongs to which, in sentence pairs that are there already."""

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seq2seq.folder import AlignmentChoice, ModelInfo
    from seq2seq.translation.aligner import Forced
    from seq2seq.translation.engine import Engine
    from seq2seq.translation.link_sets import ErrorRate, Gold, LinkSet
    from seq2seq.translation.refinement import Reading

from seq2seq.commands.common import OutputPath, check_parent, declare, model_option, write_lines
from seq2seq.errors import UserError
from seq2seq.translation.link_sets import SYMMETRISE

CHUNK = 256  # pairs that are forced together
READING = ("layer", "head", "step", "reverse", "symmetrise")  # options that say how one set of links comes about

TokenPair = tuple[list[str], list[str]]


def add_align(commands: Any) -> None:
    """Declare `seq2seq align`."""
    parser = declare(
        commands,
        "align",
        align,
        "link the words of given sentence pairs: Pharaoh's i-j, counted from 0",
        "seq2seq align --source test.en --target test.fr > links\n"
        "  seq2seq align --source test.en --target test.fr --gold test.gold",
    )
    model_option(parser)
    parser.add_argument("--source", type=Path, required=True, metavar="FILE", help="words separated by spaces")
    parser.add_argument("--target", type=Path, required=True, metavar="FILE", help="their translations, line by line")
    parser.add_argument("--reverse", metavar="M", help="a model of the other direction, that is read as well")
    parser.add_argument(
        "--symmetrise",
        choices=list(SYMMETRISE),
        help="how the links from source to target and those back are joined (default: grow-diag-final-and)",
    )
    parser.add_argument(
        "--plain", action="store_true", help="what attention draws on most, not refined by order, likeness, other pairs"
    )
    parser.add_argument("--layer", type=int, metavar="N", help="decoder layer that is read (default: the model's own)")
    parser.add_argument("--head", type=int, metavar="N", help="head of --layer that is read (default: their mean)")
    parser.add_argument(
        "--step", choices=("output", "input"), help="read where a word is predicted, or where it is the newest word"
    )
    parser.add_argument("--output", action=OutputPath, metavar="FILE", help="write the links; it appears when complete")
    parser.add_argument("--gold", type=Path, metavar="FILE", help="print AER against 1-2 (sure) and 1p2 (possible)")
    parser.add_argument("--table", action="store_true", help="with --gold: AER of every layer, head and step")


def align(options: argparse.Namespace) -> None:
    """`seq2seq align`."""
    from seq2seq.translation.engine import open_engine
    from seq2seq.translation.link_sets import error_rate, write_links

    if options.output:
        check_parent(options.output)
    _check(options)
    pairs = read_pairs(options.source, options.target)
    gold = None if options.gold is None else read_gold_file(options.gold, pairs)
    engine = open_engine(options.model, "torch")
    if options.table and gold is not None:
        write_lines(_table(engine, pairs, gold), options.output)
        return
    choice = _choice(engine.info, options)
    reverse = None if options.reverse is None else open_reverse(options.reverse, engine.info)
    links_of = _plain if options.plain else _refined
    found = links_of(engine, choice, reverse, pairs, options.symmetrise or "grow-diag-final-and")
    if gold is None:
        write_lines(map(write_links, found), options.output)
        return
    links = list(found)
    if options.output:
        write_lines(map(write_links, links), options.output)
    print(_shown(error_rate(links, gold)))


# What goes in.


def _check(options: argparse.Namespace) -> None:
    if options.table and options.gold is None:
        raise UserError("--table needs --gold")
    if options.table and (given := [name for name in READING if getattr(options, name) is not None]):
        raise UserError(f"--table shows every layer, head and step: it takes no --{given[0]}")
    if options.symmetrise is not None and options.plain and options.reverse is None:
        raise UserError("--symmetrise joins two directions: with --plain it needs --reverse")
    if options.head is not None and options.layer is None:
        raise UserError("--head needs --layer")


def _words(line: str) -> list[str]:
    """What stands between spaces or tabs, and nothing else: a no-break space is part of a word."""
    return [word for word in re.split("[ \t]", line) if word]


def read_pairs(source: Path, target: Path) -> list[TokenPair]:
    """The words of line-parallel files."""
    from seq2seq.data.files import read_lines
    from seq2seq.translation.aligner import MOST_WORDS

    sources, targets = list(read_lines(source)), list(read_lines(target))
    if len(sources) != len(targets):
        files = f"--source {source} has {len(sources)} lines, --target {target}"
        raise UserError(f"{files} has {len(targets)}: they must be line-parallel")
    pairs = [(_words(one), _words(other)) for one, other in zip(sources, targets, strict=True)]
    for number, pair in enumerate(pairs, 1):
        if max(map(len, pair)) > MOST_WORDS:
            raise UserError(f"line {number} has over {MOST_WORDS:,} words: align its sentences one by one")
    return pairs


def read_gold_file(path: Path, pairs: Sequence[TokenPair]) -> "list[Gold]":
    """The gold links of pairs, a line each."""
    from seq2seq.data.files import read_lines
    from seq2seq.translation.link_sets import read_gold

    lines = list(read_lines(path))
    if len(lines) != len(pairs):
        raise UserError(f"--gold {path} has {len(lines)} lines, --source has {len(pairs)}")
    gold = []
    for number, (line, (source, target)) in enumerate(zip(lines, pairs, strict=True), 1):
        try:
            gold.append(read_gold(line))
        except UserError as error:
            raise UserError(f"--gold {path}, line {number}: {error}") from None
        if any(i >= len(source) or j >= len(target) for i, j in gold[-1].possible):
            counts = f"{len(source)} and {len(target)} words"
            raise UserError(f"--gold {path}, line {number}: a link leads outside the {counts} of the pair")
    return gold


def _choice(info: "ModelInfo", options: argparse.Namespace) -> "AlignmentChoice":
    """The attention that is read: the model's own choice, but for what the options say."""
    own, layers, heads = info.aligning, info.model.decoder_layers, info.model.heads
    for name, value, count in (("--layer", options.layer, layers), ("--head", options.head, heads)):
        if value is not None and not 0 <= value < count:
            raise UserError(f"{name} {value} is not between 0 and {count - 1}")
    layer, head = (own.layer, own.head) if options.layer is None else (options.layer, options.head)
    return info.alignment_at(layer, head, options.step or own.step)


def open_reverse(name: str, info: "ModelInfo") -> "Engine":
    """The model of --reverse; refused if it does not translate the other way round."""
    from seq2seq.translation.engine import open_engine

    reverse = open_engine(name, "torch")
    if (reverse.info.source, reverse.info.target) != (info.target, info.source):
        languages = f"{reverse.info.source}-{reverse.info.target}"
        raise UserError(f"--reverse {name} translates {languages}, not {info.target}-{info.source}")
    return reverse


# Links.


def _forced(engine: "Engine", pairs: Sequence[TokenPair]) -> "Iterator[Forced]":
    from seq2seq.translation.aligner import force

    for start in range(0, len(pairs), CHUNK):
        yield from force(engine, pairs[start : start + CHUNK])


def _plain(
    engine: "Engine", choice: "AlignmentChoice", reverse: "Engine | None", pairs: Sequence[TokenPair], rule: str
) -> "Iterator[LinkSet]":
    """Links of every pair as attention has them, by one direction or both."""
    from seq2seq.translation.link_sets import turn

    there = (one.links(choice) for one in _forced(engine, pairs))
    if reverse is None:
        return there
    theirs = reverse.info.aligning
    back = (turn(one.links(theirs)) for one in _forced(reverse, [pair[::-1] for pair in pairs]))
    return map(SYMMETRISE[rule], there, back)


def _refined(
    engine: "Engine", choice: "AlignmentChoice", reverse: "Engine | None", pairs: Sequence[TokenPair], rule: str
) -> "Iterator[LinkSet]":
    """Links of every pair in the light of all of them."""
    from seq2seq.translation.refinement import refine

    backward = None
    if reverse is not None:
        backward = _readings(reverse, reverse.info.aligning, [pair[::-1] for pair in pairs])
    return iter(refine(_readings(engine, choice, pairs), backward, rule))


def _readings(engine: "Engine", choice: "AlignmentChoice", pairs: Sequence[TokenPair]) -> "list[Reading]":
    from seq2seq.translation.refinement import Reading

    forced = _forced(engine, pairs)
    return [Reading(one.word_attention(choice), one.source.words, one.target.words) for one in forced]


def _table(engine: "Engine", pairs: Sequence[TokenPair], gold: "Sequence[Gold]") -> Iterator[str]:
    """AER of each layer, head and step, as a table."""
    from seq2seq.translation.aligner import STEPS
    from seq2seq.translation.link_sets import error_rate

    forced = list(_forced(engine, pairs))
    heads = [None, *range(engine.info.model.heads)]
    yield "| layer | step | mean | " + " | ".join(f"head {head}" for head in heads[1:]) + " |"
    yield "|---:|---|" + "---:|" * len(heads)
    for layer in range(engine.info.model.decoder_layers):
        for step in STEPS:
            choices = [engine.info.alignment_at(layer, head, step) for head in heads]
            rates = [error_rate([one.links(choice) for one in forced], gold).aer for choice in choices]
            yield f"| {layer} | {step} | " + " | ".join(f"{100 * rate:.1f}" for rate in rates) + " |"


def _shown(rate: "ErrorRate") -> str:
    return f"AER       {100 * rate.aer:5.1f}\nprecision {100 * rate.precision:5.1f}\nrecall    {100 * rate.recall:5.1f}"
