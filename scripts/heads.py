"""What every attention head of a model does over a split, and the BLEU that is lost without it.

python scripts/heads.py --model en-fr --dataset tatoeba --split test
"""

import argparse
import sys
from functools import partial

from tqdm import tqdm

from seq2seq.commands.common import load_examples, model_option, split_options
from seq2seq.errors import exit_status
from seq2seq.folder import HEADS, find_model
from seq2seq.insight.heads import survey
from seq2seq.storage import write_file
from seq2seq.translation.translator import Translator

PROGRAM = "heads"


def run() -> None:
    """Read the command line, survey the heads, and write `heads.json` into the model folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    model_option(parser)
    split_options(parser)
    options = parser.parse_args()
    folder = find_model(options.model)
    translator = Translator.from_pretrained(folder)
    examples, name = load_examples(options, translator.info)
    found = survey(translator, examples, name, partial(tqdm, unit="head", disable=None))
    write_file(folder / HEADS, [(found.model_dump_json(indent=1) + "\n").encode()])
    print(folder / HEADS)


if __name__ == "__main__":
    sys.exit(exit_status(PROGRAM, run))
