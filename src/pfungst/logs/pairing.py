"""Which question of a data set a record answers: by id, by row number, or by image and question where unique."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pfungst.core import DataError, Dataset, Example
from pfungst.logs.records import Log, Record

_NUMBER = re.compile(r"(\d+)$")
_ADDED = re.compile(r"(\d+)\.0|(.+\.(?:jpe?g|png|webp|gif|bmp|tiff?)):\d+", re.IGNORECASE)


@dataclass(frozen=True)
class Pairing:
    """The example of each record of a log."""

    examples: tuple[Example | None, ...]
    """In the order of the records; None where the data set has no such question."""
    notes: tuple[str, ...] = ()
    other: str = ""
    """That ids mean other questions in the log, in a sentence; one of the notes."""

    @property
    def found(self) -> int:
        return sum(example is not None for example in self.examples)


def pair(log: Log, data: Dataset) -> Pairing:
    """Find the example of every record.

    An id of the data set is believed unless the prompt in the log asks something else; a row number is checked in the
    same way. Where there is no id, or it is wrong, the question (and the image, where both sides name it) decides, if
    it fits one example only. Words that the log asks under several ids, of images that it does
    not name, decide nothing: they may fit one example only because the data set lacks the others.
    """
    by_id = {example.id: example for example in data}
    spellings = Counter(_spelling(id_) for id_ in by_id)
    by_spelling = {_spelling(id_): one for id_, one in by_id.items() if spellings[_spelling(id_)] == 1}
    questions: dict[str, list[Example]] = {}
    for one in data:
        questions.setdefault(_plain(one.question), []).append(one)
    asked: dict[str, set[str]] = {}
    found: list[Example | None] = []
    clashes: list[tuple[Record, Example]] = []
    for record in log.records:
        asked.setdefault(_plain(record.asked), set()).add(record.group or record.id)
        example: Example | None = None
        if not record.row_number:
            example = by_id.get(record.id) or by_spelling.get(_spelling(record.id))
        elif record.id.isdigit() and int(record.id) < len(data):
            example = data[int(record.id)]
        if example is not None and not _fits(record, example):
            clashes.append((record, example))
            example = None
        found.append(example)
    by_question = 0
    for at, record in enumerate(log.records):
        if found[at] is None and (record.image_id or len(asked[_plain(record.asked)]) == 1):
            found[at] = _by_question(record, questions)
            by_question += found[at] is not None
    paired = sum(example is not None for example in found)
    if not paired:
        raise DataError(_nothing(log, data, clashes))
    notes, other = [], ""
    if clashes:
        record, example = clashes[0]
        other = (
            f"{log.path}: {len(clashes)} of {len(log.records)} ids mean another question in {data.name} (first: "
            f"{record.where}, id {record.id}, asks {record.asked!r:.80}; there it is {example.question!r:.80})."
        )
        notes.append(other)
    if by_question:
        notes.append(f"{log.path}: {by_question} answers were paired by their question, not by an id.")
    several = any(record.take or record.condition for record in log.records)
    twice = paired - len({example.id for example in found if example is not None})
    if twice and not several:
        notes.append(f"{log.path}: {twice} answers belong to a question that has one already; the last one counts.")
    return Pairing(tuple(found), tuple(notes), other)


def _fits(record: Record, example: Example) -> bool:
    """Whether the record can be about this example: what it asks contains the question, where it says what it asks."""
    if record.question:
        return _plain(example.question) == _plain(record.question) or _plain(example.question) in _plain(record.asked)
    if record.prompt:
        return _plain(example.question) in _plain(record.prompt)
    return True


def _by_question(record: Record, questions: dict[str, list[Example]]) -> Example | None:
    texts = [record.question, record.prompt, *record.prompt.split("\n")]
    for text in texts:
        candidates = questions.get(_plain(text), []) if text.strip() else []
        if record.image_id and len(candidates) > 1:
            candidates = [one for one in candidates if same_image(one.image_id, record.image_id)]
        elif record.image_id:
            candidates = [one for one in candidates if not one.image_id or same_image(one.image_id, record.image_id)]
        if len(candidates) == 1:
            return candidates[0]
    return None


def same_image(first: str, second: str) -> bool:
    """Whether two names mean one image: `COCO_val2014_000000000042.jpg`, `val/000000000042` and `42` do."""
    return _image(first) == _image(second)


def _image(name: str) -> str:
    base = re.split(r"[\\/]", name)[-1].casefold()
    bare = re.sub(r"\.(jpe?g|png|webp|gif|bmp|tiff?)$", "", base)
    number = _NUMBER.search(bare)
    return str(int(number[1])) if number and (bare == number[1] or bare.startswith("coco")) else bare


def _spelling(id_: str) -> str:
    """An id without what tables add: 42.0 for 42, and `a.jpg:1` for the only question that is called like its image."""
    added = _ADDED.fullmatch(id_)
    return added[1] or added[2] if added else id_


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _nothing(log: Log, data: Dataset, clashes: Sequence[tuple[Record, Example]]) -> str:
    if clashes:
        record, example = clashes[0]
        return (
            f"None of the {len(log.records)} answers in {log.path} belongs to a question of '{data.name}': "
            f"{record.where}, id {record.id}, asks {record.asked!r:.80}, but there {record.id} is "
            f"{example.question!r:.80}. Is it the right data set, and the right split?"
        )
    first = log.records[0]
    named = f"ids such as '{first.id}'" if first.id else "no ids"
    return (
        f"None of the {len(log.records)} answers in {log.path} belongs to a question of '{data.name}': the file has "
        f"{named}, the data set such as '{data[0].id}'. Name the column of the ids: {log.path}?id=COLUMN."
    )
