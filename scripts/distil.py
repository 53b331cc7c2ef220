"""Training sources with a teacher's translations, as `source TAB translation`, for `data.extra` of a student's recipe.

python scripts/distil.py configs/en-fr.toml --model runs/a/model runs/b/model --output distilled.tsv
"""

import argparse
import sys

from seq2seq.commands.common import OutputPath, check_parent
from seq2seq.config import load_recipe
from seq2seq.errors import UserError, exit_status
from seq2seq.training.distillation import distil

PROGRAM = "distil"


def run() -> None:
    """Read the command line and do it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("recipe", metavar="CONFIG", help="TOML recipe whose training sources are translated")
    parser.add_argument("--model", nargs="+", required=True, metavar="M", help="teacher; several are an ensemble")
    parser.add_argument("--output", action=OutputPath, required=True, metavar="FILE.tsv", help="where to write")
    parser.add_argument("--beam-size", type=int, default=5, metavar="N", help="hypotheses kept (default: 5)")
    parser.add_argument(
        "--n-best", type=int, metavar="N", help="choose the nearest to a reference among so many (default: the beam)"
    )
    options = parser.parse_args()
    n_best = options.beam_size if options.n_best is None else options.n_best
    check_parent(options.output)
    if options.output.suffix != ".tsv":
        raise UserError(f"--output {options.output} must end in .tsv, by which `data.extra` knows its form")
    if not 1 <= n_best <= options.beam_size <= 64:
        raise UserError(f"--n-best {n_best} is not between 1 and --beam-size {options.beam_size}, which is at most 64")
    recipe = load_recipe(options.recipe)
    count = distil(recipe.data, options.model, options.output, options.beam_size, n_best)
    print(f"{PROGRAM}: {count:,} pairs in {options.output}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(exit_status(PROGRAM, run))
