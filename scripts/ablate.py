"""What each part of a recipe is worth: train it with one thing changed at a time, and score every run on the dev split.

python scripts/ablate.py configs/multi30k.toml configs/ablations/multi30k.toml
"""

import argparse
import sys
from pathlib import Path

from seq2seq.benchmark.tables import markdown
from seq2seq.commands.common import OutputPath, check_folder
from seq2seq.errors import exit_status
from seq2seq.training.ablation import Outcome, ablate, load_trials

PROGRAM = "ablate"
TITLES = ("changed", "parameters", "updates", "dev loss", "BLEU", "BLEU, Moses", "chrF2", "BLEU, change", "p")


def run() -> None:
    """Read the command line and do it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("recipe", type=Path, metavar="CONFIG", help="TOML recipe")
    parser.add_argument("plan", type=Path, metavar="ABLATIONS", help="TOML file: minutes of each run, and its rows")
    parser.add_argument(
        "--output", action=OutputPath, metavar="FOLDER", help="of the runs (default: runs/ablations/CONFIG)"
    )
    options = parser.parse_args()
    folder = options.output or Path("runs/ablations") / options.recipe.stem
    check_folder(folder)
    outcomes: list[Outcome] = []
    try:
        for outcome in ablate(load_trials(options.recipe, options.plan, folder)):
            outcomes.append(outcome)
            print(f"{PROGRAM}: {outcome.name}: BLEU {outcome.bleu:.2f}", file=sys.stderr)
    finally:  # what is known, also where a row fails
        if outcomes:
            print(markdown(TITLES, [cells(outcome, outcomes[0]) for outcome in outcomes]))


def cells(outcome: Outcome, first: Outcome) -> list[str]:
    """One row of the table."""
    moses = "" if outcome.moses is None else f"{outcome.moses:.1f}"
    scores = [f"{outcome.dev_loss:.3f}", f"{outcome.bleu:.1f}", moses, f"{outcome.chrf:.1f}"]
    change = [] if outcome is first else [f"{outcome.bleu - first.bleu:+.1f}"]
    change += [] if outcome.p_value is None else [f"{outcome.p_value:.3f}"]
    cells = [outcome.name, f"{outcome.parameters / 1e6:.1f} M", f"{outcome.updates:,}", *scores, *change]
    return cells + [""] * (len(TITLES) - len(cells))


if __name__ == "__main__":
    sys.exit(exit_status(PROGRAM, run))
