"""One exam a run folder at a time, one writer a file."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pfungst.core.errors import PfungstError


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Hold a run folder: two exams in it would ask the same questions twice.

    An open SQLite transaction is a lock that every system has and that ends with the process, however it ends.
    """
    path = out / ".lock"
    try:
        lock = _held(path)
    except sqlite3.OperationalError as error:
        if "locked" in str(error) and _locks_work(out):
            raise PfungstError(f"Another exam is running in {out}. Wait for it, or choose another folder.") from None
        raise PfungstError(
            f"{out} cannot be written or locked ({error}). Choose another folder: on a disk with free space, where "
            "you may write and where locks work (on some network drives they do not)."
        ) from error
    except sqlite3.DatabaseError:
        # Nothing is kept in the file, so whatever stands in a damaged one is no loss.
        path.unlink(missing_ok=True)
        lock = _held(path)
    try:
        yield
    finally:
        lock.close()


@contextmanager
def only_here(path: Path) -> Iterator[None]:
    """Hold a file against all other processes; they wait. Where the system has no such locks, nobody is kept out."""
    with open(path, "ab") as file:
        with suppress(ImportError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def write_ahead(db: sqlite3.Connection, patience: float = 30.0) -> None:
    """Have a database keep a write-ahead log, waiting up to `patience` seconds for others that open it as well.

    SQLite's own timeout does not hold for this step: of two that open a new file at once, one is refused at once.
    """
    until = time.monotonic() + patience
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() >= until:
                raise
            time.sleep(0.005)


def _locks_work(out: Path) -> bool:
    """Whether a lock can be had in this folder at all: SQLite says the same where none can and where it is taken."""
    try:
        import fcntl
    except ImportError:  # Windows, whose locks work
        return True
    with tempfile.TemporaryFile(dir=out) as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


def _held(path: Path) -> sqlite3.Connection:
    lock = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except BaseException:
        lock.close()
        raise
    return lock
