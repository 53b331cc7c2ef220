"""The one error that is shown to a user as a single line, and the exit status that goes with it."""

import os
import sys
from collections.abc import Callable


class UserError(ValueError):
    """Input that cannot be used; the message names the value, the rule and, where it helps, what to do."""


def first_line(error: BaseException) -> str:
    """What an error of a library says, as the one line that a user gets; its kind if it says nothing."""
    return (str(error).strip() or type(error).__name__).split("\n")[0]


def exit_status(
    program: str, run: Callable[[], None], interrupted: str = "interrupted", prints_results: bool = True
) -> int:
    """Run a program; whatever a user can mend, or has ended, is one line on stderr.

    Exit status: 0 done, or nobody reads the results any more (as in `| head`); 1 an error; 130 interrupted.
    """
    try:
        run()
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        line, status = interrupted, 130
    except UserError as error:
        line, status = str(error), 1
    except OSError as error:
        if prints_results and isinstance(error, BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python flushes into the pipe at exit
            return 0
        line, status = f"{error.filename or 'system'}: {error.strerror or error}", 1
    else:
        return 0
    print(f"{program}: {line}", file=sys.stderr)
    return status
