"""Notes and tags on answers, in one SQLite file beside the runs; and the tagged answers as a data set."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pfungst.core import PfungstError, UsageError
from pfungst.web.wanted import Place

MOST_TAGS, LONGEST_TAG, LONGEST_NOTE = 20, 40, 4000
_SCHEMA = """
CREATE TABLE IF NOT EXISTS notes (
    run TEXT NOT NULL, probe TEXT NOT NULL, example_id TEXT NOT NULL, variant TEXT NOT NULL,
    note TEXT NOT NULL, tags TEXT NOT NULL, changed REAL NOT NULL,
    PRIMARY KEY (run, probe, example_id, variant)
) WITHOUT ROWID
"""


@dataclass(frozen=True)
class Note:
    """What somebody wrote on an answer."""

    place: Place
    note: str = ""
    tags: tuple[str, ...] = ()


def parse_tags(text: str) -> tuple[str, ...]:
    """Tags between commas or spaces: `counting, occluded`."""
    tags = tuple(dict.fromkeys(re.findall(r"[^\s,]+", text)))
    if len(tags) > MOST_TAGS or any(len(tag) > LONGEST_TAG for tag in tags):
        raise UsageError(f"An answer takes at most {MOST_TAGS} tags of at most {LONGEST_TAG} characters.")
    return tags


class Notes:
    """The file of notes. It is made when the first note is written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, note: Note) -> None:
        """Keep a note; one without text and tags is deleted."""
        if len(note.note) > LONGEST_NOTE:
            raise UsageError(f"A note takes at most {LONGEST_NOTE:,} characters.")
        place = (note.place.run, note.place.probe, note.place.example_id, note.place.variant)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._open() as db:
            if not note.note and not note.tags:
                db.execute("DELETE FROM notes WHERE run=? AND probe=? AND example_id=? AND variant=?", place)
                return
            db.execute(
                "INSERT OR REPLACE INTO notes VALUES (?,?,?,?,?,?,?)",
                (*place, note.note, json.dumps(note.tags), time.time()),
            )

    def all(self, tag: str = "") -> list[Note]:
        """All notes, the latest first; only those with a tag, where one is named."""
        return [note for note in self._read("ORDER BY changed DESC", ()) if not tag or tag in note.tags]

    def of(self, run: str, example_id: str) -> dict[tuple[str, str], Note]:
        """The notes on an example, by probe and variant."""
        found = self._read("WHERE run=? AND example_id=?", (run, example_id))
        return {(note.place.probe, note.place.variant): note for note in found}

    def tags(self) -> dict[str, int]:
        """How many answers have each tag."""
        counts: dict[str, int] = {}
        for note in self.all():
            for tag in note.tags:
                counts[tag] = counts.get(tag, 0) + 1
        return dict(sorted(counts.items()))

    def places(self, tag: str) -> list[Place]:
        return [note.place for note in self.all(tag)]

    def _read(self, rest: str, values: Sequence[str]) -> list[Note]:
        if not self.path.exists():
            return []
        with self._open() as db:
            rows = db.execute(
                f"SELECT run, probe, example_id, variant, note, tags FROM notes {rest}", values
            ).fetchall()
        return [Note(Place(*row[:4]), row[4], tuple(json.loads(row[5]))) for row in rows]

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            db = sqlite3.connect(self.path, timeout=10)
            try:
                with db:
                    db.execute(_SCHEMA)
                    yield db
            finally:
                db.close()
        except sqlite3.Error as error:
            raise PfungstError(f"The notes in {self.path.name} cannot be opened ({error}).") from error
