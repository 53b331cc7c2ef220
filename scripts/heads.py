"""What every attention head of a model does over a split, and the BLEU that is lost without it.

python scripts/heads.py --model en-fr --dataset tatoeba --split test
"""

import argparse
import sys
from functools import partial

from tqdm import tqdm

from seq2seq.commands.common import model_option
from seq2seq.config import DataConfig
from seq2seq.data.corpus import load_split
from seq2seq.data.splits import group_references
from seq2seq.errors import UserError, exit_status
from seq2seq.folder import HEADS, find_model
from seq2seq.insight.heads import survey
from seq2seq.storage import write_file
from seq2seq.translation.translator import Translator

PROGRAM = "heads"


def run() -> None:
    """Read the command line, survey the heads, and write `heads.json` into the model folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    model_option(parser)
    parser.add_argument("--dataset", default="tatoeba", metavar="NAME", help="sample, tatoeba (default) or multi30k")
    parser.add_argument("--split", default="test", choices=("dev", "test"), help="default: test")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N sentences")
    options = parser.parse_args()
    if options.limit is not None and options.limit < 1:
        raise UserError(f"--limit {options.limit} must be at least 1")
    folder = find_model(options.model)
    translator = Translator.from_pretrained(folder)
    data = DataConfig(dataset=options.dataset, source=translator.info.source, target=translator.info.target)
    examples = group_references(load_split(data, options.split))[: options.limit]
    part = "" if options.limit is None else f"the first {options.limit} sentences of "
    name = f"{part}the {options.split} split of {options.dataset}"
    found = survey(translator, examples, name, partial(tqdm, unit="head", disable=None))
    write_file(folder / HEADS, [(found.model_dump_json(indent=1) + "\n").encode()])
    print(folder / HEADS)


if __name__ == "__main__":
    sys.exit(exit_status(PROGRAM, run))
