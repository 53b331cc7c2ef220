"""Which cross-attention is read as word links: that which agrees most with the links of a model of the other direction.

Chosen on pairs of a split, without gold links; where there are some, its error rate is measured. Written into
`config.json`.

python scripts/choose_attention.py --model en-fr --reverse fr-en --gold tests/data/alignment/everyday
"""

import argparse
import sys
from pathlib import Path

from seq2seq.commands.align import open_reverse, read_gold_file, read_pairs
from seq2seq.commands.common import load_examples, model_option, split_options
from seq2seq.errors import exit_status
from seq2seq.folder import CONFIG, AlignmentChoice, find_model, write_info
from seq2seq.translation.aligner import choose_by_agreement, force, force_both
from seq2seq.translation.engine import Engine, open_engine
from seq2seq.translation.link_sets import error_rate, turn

PROGRAM = "choose_attention"
PAIRS = 1000  # on which the choice is made, at most


def run() -> None:
    """Read the command line, choose, measure, and write the choice."""
    options = _parser().parse_args()
    folder = find_model(options.model)
    engine = open_engine(folder, "torch")
    reverse = open_reverse(options.reverse, engine.info)
    examples, name = load_examples(options, engine.info)
    pairs = [(example.source, example.references[0]) for example in examples[:PAIRS]]
    choice, theirs = choose_by_agreement((engine.info, reverse.info), *force_both((engine, reverse), pairs))
    print(f"{len(pairs):,} pairs of {name}: {choice.said()}\n(of the other direction: {theirs.said()})")
    if options.gold:
        aer = round(measure(engine, choice, options.gold, options.turned), 1)
        choice = choice.model_copy(update={"aer": aer, "gold": Path(options.gold).name})
        print(f"AER {aer} % on {options.gold}")
    write_info(folder, engine.info.model_copy(update={"alignment": choice}))
    print(f"{PROGRAM}: written into {folder / CONFIG}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    model_option(parser)
    parser.add_argument("--reverse", required=True, metavar="M", help="model of the other direction")
    split_options(parser, "dev")
    parser.add_argument("--gold", metavar="STEM", help="STEM.en, STEM.fr (as the languages are) and STEM.gold: links")
    parser.add_argument("--turned", action="store_true", help="the gold links lead from target words to source words")
    return parser


def measure(engine: Engine, choice: AlignmentChoice, stem: str, turned: bool) -> float:
    """Alignment error rate of a choice on gold links, in percent."""
    source, target, gold = (Path(f"{stem}.{end}") for end in (engine.info.source, engine.info.target, "gold"))
    pairs = read_pairs(source, target)
    links = [one.links(choice) for one in force(engine, pairs)]
    if turned:
        pairs, links = [(target, source) for source, target in pairs], list(map(turn, links))
    return round(100 * error_rate(links, read_gold_file(gold, pairs)).aer, 1)


if __name__ == "__main__":
    sys.exit(exit_status(PROGRAM, run))
