"""How well attention goes with occlusion: every layer and head, over a split.

python scripts/occlusion.py --model en-fr --dataset tatoeba --split test
"""

import argparse
import sys

from seq2seq.benchmark.tables import markdown
from seq2seq.commands.common import model_option
from seq2seq.config import DataConfig
from seq2seq.data.corpus import load_split
from seq2seq.data.splits import group_references
from seq2seq.errors import UserError, exit_status
from seq2seq.insight.occlusion import agreements
from seq2seq.translation.translator import Translator

PROGRAM = "occlusion"


def run() -> None:
    """Read the command line and do it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    model_option(parser)
    parser.add_argument("--dataset", default="tatoeba", metavar="NAME", help="sample, tatoeba (default) or multi30k")
    parser.add_argument("--split", default="test", choices=("dev", "test"), help="default: test")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N sentences")
    options = parser.parse_args()
    if options.limit is not None and options.limit < 1:
        raise UserError(f"--limit {options.limit} must be at least 1")
    translator = Translator.from_pretrained(options.model)
    data = DataConfig(dataset=options.dataset, source=translator.info.source, target=translator.info.target)
    examples = group_references(load_split(data, options.split))[: options.limit]
    results = translator.translate([example.source for example in examples])
    sentences = [sentence for result in results for sentence in result.sentences]
    found = agreements(translator.engine, sentences)
    rows = [[name, f"{one.correlation:.2f}", f"{100 * one.same_word:.0f} %"] for name, one in found.items()]
    print(f"{len(sentences):,} sentences, {next(iter(found.values())).target_words:,} target words\n")
    print(markdown(("cross-attention", "rank correlation", "same source word"), rows))


if __name__ == "__main__":
    sys.exit(exit_status(PROGRAM, run))
