import subprocess
import sys

import pytest

from seq2seq.errors import UserError, exit_status, first_line


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("one\ntwo"), "one"),
        (OSError("\n  disk full\nmore"), "disk full"),
        (RuntimeError(), "RuntimeError"),  # a line in any case
        (KeyError("  "), "'  '"),
    ],
)
def test_an_error_of_a_library_is_told_in_one_line(error, line):
    assert first_line(error) == line


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (UserError("--n 0 is not 1 or more"), 1, "tool: --n 0 is not 1 or more"),
        (FileNotFoundError(2, "No such file", "a.txt"), 1, "tool: a.txt: No such file"),
        (OSError("the net is closed"), 1, "tool: system: the net is closed"),
        (BrokenPipeError(32, "Broken pipe"), 1, "tool: system: Broken pipe"),
        (KeyboardInterrupt(), 130, "tool: stopped; go on with --resume"),
    ],
)
def test_what_ends_a_program_is_one_line_and_a_status(capsys, error, status, line):
    def run():
        raise error

    assert exit_status("tool", run, "stopped; go on with --resume", prints_results=False) == status
    assert capsys.readouterr() == ("", f"{line}\n")


def test_a_program_that_ends_by_itself_says_nothing(capsys):
    assert exit_status("tool", lambda: print("done")) == 0
    assert capsys.readouterr() == ("done\n", "")


def test_our_own_mistake_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        exit_status("tool", lambda: print(1 / 0))


@pytest.mark.parametrize("lines", [2, 100_000])  # fewer and more than a pipe holds
def test_a_reader_that_leaves_is_no_error(lines):
    code = f"from seq2seq.errors import exit_status; exit(exit_status('tool', lambda: print('line\\n' * {lines})))"
    command = f'set -o pipefail; {sys.executable} -c "{code}" | head -n 1'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("line\n", "")
