"""Word links of training pairs, as `source TAB target TAB links`, for `train.links` of a recipe.

python scripts/link.py configs/en-fr.toml --model en-fr --reverse fr-en --output links.tsv  # by two models
python scripts/link.py configs/en-fr.toml --eflomal --output links.tsv                      # by a statistical aligner
"""

import argparse
import sys

from seq2seq.commands.common import OutputPath, check_parent
from seq2seq.config import load_recipe
from seq2seq.errors import UserError, exit_status
from seq2seq.training.linking import link_by_eflomal, link_by_models
from seq2seq.translation.link_sets import SYMMETRISE

PROGRAM = "link"


def run() -> None:
    """Read the command line and do it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("recipe", metavar="CONFIG", help="TOML recipe whose training pairs are linked")
    parser.add_argument("--model", metavar="M", help="model of the recipe's direction, with --reverse")
    parser.add_argument("--reverse", metavar="M", help="model of the other direction")
    parser.add_argument(
        "--eflomal", action="store_true", help="by eflomal, learning from the pairs (pip install eflomal)"
    )
    parser.add_argument("--output", action=OutputPath, required=True, metavar="FILE.tsv", help="where to write")
    parser.add_argument("--symmetrise", choices=list(SYMMETRISE), default="grow-diag-final-and", help="both directions")
    options = parser.parse_args()
    named = [options.model, options.reverse]
    if any(named) == options.eflomal or not (options.eflomal or all(named)):
        raise UserError("give either --model and --reverse, or --eflomal")
    check_parent(options.output)
    if options.output.suffix != ".tsv":
        raise UserError(f"--output {options.output} must end in .tsv: it is a table of source, target and links")
    data = load_recipe(options.recipe).data
    if options.eflomal:
        count = link_by_eflomal(data, options.output, options.symmetrise)
    else:
        count = link_by_models(data, options.model, options.reverse, options.output, options.symmetrise)
    print(f"{PROGRAM}: {count:,} pairs in {options.output}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(exit_status(PROGRAM, run))
