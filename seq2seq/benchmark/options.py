"""The options of `scripts/benchmark.py`."""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from seq2seq.benchmark import comparisons, machine
from seq2seq.benchmark.comparisons import Section
from seq2seq.errors import UserError

DESCRIPTION = """\
Measure the speed of training and translating on this machine: our settings against each other and against any peer
that is installed. Every contender is a process of its own that prepares itself and then sleeps but for its turns;
round by round they take turns, and the ratios are those of turns of one round. A turn in which something else had
the processor is told. The tables (Markdown) go to stdout, progress to stderr, every number to --json FILE."""

EPILOG = """\
contenders: NAME[:PRECISION][:threads=N][:preload=LIBRARY ...], with commas between them; the first is the yardstick
  train       ours (auto, float32, bfloat16), torch (its nn.Transformer), hf (transformers' Marian)
  translate   ours, ctranslate2 (float32, int8), ct2-by-hand (CTranslate2 without our Translator)
  preload=    sets LD_PRELOAD of its process, for an allocator such as libtcmalloc_minimal.so.4; none clears it

peers: --peer NAME=COMMAND runs a shell command once a round. Of its output the lines that are JSON objects count; the
  last that has target_tokens_per_s (train), or sentences_per_s and the right beam (translate), is its turn. Its other
  numbers (seconds, cpu_seconds, threads, loss, bleu, mean_tokens_per_step ...) are kept in --json FILE. For example
  --peer "marian=env PEERS=/opt/peers WORK=/tmp/work DATA=data/multi30k peers/run.sh marian train 15s"

examples:
  python scripts/benchmark.py all
  python scripts/benchmark.py train --contenders ours:float32,ours:bfloat16,torch --size small --rounds 7
  python scripts/benchmark.py train --dataset multi30k --updates 500 --contenders ours,torch,hf
  python scripts/benchmark.py translate --beam-size 1 5 --source test.en --reference test.fr --json speed.json"""

COUNTS = ("rounds", "threads", "updates", "batch_tokens", "warm_up", "rows", "alone", "tokens", "vocab")
TRAINERS, TRANSLATORS = "ours,ours:float32,torch, hf if it is installed", "ours, ctranslate2 if it is installed"
Compare = Callable[[argparse.Namespace], Iterator[Section]]


def build_parser() -> argparse.ArgumentParser:
    """A subcommand for each thing that can be measured."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("benchmark.py", description=DESCRIPTION, epilog=EPILOG, formatter_class=form)
    commands = parser.add_subparsers(title="what to measure", metavar="WHAT", required=True)

    everything = _declare(commands, "all", comparisons.everything, "train, translate and latency, briefly", 3)
    _training_options(everything, seconds=3)
    _translating_options(everything, beams=[1, 5])

    train = _declare(commands, "train", comparisons.train, "target tokens a second in training")
    _training_options(train, seconds=5)
    train.add_argument("--data", nargs="+", metavar="FILE", help="source and target, or one .tsv ..., not --dataset")
    train.add_argument("--updates", type=int, metavar="N", help="go on until every contender has done so many")
    _contender_options(train, TRAINERS, peers=True)

    translate = _declare(commands, "translate", comparisons.translate, "sentences a second in translating")
    _translating_options(translate, beams=[1, 5])
    _text_options(translate)
    _contender_options(translate, TRANSLATORS, peers=True)

    latency = _declare(commands, "latency", comparisons.latency, "one sentence at a time; the whole process")
    _translating_options(latency, beams=[5])
    _text_options(latency)
    _contender_options(latency, TRANSLATORS)
    latency.add_argument("--alone", type=int, default=20, metavar="N", help="sentences a turn (default: 20)")

    length = _declare(commands, "length", comparisons.length, "cost of a token by the length of the target", 3)
    _model_option(length)
    length.add_argument("--rows", type=int, default=4, metavar="N", help="sentences at once (default: 4)")
    length.add_argument("--lengths", type=int, nargs="+", default=[16, 32, 64, 128, 256], metavar="N")

    peak = _declare(commands, "peak", comparisons.peak_products, "the processor's best in products of matrices", 3)
    _size_option(peak)
    _seconds_option(peak, 0.5)
    peak.add_argument("--tokens", type=int, default=4096, metavar="N", help="rows of the model's products")
    peak.add_argument("--vocab", type=int, default=10_000, metavar="N", help="columns of the scores")
    _contender_options(peak, "float32,bfloat16")
    return parser


def _declare(commands: Any, name: str, compare: Compare, summary: str, rounds: int = 5) -> argparse.ArgumentParser:
    """A subcommand with the options that all of them share, and what the comparisons find of those that it lacks."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=summary, description=f"{summary}.".capitalize())
    absent: dict[str, Any] = {
        "contenders": None,
        "peer": [],
        "data": None,
        "updates": None,
        "source": None,
        "reference": None,
    }
    parser.set_defaults(compare=compare, what=name, alone=20, **absent)
    add = parser.add_argument
    add("--rounds", type=int, default=rounds, metavar="N", help=f"turns of each contender (default: {rounds})")
    add("--threads", type=int, metavar="N", help="of every contender that names none (default: as torch has it)")
    add("--json", type=Path, metavar="FILE", help="write every number of every round")
    return parser


def _contender_options(parser: argparse.ArgumentParser, default: str, peers: bool = False) -> None:
    parser.add_argument("--contenders", metavar="A,B", help=f"who competes (default: {default})")
    if peers:
        parser.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND", help="another program")


def _model_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", metavar="M", help="model folder, bundled name or hub id (default: en-fr, bundled)")


def _size_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--size", choices=("tiny", "small"), default="tiny", help="d_model 128 or 256 (default: tiny)")


def _seconds_option(parser: argparse.ArgumentParser, seconds: float) -> None:
    parser.add_argument("--seconds", type=float, default=seconds, metavar="S", help=f"a turn (default: {seconds:g})")


def _training_options(parser: argparse.ArgumentParser, seconds: float) -> None:
    add = parser.add_argument
    _size_option(parser)
    _seconds_option(parser, seconds)
    add("--batch-tokens", type=int, default=4096, metavar="N", help="padded tokens of a batch (default: 4096)")
    add("--vocab", type=int, metavar="N", help="pieces (default: 1500 of the sample, else 10000)")
    add("--warm-up", type=int, default=5, metavar="N", help="updates before the first turn (default: 5)")
    names = ("sample", "tatoeba", "multi30k")
    add("--dataset", choices=names, default="sample", help="sentence pairs (default: sample, in the package)")


def _translating_options(parser: argparse.ArgumentParser, beams: list[int]) -> None:
    add = parser.add_argument
    _model_option(parser)
    add("--beam-size", type=int, nargs="+", default=beams, metavar="N", help=f"(default: {' '.join(map(str, beams))})")
    add("--sentences", type=int, default=200, metavar="N", help="at most, evenly spaced; 0 is all (default: 200)")


def _text_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    names = ("sample", "tatoeba", "multi30k")
    add("--dataset", choices=names, default="sample", help="whose test split (default: sample, in the package)")
    add("--source", type=Path, metavar="FILE", help="sentences, one a line, not --dataset")
    add("--reference", type=Path, metavar="FILE", help="their translations, for BLEU")


def check(options: argparse.Namespace) -> None:
    """Refuse numbers that mean nothing before anything starts."""
    values = vars(options)
    for name in (*COUNTS, "beam_size", "lengths"):
        given = values.get(name)
        wrong = [value for value in (given if isinstance(given, list) else [given]) if value is not None and value < 1]
        if wrong:
            raise UserError(f"--{name.replace('_', '-')} {wrong[0]} is not 1 or more")
    if values.get("seconds") is not None and not options.seconds > 0:
        raise UserError(f"--seconds {options.seconds:g} is not above 0")
    if values.get("sentences", 0) < 0:
        raise UserError(f"--sentences {options.sentences} is not 0 or more")
    if options.updates is not None and options.updates <= options.warm_up:
        raise UserError(f"--updates {options.updates} is not above --warm-up {options.warm_up}")
    if options.json is not None and not options.json.resolve().parent.is_dir():
        raise UserError(f"--json {options.json}: folder {options.json.parent} does not exist")
    if options.json is not None and options.json.is_dir():
        raise UserError(f"--json {options.json} is a folder, not a file")
    options.threads = options.threads or machine.default_threads()
