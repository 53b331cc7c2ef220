"""A real training process that is killed again and again: `victim.py none|random|files|full RECIPE FOLDER`.

This process has imported everything and forks a child for each attempt, so that an attempt takes no seconds to begin.
The last line that it prints is a JSON object on what it has done.
"""

import json
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch._dynamo  # noqa: F401  # what the first optimiser of a process would import, for a second or two
from trainings import small_and_quiet, watch

from seq2seq.checkpoint import load_model
from seq2seq.config import Recipe
from seq2seq.training.checkpoints import checkpoints, newest
from seq2seq.training.loop import train

CHANGES = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree"}


def attempt(recipe: Recipe, folder: Path, before: Callable[[], None], kill: Callable[[int], None] | None = None) -> int:
    """Train in a child, from where the run is. `kill` gets a pipe that brings a byte at the start of every update.

    Returns how the child ended.
    """
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with small_and_quiet() as patch:
                watch(patch, lambda update, lr: os.write(theirs, b"u"))
                before()
                train(recipe, folder, resume=(folder / "recipe.json").exists())
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", flush=True)
            os._exit(1)
        os._exit(0)
    os.close(theirs)
    if kill is not None:
        kill(ours)
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(ours)
    return status


def look(folder: Path) -> None:
    """What a user finds after a kill: a model that loads, if there is one, and no damaged checkpoint."""
    newest(folder / "checkpoints")
    if (folder / "model").exists():
        load_model(folder / "model")


def undisturbed(recipe: Recipe, folder: Path) -> dict[str, int]:
    """Nothing happens."""
    return {"status": attempt(recipe, folder, lambda: None)}


def killed_at_random(recipe: Recipe, folder: Path) -> dict[str, int]:
    """Kill the run at 25 random moments, five of them before its first update, then let it end."""
    rng = random.Random(1)
    killed, late = 0, 0
    for number in range(25):

        def moment(pipe: int, early: bool = number < 5) -> None:
            for _ in range(0 if early else rng.randrange(1, 9)):
                os.read(pipe, 1)
            time.sleep(rng.uniform(0, 0.05))

        killed += attempt(recipe, folder, lambda: None, moment) == -signal.SIGKILL
        look(folder)
        late += bool(checkpoints(folder / "checkpoints"))
    return {"killed": killed, "late": late, "status": attempt(recipe, folder, lambda: None)}


def killed_at_files(recipe: Recipe, folder: Path) -> dict[str, int]:
    """Kill attempt n in its n-th change to the run folder, until one has fewer changes to make."""
    killed = 0
    while (status := attempt(recipe, folder, partial(die_in_change, killed + 1, folder))) == -signal.SIGKILL:
        killed += 1
        look(folder)
    return {"killed": killed, "status": status}


def die_in_change(number: int, folder: Path) -> None:
    """Make this process die in its `number`-th change to files of the folder: a file it writes is left half written."""
    count = 0

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal count
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if not (writes or event in CHANGES) or not str(arguments[0]).startswith(str(folder)):
            return
        count += 1
        if count == number:
            if writes:
                os.write(os.open(str(arguments[0]), int(str(arguments[2])), 0o644), b'{"half')
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def full(recipe: Recipe, folder: Path) -> dict[str, int]:
    """Let the disk take no file that is longer than 50 kB: a checkpoint is."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))

    failed = attempt(recipe, folder, limit)
    look(folder)
    return {"failed": failed, "status": attempt(recipe, folder, lambda: None)}


if __name__ == "__main__":
    kind, recipe_file, run_folder = sys.argv[1:]
    ways = {"none": undisturbed, "random": killed_at_random, "files": killed_at_files, "full": full}
    found = ways[kind](Recipe.model_validate_json(Path(recipe_file).read_text(encoding="utf-8")), Path(run_folder))
    print(json.dumps(found))
