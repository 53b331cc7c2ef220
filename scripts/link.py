"""Word links of training pairs by two models, as `source TAB target TAB links`, for `train.links` of a recipe.

python scripts/link.py configs/en-fr.toml --model en-fr --reverse runs/fr-en/model --output links.tsv
"""

import argparse
import sys

from seq2seq.commands.common import OutputPath, check_parent
from seq2seq.config import load_recipe
from seq2seq.errors import UserError, exit_status
from seq2seq.training.linking import link
from seq2seq.translation.link_sets import SYMMETRISE

PROGRAM = "link"


def run() -> None:
    """Read the command line and do it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("recipe", metavar="CONFIG", help="TOML recipe whose training pairs are linked")
    parser.add_argument("--model", required=True, metavar="M", help="model of the recipe's direction")
    parser.add_argument("--reverse", required=True, metavar="M", help="model of the other direction")
    parser.add_argument("--output", action=OutputPath, required=True, metavar="FILE.tsv", help="where to write")
    parser.add_argument("--symmetrise", choices=list(SYMMETRISE), default="grow-diag-final-and", help="both directions")
    options = parser.parse_args()
    check_parent(options.output)
    if options.output.suffix != ".tsv":
        raise UserError(f"--output {options.output} must end in .tsv: it is a table of source, target and links")
    count = link(load_recipe(options.recipe).data, options.model, options.reverse, options.output, options.symmetrise)
    print(f"{PROGRAM}: {count:,} pairs in {options.output}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(exit_status(PROGRAM, run))
