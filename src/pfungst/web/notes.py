"""Notes and tags on answers, in one SQLite file beside the runs; and the tagged answers as a data set that
`pfungst examine --data tagged.jsonl` reads.
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pfungst.core import Image, PfungstError, UsageError
from pfungst.report.cases import made_again
from pfungst.report.page import data_url
from pfungst.web.index import Place
from pfungst.web.pictures import moved_scene
from pfungst.web.runs import NotHere, RunFolder

if TYPE_CHECKING:
    from pfungst.web.site import Site

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


def tagged_lines(site: Site, tag: str = "") -> Iterator[str]:
    """One line of JSON for each answer with a note or tag: the question as it was put, with its image inside.

    An answer whose run or image is gone is left out: another image would make it another question.
    """
    for note in site.notes.all(tag):
        row = _row(site, note)
        if row is not None:
            yield json.dumps(row, ensure_ascii=False) + "\n"


def _row(site: Site, note: Note) -> dict[str, Any] | None:
    place = note.place
    try:
        run = site.runs.get(place.run)
    except NotHere:
        return None
    row = site.index.row(run, place)
    if row is None:
        return None
    example = site.pictures.example(run, place.example_id)
    image, scene = shown_image(site, run, row)
    if image is None and row["image"]:
        return None
    found: dict[str, Any] = {
        "id": f"{place.run}/{place.probe}/{place.example_id}/{place.variant}",
        "question": row["question"],
        "image_id": row["image_id"],
        "target": row["target"],
        "answers": list(example.answers) if example is not None and row["target"] == example.target else [],
        "choices": row["choices"],
        "answer_type": row["answer_type"],
        "question_type": row["question_type"],
        "scene": scene,
        "program": example.program if example is not None and row["question"] == example.question else None,
        "tags": list(note.tags),
        "note": note.note,
        "said": row["reply"],
    }
    if image is not None:
        found["image"] = _data_url(image)
    return {name: value for name, value in found.items() if value not in (None, "", [], ())}


def shown_image(site: Site, run: RunFolder, row: dict[str, Any]) -> tuple[Image | None, dict[str, Any] | None]:
    """The very image that was shown, by its digest, and its scene; (None, None) where it cannot be had again."""
    example = site.pictures.example(run, row["example_id"])
    if example is None or not row["image"]:
        return None, None
    if example.image is not None and example.image.digest == row["image"]:
        return example.image, None if example.scene is None else dict(example.scene)
    moved = moved_scene(run, row["example_id"]) if row["probe"] == "game" else None
    if moved is not None and row["variant"] == "moved":
        return moved.image("after"), dict(moved.after)
    if row["probe"] == "game":  # the scene as it stands, drawn by the game
        return example.image, None if example.scene is None else dict(example.scene)
    try:
        data = site.pictures.data(run)
        for part in (data.subset([example]), data):  # alone is quicker, and enough for most probes
            for query in made_again(run.config(), row["probe"], part, {example.id}):
                if query.image is not None and query.image.digest == row["image"]:
                    return query.image, None
    except (PfungstError, KeyError, ValueError):  # whatever is in the files of a run, its page opens
        return None, None
    return None, None


def _data_url(image: Image) -> str:
    content = image.read()
    kinds = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp", b"BM": "bmp"}
    kind = next((name for start, name in kinds.items() if content.startswith(start)), "png")
    return data_url(f"image/{kind}", content)
