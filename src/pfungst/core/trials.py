"""The trials of a run as Parquet."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pfungst.core.files import jsonable, storable, write_atomic
from pfungst.core.types import AnsweredTrial


def write_trials(path: Path, trials: Sequence[AnsweredTrial], keys: Sequence[tuple[str, ...]]) -> None:
    """One row per variant, with the answer and its score: the way back from a number to what was asked."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    for trial, row in zip(trials, keys, strict=True):
        example = trial.example
        notes = json.dumps(jsonable(trial.trial.notes), sort_keys=True) if trial.trial.notes else None
        for variant, answer, score, key in zip(trial.trial.variants, trial.answers, trial.scores, row, strict=True):
            image = variant.query.image
            choices = [storable(choice) for choice in variant.query.choices]
            values = (
                example.id, example.image_id, variant.name, variant.query.question,
                choices, image.digest if image is not None else None, variant.query.take,
                key, trial.trial.keeps, notes, answer.text, answer.confidence, score,
                example.target if variant.target is None else variant.target,
                example.answer_type, example.question_type, answer.reply, answer.unread, example.contrast,
            )  # fmt: skip
            for name, value in zip(_COLUMNS, values, strict=True):
                rows[name].append(storable(value) if isinstance(value, str) else value)
    schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in _COLUMNS.items() if kind != "list"])
    schema = schema.insert(4, pa.field("choices", pa.list_(pa.string())))
    buffer = io.BytesIO()
    pq.write_table(pa.table(rows, schema=schema), buffer, compression="zstd")
    write_atomic(path, buffer.getvalue())


_COLUMNS = {
    "example_id": "string", "image_id": "string", "variant": "string", "question": "string", "choices": "list",
    "image": "string", "take": "int32", "key": "string", "keeps": "string", "notes": "string", "answer": "string",
    "confidence": "float64", "score": "float64", "target": "string", "answer_type": "string",
    "question_type": "string", "raw": "string", "unread": "bool_", "contrast": "string",
}  # fmt: skip
