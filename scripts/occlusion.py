"""How well attention goes with occlusion: every layer and head, over a split.

python scripts/occlusion.py --model en-fr --dataset tatoeba --split test
"""

import argparse
import sys

from seq2seq.benchmark.tables import markdown
from seq2seq.commands.common import load_examples, model_option, split_options
from seq2seq.errors import exit_status
from seq2seq.insight.occlusion import agreements
from seq2seq.translation.translator import Translator

PROGRAM = "occlusion"


def run() -> None:
    """Read the command line and do it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    model_option(parser)
    split_options(parser)
    options = parser.parse_args()
    translator = Translator.from_pretrained(options.model)
    examples, name = load_examples(options, translator.info)
    results = translator.translate([example.source for example in examples])
    sentences = [sentence for result in results for sentence in result.sentences]
    found = agreements(translator.engine, sentences)
    rows = [[head, f"{one.correlation:.2f}", f"{100 * one.same_word:.0f} %"] for head, one in found.items()]
    words = next(iter(found.values())).target_words
    print(f"{name[0].upper()}{name[1:]}: {len(sentences):,} sentences, {words:,} target words\n")
    print(markdown(("cross-attention", "rank correlation", "same source word"), rows))


if __name__ == "__main__":
    sys.exit(exit_status(PROGRAM, run))
