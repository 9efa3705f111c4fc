"""The trials of a run as Parquet: written as they come, read by columns."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pfungst.core.files import jsonable, publish, storable
from pfungst.core.types import AnsweredTrial

if TYPE_CHECKING:
    import pyarrow as pa

Row = tuple[str, ...]
"""The keys of a trial's queries in the answer store."""
ROW_GROUP = 1 << 17
"""Least rows of a row group, so that a large file can be read piece by piece. A trial lies in one group as a whole."""


@contextmanager
def trials_file(path: Path) -> Iterator[TrialsWriter]:
    """A trials file that is there as a whole in the end, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    writer = TrialsWriter(temporary)
    try:
        yield writer
        writer.close()
        publish(temporary, path)
    finally:
        writer.abandon()
        temporary.unlink(missing_ok=True)


def write_trials(path: Path, trials: Sequence[AnsweredTrial], keys: Sequence[Row]) -> None:
    """One row per variant, with the answer and its score: the way back from a number to what was asked."""
    with trials_file(path) as file:
        file.add(trials, keys)


class TrialsWriter:
    """Takes trials in any portions; the file is the same whatever they are."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        self._waiting: list[pa.Table] = []
        self._rows = 0
        self._file = pq.ParquetWriter(path, _schema(), compression="zstd")

    def add(self, trials: Sequence[AnsweredTrial], keys: Sequence[Row]) -> None:
        import pyarrow as pa

        if not trials:
            return
        self._waiting.append(pa.table(_columns(trials, keys), schema=_schema()))
        self._rows += len(self._waiting[-1])
        if self._rows >= ROW_GROUP:
            self._write()

    def close(self) -> None:
        if self._rows:
            self._write()
        self._file.close()

    def abandon(self) -> None:
        if self._file.is_open:
            self._file.close()

    def _write(self) -> None:
        import pyarrow as pa

        self._file.write_table(pa.concat_tables(self._waiting).combine_chunks())
        self._waiting, self._rows = [], 0


def _columns(trials: Sequence[AnsweredTrial], keys: Sequence[Row]) -> Mapping[str, Sequence[Any]]:
    columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    for trial, row in zip(trials, keys, strict=True):
        example, made, many = trial.example, trial.trial, len(row)
        notes = json.dumps(jsonable(made.notes), sort_keys=True) if made.notes else None
        for name, value in (
            ("example_id", example.id), ("image_id", example.image_id), ("keeps", made.keeps), ("notes", notes),
            ("answer_type", example.answer_type), ("question_type", example.question_type),
            ("contrast", example.contrast),
        ):  # fmt: skip
            columns[name].extend(repeat(value, many))
        columns["key"].extend(row)
        columns["score"].extend(trial.scores)
        for variant in made.variants:
            query = variant.query
            columns["variant"].append(variant.name)
            columns["question"].append(query.question)
            columns["choices"].append([storable(choice) for choice in query.choices])
            columns["image"].append(query.image.digest if query.image is not None else None)
            columns["take"].append(query.take)
            columns["target"].append(example.target if variant.target is None else variant.target)
        for answer in trial.answers:
            columns["answer"].append(answer.text)
            columns["confidence"].append(answer.confidence)
            columns["raw"].append(answer.reply)
            columns["unread"].append(answer.unread)
    for name, kind in _COLUMNS.items():
        if kind == "string":
            columns[name] = [value if value is None or value.isascii() else storable(value) for value in columns[name]]
    return columns


def _schema() -> pa.Schema:
    import pyarrow as pa

    kinds = {"list": pa.list_(pa.string()), "string": pa.string(), "int": pa.int32(), "real": pa.float64()}
    return pa.schema([(name, kinds.get(kind) or pa.bool_()) for name, kind in _COLUMNS.items()])


_COLUMNS = {
    "example_id": "string", "image_id": "string", "variant": "string", "question": "string", "choices": "list",
    "image": "string", "take": "int", "key": "string", "keeps": "string", "notes": "string", "answer": "string",
    "confidence": "real", "score": "real", "target": "string", "answer_type": "string",
    "question_type": "string", "raw": "string", "unread": "bool", "contrast": "string",
}  # fmt: skip
