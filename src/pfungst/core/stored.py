"""What a run holds already: its player that is absent, and a look into its answer store without writing a byte."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pfungst.core.errors import PfungstError, PlayerError
from pfungst.core.types import Answer, Player, Query


@dataclass(frozen=True)
class StoredPlayer(Player):
    """A player that is absent: only what it said before is known. `rescore` runs an exam with it."""

    name: str
    fingerprint: str
    reads_scenes: bool = False
    reads_ids: bool = False
    failed: tuple[tuple[str, str], ...] = ()
    """Queries that have no answer: their questions, and what went wrong."""
    takes: frozenset[str] = frozenset()
    reads_images: bool = True

    def answer(self, queries: Sequence[Query]) -> Sequence[Answer]:
        raise PlayerError(
            f"{len(queries)} or more answers of {self.name} are not in the store. Run the exam to its end first. If an "
            "earlier version finished it, a probe may ask something else now: examine again into the same folder."
        )


@dataclass(frozen=True, slots=True)
class Typical:
    """Means over the stored replies of a player; None where no reply says."""

    replies: int = 0
    """Replies that say how many tokens they took."""
    input_tokens: float | None = None
    output_tokens: float | None = None
    seconds: float | None = None


def stored_keys(run: Path, keys: Iterable[str]) -> set[str]:
    """Those of the keys that the run has an answer to."""
    wanted = list(keys)
    with opened(run) as db:
        if db is None or not wanted:
            return set()
        version = db.execute("PRAGMA user_version").fetchone()[0]
        return _present(db, wanted) if version >= 3 else _present_earlier(db, wanted)


def _present(db: sqlite3.Connection, wanted: Sequence[str]) -> set[str]:
    from pfungst.core.keys import KeyIndex, heads_of, rows_of

    index = KeyIndex()
    index.read(db, 0)
    rows = index.find(heads_of([bytes.fromhex(key) for key in wanted]))
    found = {key.hex() for (key,) in rows_of(db, "key", rows)}
    return found.intersection(wanted)


def _present_earlier(db: sqlite3.Connection, wanted: Sequence[str]) -> set[str]:
    """In a store of version 1 or 2, which is read as it is."""
    found: set[str] = set()
    for start in range(0, len(wanted), 500):
        part = wanted[start : start + 500]
        marks = ",".join("?" * len(part))
        found.update(key for (key,) in db.execute(f"SELECT key FROM answers WHERE key IN ({marks})", part))
    return found


def count_answers(run: Path) -> int:
    """Answers that a run holds."""
    with opened(run) as db:
        if db is None:
            return 0
        # The heads of all keys are read far sooner than the answers are counted.
        heads = "SELECT coalesce(sum(length(heads)), 0) / 8 FROM batches"
        early = db.execute("PRAGMA user_version").fetchone()[0] < 3
        return int(db.execute("SELECT count(*) FROM answers" if early else heads).fetchone()[0])


def typical(run: Path, fingerprint: str) -> Typical:
    """What a reply of this player took so far."""
    with opened(run) as db:
        columns = {row[1] for row in db.execute("PRAGMA table_info(answers)")} if db is not None else set()
        if db is None or "input_tokens" not in columns:  # a store of version 1
            return Typical()
        mine = "player = (SELECT id FROM players WHERE fingerprint = ?)" if "id" in columns else "player = ?"
        row = db.execute(
            "SELECT count(input_tokens), avg(input_tokens), avg(output_tokens), avg(seconds) FROM answers "
            f"WHERE {mine}",
            (fingerprint,),
        ).fetchone()
        return Typical(*row)


@contextmanager
def opened(run: Path) -> Iterator[sqlite3.Connection | None]:
    """The answer store of a run, to be read; None where there is none."""
    path = (run / "answers.sqlite").absolute()
    if not path.exists():
        yield None
        return
    # Where nobody is writing, SQLite is told so: it would put files of its own beside the store otherwise.
    mode = "mode=ro" if path.with_name(path.name + "-wal").exists() else "immutable=1"
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?{mode}", uri=True)) as db:
            yield db
    except sqlite3.Error as error:
        raise PfungstError(f"{path}: the answer store cannot be read ({error}).") from error
