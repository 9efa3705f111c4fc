"""Answers from a file: score predictions without the model that made them."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pfungst.core import Answer, DataError, Dataset, PlayerError, Query
from pfungst.players.hashing import digest
from pfungst.players.lookup import Lookup, content_digest, required

_IDS = ("question_id", "id")


class RecordedPlayer:
    """Gives the answers of a predictions file to the examples of a data set.

    The file is an official VQA results file (a JSON list of `{"question_id": 1, "answer": "red"}`) or one such
    object a line (JSONL), plain or gzipped. `id` may stand for `question_id`; `confidence` (in [0, 1]) and `scores`
    (one a choice) are read where present. Ids are compared as text.

    A query is answered only if it is an example of the data set as it stands: same question, picture and choices. A
    disturbed question has no recorded answer, so it is refused, never answered with that of the clean question;
    `knows(query)` tells beforehand. `missing` is the answer for examples that the file leaves out; without it they are
    an error when asked. `notes` holds sentences about the match that a user should see.
    """

    reads_images = False

    def __init__(self, file: str | Path, data: Dataset | None, *, missing: str | None = None, name: str = "") -> None:
        data = required(data, "recorded")
        self._file = Path(file)
        self._missing = missing
        raw = _read(self._file)
        self._answers = _records(self._file, raw)
        self._lookup = Lookup(data)
        ids = {example.id for example in data}
        found = ids & self._answers.keys()
        if not found:
            raise PlayerError(
                f"None of the {len(self._answers)} answers in {self._file} belongs to a question of '{data.name}': "
                f"the file has ids such as '{next(iter(self._answers))}', the data set such as '{data[0].id}'."
            )
        notes = []
        if len(found) < len(ids):
            notes.append(f"{self._file} has no answer for {len(ids) - len(found)} of {len(ids)} questions.")
        if len(found) < len(self._answers):
            notes.append(f"{len(self._answers) - len(found)} answers in {self._file} belong to no question here.")
        self.notes: tuple[str, ...] = tuple(notes)
        self.name = name or f"recorded:{self._file.name}"
        self.fingerprint = f"recorded-1-{digest(hashlib.sha256(raw).hexdigest(), content_digest(data), missing)}"

    def knows(self, query: Query) -> bool:
        """Whether this query is an example as it stands, with an answer in the file."""
        return any(example.id in self._answers or self._missing is not None for example in self._lookup.exact(query))

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        return [self._one(query) for query in queries]

    def _one(self, query: Query) -> Answer:
        examples = self._lookup.exact(query)
        if not examples:
            raise PlayerError(
                f"{self.name} has no answer to '{query.question}' asked in this way: recorded answers cover the "
                f"questions of the data set as they stand. Leave out probes that change question, picture or choices."
            )
        known = {e.id: self._answers[e.id] for e in examples if e.id in self._answers}
        if len({answer.text for answer in known.values()}) > 1 and query.image is None:
            raise PlayerError(
                f"{self.name} cannot tell the questions {', '.join(sorted(known)[:3])} apart: they have the same words "
                f"and no picture. Give the pictures, or a data set whose records name them (image_id)."
            )
        if known:
            # The same question about the same picture, recorded twice: the first counts, as one query is asked once.
            return next(iter(known.values()))
        if self._missing is not None:
            return Answer(self._missing)
        raise PlayerError(
            f"{self._file} has no answer for question {examples[0].id} ('{query.question}'). "
            f"Add it, or set the option missing to the text that counts instead."
        )


def _read(file: Path) -> bytes:
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise DataError.at(file, "", f"the recorded answers cannot be read ({error.strerror or error}).") from error
    if raw[:2] != b"\x1f\x8b":
        return raw
    try:
        return gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError.at(file, "", f"the file is not complete gzip data ({error}).", "Copy it again.") from error


def _records(file: Path, raw: bytes) -> dict[str, Answer]:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError.at(file, f"byte {error.start}", "this is not UTF-8 text.") from error
    answers: dict[str, Answer] = {}
    for where, record in _parsed(file, text):
        key, answer = _record(file, where, record)
        if answers.setdefault(key, answer) != answer:
            raise DataError.at(file, where, f"question {key} has a second, different answer.", "Keep one of them.")
    if not answers:
        raise DataError.at(file, "", "there are no answers in this file.")
    return answers


def _parsed(file: Path, text: str) -> Iterator[tuple[str, Any]]:
    if text.lstrip()[:1] == "[":
        records = _json(file, "", text)
        yield from ((f"record {number}", record) for number, record in enumerate(records, 1))
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield f"line {number}", _json(file, f"line {number}", line)


def _json(file: Path, where: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError.at(file, where, f"this is not JSON ({error}).") from error


def _record(file: Path, where: str, record: Any) -> tuple[str, Answer]:
    if not isinstance(record, dict):
        raise DataError.at(file, where, f"expected an object with question_id and answer, not {record!r:.60}.")
    key = next((record[name] for name in _IDS if name in record), None)
    if not isinstance(key, str | int) or isinstance(key, bool):
        raise DataError.at(file, where, f"question_id should be a number or text, not {key!r:.60}.")
    said = record.get("answer")
    if isinstance(said, int) and not isinstance(said, bool):
        said = str(said)
    if not isinstance(said, str):
        raise DataError.at(file, where, f"answer should be text, not {said!r:.60}.")
    confidence = record.get("confidence")
    if confidence is not None and not (_number(confidence) and 0 <= confidence <= 1):
        raise DataError.at(file, where, f"confidence should be a number from 0 to 1, not {confidence!r:.60}.")
    scores = record.get("scores")
    if scores is not None and not (isinstance(scores, list) and all(_number(score) for score in scores)):
        raise DataError.at(file, where, f"scores should be a list of numbers, not {scores!r:.60}.")
    return str(key), Answer(
        said,
        confidence=None if confidence is None else float(confidence),
        scores=None if scores is None else tuple(float(score) for score in scores),
    )


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value
