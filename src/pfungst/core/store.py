"""The answer store: every query and answer of a run, in SQLite.

What is in it is never asked again. Answers are committed in small batches as they come, so a run that is killed at any
point loses only the queries in flight, and of a player in this process a few milliseconds of its work.

Answers are appended, never inserted in between: keys are as good as random, and an index over them on the disk would
rewrite a page for each of them. What finds them is `KeyIndex`, in memory, read from the heads that every batch leaves
in the table `batches`; with it a question about many keys is a join, not a search for each. Every row has a checksum.
"""

from __future__ import annotations

import json
import sqlite3
import time
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pfungst.core.errors import PfungstError, PfungstWarning, PlayerError, StoreError
from pfungst.core.files import storable, write_ahead
from pfungst.core.types import Answer, Player, Query, Reading

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Heads = npt.NDArray[np.uint64]
    Rows = npt.NDArray[np.int64]

VERSION = 3
"""Of the schema, kept in the file. 1: without raw and what follows it. 2: one table, its key in hexadecimal."""
SCHEMA = (
    """CREATE TABLE answers (
    id            INTEGER PRIMARY KEY,
    key           BLOB NOT NULL,     -- Query.key(player fingerprint), 32 bytes
    player        INTEGER NOT NULL,  -- in players
    image         TEXT,              -- digest
    question      TEXT NOT NULL,
    choices       TEXT NOT NULL,     -- JSON list
    take          INTEGER NOT NULL,
    text          TEXT NOT NULL,
    confidence    REAL,
    scores        TEXT,              -- JSON list, one per choice
    raw           TEXT,              -- the whole reply, where text was read out of it
    thinking      TEXT NOT NULL,
    stop          TEXT NOT NULL,
    input_tokens  INTEGER,
    output_tokens INTEGER,
    seconds       REAL,
    checksum      INTEGER NOT NULL   -- CRC-32 of all columns between id and this
)""",
    "CREATE TABLE players (id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE)",
    # last: id of the last answer of the batch. heads: the first eight bytes of the key of each of its answers.
    "CREATE TABLE batches (last INTEGER PRIMARY KEY, heads BLOB NOT NULL)",
)
_SAID = "text, confidence, scores, raw, thinking, stop, input_tokens, output_tokens, seconds"
_ASKED = "key, player, image, question, choices, take"
_EARLIER = {"raw": "NULL", "thinking": "''", "stop": "''", "input_tokens": "NULL", "output_tokens": "NULL"}
"""What stands for the columns that version 1 lacks; `seconds` too is NULL."""
_AT_ONCE = 500
"""Rows or keys in one SELECT."""
COPIED_AFTER, COPIED_EVERY, COPIED_SHARE = 1_000, 60.0, 0.01
"""New answers, or seconds, after which the copy of a store is brought up to date; and the share of the time that this
may take: fast players wait for no copy."""


def copy_of(path: Path) -> Path:
    """Where the copy of a store lies."""
    return path.with_stem(f"{path.stem}-copy")


def _files(path: Path) -> tuple[Path, Path]:
    """A store, and what was written to it since SQLite last tidied up."""
    return path, path.with_name(f"{path.name}-wal")


class AnswerStore:
    """Answers of any number of players, by query. Use as a context manager.

    A file of an earlier version is brought to the present one when it is opened; its answers stay.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._index = KeyIndex()
        self._players: dict[str, int] = {}
        self._damaged: set[int] = set()
        self.changed_at: float = max((at.stat().st_mtime for at in _files(path) if at.exists()), default=time.time())
        """When it was last written to before it was opened."""
        self.reread: int = 0
        """Answers read that were in it when it was opened."""
        self._uncopied, self._copied_at, self._copying = 0, time.monotonic(), 0.0
        """Answers that the copy lacks, when it was last brought up to date, and how long that took."""
        try:
            self._db = sqlite3.connect(path, timeout=30, isolation_level=None)
            write_ahead(self._db)
            # In WAL mode NORMAL survives a killed process; only a power cut may lose the last commits.
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._open()
            self._before = int(self._db.execute("SELECT coalesce(max(id), 0) FROM answers").fetchone()[0])
        except (sqlite3.Error, ValueError) as error:  # ValueError: a key that is none
            raise StoreError(
                f"{path}: the answer store cannot be opened ({error}). `pfungst recover {path.parent}` reads "
                "what can be read."
            ) from error

    def _open(self) -> None:
        if self._version() == VERSION:
            return
        # Several processes may open one store at once: only one of them changes it.
        with self._changing():
            version = self._version()
            if version > VERSION:
                raise PfungstError(
                    f"{self.path} was written by a newer version of Pfungst (store {version}; this version reads up to "
                    f"{VERSION}). Update Pfungst, or choose another run folder."
                )
            if version < VERSION:
                self._bring_up_to_date()

    def _bring_up_to_date(self) -> None:
        columns = [row[1] for row in self._db.execute("PRAGMA table_info(answers)")]
        if columns:
            self._db.execute("ALTER TABLE answers RENAME TO earlier")
        for statement in SCHEMA:
            self._db.execute(statement)
        self._db.execute(f"PRAGMA user_version={VERSION}")
        if not columns:
            return
        said = ", ".join(name if name in columns else _EARLIER.get(name, "NULL") for name in _SAID.split(", "))
        earlier = self._db.execute(f"SELECT {_ASKED}, {said} FROM earlier")
        while rows := earlier.fetchmany(10_000):
            self._append([(bytes.fromhex(key), self._player(player), *rest) for key, player, *rest in rows])
        self._db.execute("DROP TABLE earlier")

    def _version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    def __enter__(self) -> AnswerStore:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def __len__(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM answers").fetchone()[0])

    def known(self, keys: Iterable[str]) -> dict[str, Answer]:
        """The stored answers among these keys."""
        try:
            wanted = {bytes.fromhex(key): key for key in keys}
        except (ValueError, TypeError) as error:
            raise StoreError(
                f"The part that identifies a query is damaged ({error}). Run `pfungst rescore {self.path.parent}`."
            ) from None
        with self._told():
            found = self._find(list(wanted))
        said: dict[str, Answer] = {}
        damaged = 0
        for number, row in found.items():
            name = wanted.get(row[0])
            if name is None or name in said or number in self._damaged:
                continue  # another key with the same head, or a later answer to the same query
            if row[-1] != checksum(row[:-1]):
                self._damaged.add(number)
                damaged += 1
                continue
            self.reread += number <= self._before
            text, confidence, scores, *rest = row[6:-1]
            said[name] = Answer(text, confidence, None if scores is None else tuple(json.loads(scores)), *rest)
        if damaged:
            warnings.warn(
                f"{self.path}: {damaged:,} of {len(found):,} stored answers are damaged (their checksums are wrong). "
                "They count as not given.",
                PfungstWarning,
                stacklevel=2,
            )
        return said

    def add(self, fingerprint: str, answered: Sequence[tuple[str, Query, Answer]]) -> None:
        """Commit (key, query, answer) triples at once. The first answer to a query stays."""
        if not self.path.exists():
            # SQLite would go on writing to a file that nobody can find any more.
            raise StoreError(f"{self.path} was removed while answers came in. Run the same command again.")
        with self._told(), self._changing():
            player = self._player(storable(fingerprint))
            rows: dict[bytes, tuple[Any, ...]] = {}
            for key, query, answer in answered:
                name = bytes.fromhex(key)
                if name not in rows:
                    rows[name] = (name, player, *_row(query, answer))
            for number, row in self._find(list(rows)).items():
                if number not in self._damaged:
                    rows.pop(row[0], None)
            last, heads = self._append(list(rows.values()))
        if heads:
            self._index.add(heads, last)
        self._uncopied += len(rows)
        since = time.monotonic() - self._copied_at
        due = self._uncopied >= COPIED_AFTER or (self._uncopied and since > COPIED_EVERY)
        if due and self._copying <= COPIED_SHARE * since:
            started = time.monotonic()
            self._copy()
            self._uncopied, self._copied_at = 0, time.monotonic()
            self._copying = self._copied_at - started

    def _copy(self) -> None:
        """Add the new answers to the copy. Pages are never copied, as damaged ones would be, too."""
        path = copy_of(self.path)
        with self._told(), closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as copy:
            copy.execute("PRAGMA synchronous=OFF")
            copy.execute("ATTACH ? AS store", (str(self.path),))
            copy.execute("BEGIN IMMEDIATE")
            if not copy.execute("PRAGMA main.user_version").fetchone()[0]:
                for statement in SCHEMA:
                    copy.execute(statement)
                copy.execute(f"PRAGMA main.user_version={VERSION}")
            last, key = copy.execute("SELECT max(id), key FROM main.answers").fetchone()
            if last and copy.execute("SELECT key FROM store.answers WHERE id = ?", (last,)).fetchone() != (key,):
                for table in ("answers", "players", "batches"):  # of a store that was moved away
                    copy.execute(f"DELETE FROM main.{table}")
            for table, number in (("answers", "id"), ("players", "id"), ("batches", "last")):
                copy.execute(
                    f"INSERT INTO main.{table} SELECT * FROM store.{table} "
                    f"WHERE {number} > (SELECT coalesce(max({number}), 0) FROM main.{table})"
                )
            copy.execute("COMMIT")

    def restore(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Append answers of another store: key, the player's fingerprint, and the other columns."""
        with self._told(), self._changing():
            for at in range(0, len(rows), 10_000):
                self._append([(key, self._player(player), *rest) for key, player, *rest in rows[at : at + 10_000]])

    def _find(self, keys: Sequence[bytes]) -> dict[int, tuple[Any, ...]]:
        """Rows by id, the first of each key before later ones. Some may be of other keys with the same head."""
        if not keys:
            return {}
        self._index.read(self._db)  # with what other processes have added since
        columns = f"id, {_ASKED}, {_SAID}, checksum"
        return {row[0]: row[1:] for row in _answers_in(self._db, columns, self._index.find(_heads_of(keys)))}

    def _append(self, rows: Sequence[tuple[Any, ...]]) -> tuple[int, bytes]:
        """Write rows; returns the id of the last, and the heads of their keys."""
        last = int(self._db.execute("SELECT coalesce(max(id), 0) FROM answers").fetchone()[0])
        heads = _heads_of([row[0] for row in rows])
        if rows:
            marks = ",".join("?" * (len(rows[0]) + 1))
            self._db.executemany(f"INSERT INTO answers VALUES (NULL,{marks})", ((*row, checksum(row)) for row in rows))
            last += len(rows)
            self._db.execute("INSERT INTO batches VALUES (?,?)", (last, heads))
        return last, heads

    def _player(self, fingerprint: str) -> int:
        if fingerprint not in self._players:
            self._db.execute("INSERT OR IGNORE INTO players (fingerprint) VALUES (?)", (fingerprint,))
            row = self._db.execute("SELECT id FROM players WHERE fingerprint = ?", (fingerprint,)).fetchone()
            self._players[fingerprint] = int(row[0])
        return self._players[fingerprint]

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """One transaction: all of it or nothing."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._players.clear()
            if self._db.in_transaction:  # a full disk has ended it already
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What SQLite complains about, as a sentence."""
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(
                f"{self.path}: the answer store cannot be read or written ({error}). If the disk is full, make room "
                f"and run the same command again. If the file is damaged, `pfungst recover {self.path.parent}` reads "
                "what can be read."
            ) from error


def _row(query: Query, answer: Answer) -> tuple[Any, ...]:
    return (
        query.image.digest if query.image is not None else None,
        storable(query.question),
        json.dumps(query.choices) if query.choices else "[]",
        query.take,
        storable(answer.text),
        _real(answer.confidence),
        None if answer.scores is None else json.dumps(answer.scores),
        None if answer.raw is None else storable(answer.raw),
        storable(answer.thinking),
        storable(answer.stop),
        answer.input_tokens,
        answer.output_tokens,
        _real(answer.seconds),
    )


def _real(value: float | None) -> float | None:
    """As SQLite gives it back: it has no NaN."""
    return None if value is None or value != value else float(value)


def checksum(row: tuple[Any, ...]) -> int:
    """Of all columns between id and checksum."""
    return zlib.crc32(repr(row).encode())


# --- finding answers by their keys ------------------------------------------------------------------------------------


class KeyIndex:
    """Which rows of a store may hold a key, in memory: 16 bytes a key, and a question about many keys is one pass.

    It knows the head of each key, its first eight bytes. Two keys may share a head, so what is found here must be
    compared with the whole key; what is not found is not there. Sorted runs are merged as they grow, each at most a
    quarter of the one before it.
    """

    def __init__(self) -> None:
        self._runs: list[tuple[Heads, Rows]] = []
        self._last = 0
        """The last row it knows."""

    def add(self, heads: bytes, last: int) -> None:
        """The heads of keys in consecutive rows, up to the row `last`."""
        import numpy as np

        added = np.frombuffer(heads, dtype=">u8").astype(np.uint64)
        rows = np.arange(last - len(added) + 1, last + 1, dtype=np.int64)
        self._last = last
        while self._runs and 4 * len(added) > len(self._runs[-1][0]):
            before, where = self._runs.pop()
            added, rows = np.concatenate([before, added]), np.concatenate([where, rows])
        order = np.argsort(added, kind="stable")
        self._runs.append((added[order], rows[order]))

    def read(self, db: sqlite3.Connection) -> None:
        """Add what a store holds behind the rows known so far."""
        batches = db.execute("SELECT last, heads FROM batches WHERE last > ? ORDER BY last", (self._last,)).fetchall()
        if batches:
            self.add(b"".join(heads for _, heads in batches), batches[-1][0])

    def find(self, heads: bytes) -> list[int]:
        """The rows of all that may be among these keys, in increasing order."""
        import numpy as np

        wanted = np.unique(np.frombuffer(heads, dtype=">u8").astype(np.uint64))
        found: list[Rows] = []
        for known, rows in self._runs:
            first, end = np.searchsorted(known, wanted), np.searchsorted(known, wanted, "right")
            found += [
                rows[start:stop] for start, stop in zip(first[end > first + 1], end[end > first + 1], strict=True)
            ]
            found.append(rows[first[end == first + 1]])
        numbers: list[int] = np.sort(np.concatenate(found)).tolist() if found else []
        return numbers


def _heads_of(keys: Sequence[bytes]) -> bytes:
    return b"".join([key[:8] for key in keys])


def _answers_in(db: sqlite3.Connection, columns: str, numbers: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    """These columns of the answers in these rows, which increase."""
    for start in range(0, len(numbers), _AT_ONCE):
        part = numbers[start : start + _AT_ONCE]
        if part[-1] - part[0] == len(part) - 1:  # as they were asked: one stretch of the table
            yield from db.execute(f"SELECT {columns} FROM answers WHERE id BETWEEN ? AND ?", (part[0], part[-1]))
        else:
            marks = ",".join("?" * len(part))
            yield from db.execute(f"SELECT {columns} FROM answers WHERE id IN ({marks}) ORDER BY id", part)


# --- a store that is looked into without writing a byte ---------------------------------------------------------------


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
    readings: Mapping[str, Reading] = field(default_factory=dict)
    """What it read of its queries, by key, as far as it told."""

    def reading(self, queries: Sequence[Query]) -> Sequence[Reading | None]:
        return [self.readings.get(query.key(self.fingerprint)) for query in queries]

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
    found: set[str] = set()
    with opened(run) as db:
        if db is None or not wanted:
            return found
        if db.execute("PRAGMA user_version").fetchone()[0] >= 3:
            index = KeyIndex()
            index.read(db)
            rows = index.find(_heads_of([bytes.fromhex(key) for key in wanted]))
            return {key.hex() for (key,) in _answers_in(db, "key", rows)}.intersection(wanted)
        for start in range(0, len(wanted), _AT_ONCE):  # a store of version 1 or 2, which is read as it is
            part = wanted[start : start + _AT_ONCE]
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
