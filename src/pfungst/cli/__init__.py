"""The command line, a file per command or family. Imports wait until a command runs: --help answers at once.

Exit codes: 0 done; 1 it could not be done (a sentence on standard error says why); 2 wrong usage; 3 a check found
problems; 130 interrupted (run the same command again to resume).
"""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from typing import Any, NoReturn

WRONG_USAGE = 2
PROBLEMS_FOUND = 3
INTERRUPTED = 130
STOPPED = "pfungst: stopped. Everything so far is kept; run the same command again to resume."


def main() -> None:
    """Entry point of the `pfungst` command."""
    # Arithmetic threads that wait for each other must not burn the processor: on two busy cores a short training took
    # more than 200 s (48 s of processor time) with the spinning that is the default, 55 s (13 s) without.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from pfungst.cli.app import app
    from pfungst.cli.show import json_alone, say
    from pfungst.core.errors import PfungstError, UsageError

    show_warnings()
    alone = "--json" in sys.argv and "--help" not in sys.argv
    try:
        with json_alone() if alone else nullcontext():
            app()
    except SystemExit as left:  # typer catches interrupts, and readers that have gone, and says nothing
        if isinstance(left.__context__, BrokenPipeError):
            _reader_has_gone()
        if left.code == INTERRUPTED:
            say(STOPPED, file=sys.stderr)
        raise
    except PfungstError as error:
        say(f"pfungst: {error}", file=sys.stderr)
        sys.exit(WRONG_USAGE if isinstance(error, UsageError) else 1)
    except KeyboardInterrupt:
        say(STOPPED, file=sys.stderr)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        _reader_has_gone()
    except OSError as error:
        say(f"pfungst: {system_sentence(error)}", file=sys.stderr)
        sys.exit(1)


def _reader_has_gone() -> NoReturn:
    """`pfungst list | head` is no error. Keep Python from complaining at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(0)


def system_sentence(error: OSError) -> str:
    """What the system complains about, as a sentence: a full disk, a folder that is read-only or gone."""
    import errno

    hints = {
        (errno.ENOSPC, errno.EDQUOT, errno.EFBIG): "Free space and run the same command again: finished work is kept.",
        (errno.EROFS, errno.EACCES, errno.EPERM): "Choose a place where you may read and write.",
        (errno.ENOENT, errno.ENOTDIR, errno.ESTALE): "Check the path; a folder may have been removed in the meantime.",
        (errno.EMFILE, errno.ENFILE): "Too many files are open; raise the limit with `ulimit -n`.",
    }
    hint = next((words for numbers, words in hints.items() if error.errno in numbers), "")
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}. {hint}".strip()


def show_warnings() -> None:
    """Print our own warnings as sentences, without the line of code they come from."""
    import warnings

    from pfungst.cli.show import visible
    from pfungst.core.errors import PfungstWarning

    plain = warnings.formatwarning

    def tell(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> str:
        ours = issubclass(category, PfungstWarning)
        return f"pfungst: {visible(message)}\n" if ours else plain(message, category, *where, **more)

    warnings.formatwarning = tell
