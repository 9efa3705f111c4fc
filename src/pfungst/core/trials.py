"""The trials of a run as Parquet: written as they come, read by columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pfungst.core.files import jsonable, replacing, storable
from pfungst.core.parquet import WRITING
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
    import pyarrow.parquet as pq

    with replacing(path) as temporary, pq.ParquetWriter(temporary, _schema(), **WRITING) as file:
        writer = TrialsWriter(file)
        yield writer
        writer.write()


class TrialsWriter:
    """Takes trials in any portions; the file is the same whatever they are.

    One row per variant, with the answer and its score: the way back from a number to what was asked.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._waiting: list[pa.Table] = []
        self._rows = 0

    def add(self, trials: Sequence[AnsweredTrial], keys: Sequence[Row]) -> None:
        if not trials:
            return
        self._waiting.append(_table(_columns(trials, keys)))
        self._rows += len(self._waiting[-1])
        if self._rows >= ROW_GROUP:
            self.write()

    def write(self) -> None:
        """What waits, as a row group."""
        import pyarrow as pa

        if self._rows:
            self._file.write_table(pa.concat_tables(self._waiting).combine_chunks())
        self._waiting, self._rows = [], 0


def _columns(trials: Sequence[AnsweredTrial], keys: Sequence[Row]) -> dict[str, list[Any]]:
    each = [(trial, variant) for trial in trials for variant in trial.trial.variants]
    queries = [variant.query for _, variant in each]
    answers = [answer for trial in trials for answer in trial.answers]
    notes = [json.dumps(jsonable(t.trial.notes), sort_keys=True) if t.trial.notes else None for t in trials]
    return {
        "example_id": [trial.example.id for trial, _ in each],
        "image_id": [trial.example.image_id for trial, _ in each],
        "cluster": [trial.example.cluster for trial, _ in each],
        "variant": [variant.name for _, variant in each],
        "question": [query.question for query in queries],
        "choices": [query.choices for query in queries],
        "image": [query.image.digest if query.image is not None else None for query in queries],
        "take": [query.take for query in queries],
        "key": [key for row in keys for key in row],
        "keeps": [trial.trial.keeps for trial, _ in each],
        "notes": [note for trial, note in zip(trials, notes, strict=True) for _ in trial.answers],
        "answer": [answer.text for answer in answers],
        "confidence": [answer.confidence for answer in answers],
        "score": [score for trial in trials for score in trial.scores],
        "target": [trial.example.target if variant.target is None else variant.target for trial, variant in each],
        "answer_type": [trial.example.answer_type for trial, _ in each],
        "question_type": [trial.example.question_type for trial, _ in each],
        "raw": [answer.reply for answer in answers],
        "unread": [answer.unread for answer in answers],
        "contrast": [trial.example.contrast for trial, _ in each],
    }


def _table(columns: dict[str, list[Any]]) -> pa.Table:
    import pyarrow as pa

    try:
        return pa.table(columns, schema=_schema())
    except UnicodeError:  # a lone surrogate somewhere
        for name, kind in _COLUMNS.items():
            if kind == "string":
                columns[name] = [None if text is None else storable(text) for text in columns[name]]
        columns["choices"] = [[storable(choice) for choice in choices] for choices in columns["choices"]]
        return pa.table(columns, schema=_schema())


def _schema() -> pa.Schema:
    import pyarrow as pa

    kinds = {"list": pa.list_(pa.string()), "string": pa.string(), "int": pa.int32(), "real": pa.float64()}
    return pa.schema([(name, kinds.get(kind) or pa.bool_()) for name, kind in _COLUMNS.items()])


_COLUMNS = {
    "example_id": "string", "image_id": "string", "cluster": "string", "variant": "string", "question": "string",
    "choices": "list",
    "image": "string", "take": "int", "key": "string", "keeps": "string", "notes": "string", "answer": "string",
    "confidence": "real", "score": "real", "target": "string", "answer_type": "string",
    "question_type": "string", "raw": "string", "unread": "bool", "contrast": "string",
}  # fmt: skip
