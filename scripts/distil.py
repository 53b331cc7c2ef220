"""Training pairs that models make, as `source TAB target`, for `data.extra` of a student's recipe.

python scripts/distil.py configs/en-fr.toml --model runs/a/model runs/b/model --output distilled.tsv  # of sources
python scripts/distil.py configs/en-fr.toml --model fr-en --n-best 1 --new --output back.tsv          # of targets
"""

import argparse
import math
import sys

from seq2seq.commands.common import OutputPath, check_parent
from seq2seq.config import load_recipe
from seq2seq.errors import UserError, exit_status
from seq2seq.training.distillation import Teaching, distil

PROGRAM = "distil"


def run() -> None:
    """Read the command line and do it."""
    options = _parser().parse_args()
    check_parent(options.output)
    if options.output.suffix != ".tsv":
        raise UserError(f"--output {options.output} must end in .tsv, by which `data.extra` knows its form")
    count = distil(load_recipe(options.recipe).data, _teaching(options), options.output)
    print(f"{PROGRAM}: {count:,} pairs in {options.output}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("recipe", metavar="CONFIG", help="TOML recipe whose training sentences are translated")
    parser.add_argument(
        "--model",
        nargs="+",
        required=True,
        metavar="M",
        help="teacher, several are an ensemble; one of the recipe's direction translates sources, else targets",
    )
    parser.add_argument("--output", action=OutputPath, required=True, metavar="FILE.tsv", help="where to write")
    parser.add_argument("--beam-size", type=int, default=5, metavar="N", help="hypotheses kept (default: 5)")
    parser.add_argument(
        "--n-best", type=int, metavar="N", help="choose the nearest to a reference among so many (default: the beam)"
    )
    parser.add_argument("--engine", default="torch", metavar="E", help="torch (default) or ctranslate2, the faster")
    parser.add_argument("--rerank", metavar="M", help="a model of the other direction has a say in the order of a beam")
    parser.add_argument("--judge", metavar="M", help="a model of the other direction, for --least")
    parser.add_argument(
        "--least",
        type=float,
        metavar="L",
        help="leave out sentences less probable, given their translation, than L nats a piece, as -1.5",
    )
    parser.add_argument("--new", action="store_true", help="leave out pairs that the corpus has already")
    return parser


def _teaching(options: argparse.Namespace) -> Teaching:
    n_best = options.beam_size if options.n_best is None else options.n_best
    if not 1 <= n_best <= options.beam_size <= 64:
        raise UserError(f"--n-best {n_best} is not between 1 and --beam-size {options.beam_size}, which is at most 64")
    if (options.judge is None) != (options.least is None):
        raise UserError("--judge and --least go together: a model, and what is enough for it")
    if options.least is not None and not -math.inf < options.least <= 0:
        raise UserError(f"--least {options.least} is not a log-probability: at most 0, and finite")
    return Teaching(
        options.model,
        options.beam_size,
        n_best,
        options.engine,
        options.rerank,
        options.judge,
        options.least,
        options.new,
    )


if __name__ == "__main__":
    sys.exit(exit_status(PROGRAM, run))
