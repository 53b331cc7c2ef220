"""Real training processes that die at any moment and lose nothing: the run ends as an undisturbed one, to the bit."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from small import tiny_recipe
from trainings import same_run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
UPDATES = 100
SETTINGS = {"updates": UPDATES, "validate_every": 5, "keep": 3}


@pytest.fixture(scope="module")
def undisturbed(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    assert disturb("none", corpus, folder)[0] == {"status": 0}
    return folder / "run"


def disturb(kind: str, corpus: Path, folder: Path) -> tuple[dict[str, Any], str]:
    """Train in a process that is killed; returns what was done to it, and all it said."""
    path = folder / "recipe.json"
    path.write_text(tiny_recipe(corpus, **SETTINGS).model_dump_json(), encoding="utf-8")
    command = [sys.executable, Path(__file__).with_name("victim.py"), kind, path, folder / "run"]
    # One thread: threads that wait for each other on a busy machine would make this test slow.
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found, done.stdout + done.stderr


def test_a_run_killed_at_random_moments_loses_nothing(corpus, undisturbed, tmp_path):
    found, said = disturb("random", corpus, tmp_path)
    assert found["killed"] >= 20, said
    assert found["late"] >= 10, said  # killed after there was a checkpoint
    assert found["status"] == 0, said
    assert same_run(tmp_path / "run", undisturbed, UPDATES)


@pytest.mark.slow
def test_a_run_killed_in_each_change_that_it_makes_to_its_folder_loses_nothing(corpus, undisturbed, tmp_path):
    found, said = disturb("files", corpus, tmp_path)
    assert found["killed"] >= 50, said
    assert found["status"] == 0, said
    assert same_run(tmp_path / "run", undisturbed, UPDATES)


def test_a_run_on_a_full_disk_ends_in_one_line_and_loses_nothing(corpus, undisturbed, tmp_path):
    found, said = disturb("full", corpus, tmp_path)
    assert found["failed"] == 1
    assert "cannot be written: File too large; mend that and go on with --resume" in said
    assert found["status"] == 0, said
    assert same_run(tmp_path / "run", undisturbed, UPDATES)
