"""`seq2seq train` and `seq2seq average`."""

import argparse
from pathlib import Path
from typing import Any

from seq2seq.commands.common import OutputPath, check_folder, declare


def add_train(commands: Any) -> None:
    """Declare `seq2seq train`."""
    parser = declare(
        commands, "train", train, "train a model from a recipe", "seq2seq train configs/sample.toml --set train.seed=2"
    )
    parser.add_argument("recipe", metavar="CONFIG", type=Path, help="TOML recipe")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="override a setting")
    parser.add_argument(
        "--output", action=OutputPath, metavar="DIR", help="run folder (default: runs/ and the recipe's name)"
    )
    parser.add_argument("--resume", action="store_true", help="go on from the run's last checkpoint")
    parser.add_argument("--resume-from", type=int, metavar="UPDATE", help="go on from the checkpoint of that update")


def train(options: argparse.Namespace) -> None:
    """`seq2seq train`."""
    from seq2seq.config import load_recipe

    recipe = load_recipe(options.recipe, options.set)
    from seq2seq.training.distributed import is_first
    from seq2seq.training.loop import train as run

    folder = options.output or Path("runs") / options.recipe.stem
    check_folder(folder)
    best = run(recipe, folder, options.resume, options.resume_from)
    if is_first():
        print(best)


def add_average(commands: Any) -> None:
    """Declare `seq2seq average`."""
    parser = declare(
        commands,
        "average",
        average,
        "average the weights of checkpoints or models of one run",
        "seq2seq average runs/en-fr/checkpoints/* --output runs/en-fr/averaged",
    )
    parser.add_argument("checkpoints", nargs="+", type=Path, metavar="CHECKPOINT", help="model folders")
    parser.add_argument("--output", action=OutputPath, required=True, metavar="DIR", help="new model folder")


def average(options: argparse.Namespace) -> None:
    """`seq2seq average`."""
    from seq2seq.checkpoint import average_models
    from seq2seq.folder import refuse_existing

    refuse_existing(options.output)
    average_models(options.checkpoints, options.output)
    print(options.output)
