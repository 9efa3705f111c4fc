"""The answer store: every query and answer of a run, in SQLite.

What is in it is never asked again. Answers are committed in small batches as they come, so a run that is killed at any
point loses only the queries in flight.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

from pfungst.core.errors import PfungstError
from pfungst.core.files import storable
from pfungst.core.types import Answer, Query

VERSION = 2
"""Of the schema, kept in the file. 1: without raw and what follows it."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (
    key           TEXT PRIMARY KEY,  -- Query.key(player fingerprint)
    player        TEXT NOT NULL,     -- fingerprint
    image         TEXT,              -- digest
    question      TEXT NOT NULL,
    choices       TEXT NOT NULL,     -- JSON list
    take          INTEGER NOT NULL,
    text          TEXT NOT NULL,
    confidence    REAL,
    scores        TEXT,              -- JSON list, one per choice
    raw           TEXT,              -- the whole reply, where text was read out of it
    thinking      TEXT NOT NULL DEFAULT '',
    stop          TEXT NOT NULL DEFAULT '',
    input_tokens  INTEGER,
    output_tokens INTEGER,
    seconds       REAL
) WITHOUT ROWID
"""
_NEW = {
    "raw": "TEXT",
    "thinking": "TEXT NOT NULL DEFAULT ''",
    "stop": "TEXT NOT NULL DEFAULT ''",
    "input_tokens": "INTEGER",
    "output_tokens": "INTEGER",
    "seconds": "REAL",
}
"""Columns that version 1 lacks."""
_SAID = "text, confidence, scores, raw, thinking, stop, input_tokens, output_tokens, seconds"


class AnswerStore:
    """Answers of any number of players, by query. Use as a context manager.

    A file of an earlier version is brought to the present one when it is opened; its answers stay.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._db = sqlite3.connect(path, timeout=30, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            # In WAL mode NORMAL survives a killed process; only a power cut may lose the last commits.
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._open()
        except sqlite3.Error as error:
            raise PfungstError(
                f"{path}: the answer store cannot be opened ({error}). Move the file away to start over."
            ) from error

    def _open(self) -> None:
        if self._version() == VERSION:
            return
        # Several processes may open one store at once: only one of them changes it.
        self._db.execute("BEGIN IMMEDIATE")
        try:
            version = self._version()
            if version > VERSION:
                raise PfungstError(
                    f"{self.path} was written by a newer version of Pfungst (store {version}; this version reads up to "
                    f"{VERSION}). Update Pfungst, or choose another run folder."
                )
            known = [row[1] for row in self._db.execute("PRAGMA table_info(answers)")]
            if not known:
                self._db.execute(_SCHEMA)
            for name, kind in _NEW.items():
                if known and name not in known:
                    self._db.execute(f"ALTER TABLE answers ADD COLUMN {name} {kind}")
            self._db.execute(f"PRAGMA user_version={VERSION}")
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

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
        found: dict[str, Answer] = {}
        wanted = list(dict.fromkeys(keys)) if self._db.execute("SELECT 1 FROM answers LIMIT 1").fetchone() else []
        for start in range(0, len(wanted), 500):
            part = wanted[start : start + 500]
            marks = ",".join("?" * len(part))
            rows = self._db.execute(f"SELECT key, {_SAID} FROM answers WHERE key IN ({marks})", part)
            for key, text, confidence, scores, *rest in rows:
                found[key] = Answer(text, confidence, None if scores is None else tuple(json.loads(scores)), *rest)
        return found

    def add(self, fingerprint: str, answered: Sequence[tuple[str, Query, Answer]]) -> None:
        """Commit (key, query, answer) triples at once. The first answer to a query stays."""
        rows = [
            (
                key,
                storable(fingerprint),
                query.image.digest if query.image is not None else None,
                storable(query.question),
                json.dumps(query.choices) if query.choices else "[]",
                query.take,
                storable(answer.text),
                answer.confidence,
                None if answer.scores is None else json.dumps(answer.scores),
                None if answer.raw is None else storable(answer.raw),
                storable(answer.thinking),
                storable(answer.stop),
                answer.input_tokens,
                answer.output_tokens,
                answer.seconds,
            )
            for key, query, answer in answered
        ]
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.executemany("INSERT OR IGNORE INTO answers VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", rows)
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")
