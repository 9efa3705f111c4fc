"""VLMEvalKit: `MODEL_DATASET.xlsx` (or .tsv, .json): the data set's columns and `prediction`.

A group of a circular evaluation holds one question with its options rotated: rows index, index + 1,000,000 and so on,
or rows with one `g_index`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pfungst.logs.records import About, LogFormat, Record
from pfungst.rows import cells
from pfungst.rows.source import Source
from pfungst.rows.vlmevalkit import CIRCLE

FAILED = "Failed to obtain answer"
"""Stands in a prediction where the request failed."""
_JUDGED = ("hit", "score", "extracted", "match", "eval_score")


class VlmEvalKit(LogFormat):
    """VLMEvalKit predictions: index, question, options A, B ..., answer and prediction, as xlsx, tsv or json."""

    name = "vlmevalkit"
    title = "VLMEvalKit predictions"
    has = frozenset({"index", "prediction"})
    sure = 0.7

    def record(self, row: Mapping[str, Any], where: str, source: Source) -> Record:
        choices = cells.option_columns(row, row.get("answer"))
        answers, target = _truth(row.get("answer"), choices)
        # An empty cell is an empty reply: a request that failed says so.
        reply = cells.optional(row.get("prediction"), "prediction")
        return Record(
            cells.identifier(row.get("index"), "index"),
            None if FAILED in reply else reply,
            where,
            question=cells.optional(row.get("question"), "question"),
            choices=choices,
            answers=answers,
            target=target,
            image_id=_image(row),
            question_type=cells.optional(row.get("category"), "category"),
            thinking=cells.optional(row.get("thinking"), "thinking"),
            group=cells.optional(row.get("g_index"), "g_index"),
            metrics={name: row[name] for name in _JUDGED if name in row},
        )

    def about(self, source: Source) -> About:
        # MODEL_DATASET: in which of the underscores the name is cut only the folder can tell.
        folder = source.path.parent.name
        parent = source.path.parent.parent.name
        for model in (folder, parent):
            # The rest of `vila_8b_MMStar` in a folder `vila` is not the name of a data set.
            if model and source.stem.startswith(f"{model}_") and source.stem[len(model) + 1 :][:1].isalpha():
                return About(model, source.stem[len(model) + 1 :])
        return About()

    def finish(self, records: Sequence[Record]) -> Sequence[Record]:
        """Name the rotations of a circular evaluation, where it is one."""
        if any(record.group for record in records):
            seen: dict[str, dict[str, int]] = {}
            found = []
            for record in sorted(records, key=lambda one: one.id != one.group):
                rows = seen.setdefault(record.group or record.id, {})
                place = rows.setdefault(record.id, len(rows))
                found.append(replace(record, group=record.group or record.id, condition=f"rotation {place}"))
            return found if max(map(len, seen.values())) > 1 else records
        return rotations(records)


def rotations(records: Sequence[Record]) -> Sequence[Record]:
    """The same records; as rotations where their ids count on from 1,000,000 and all originals are there."""
    numbers = [int(record.id) if record.id.isdigit() else -1 for record in records]
    known = set(numbers)
    if -1 in known or max(numbers) < CIRCLE or any(number % CIRCLE not in known for number in numbers):
        return records
    return [
        replace(record, group=str(number % CIRCLE), condition=f"rotation {number // CIRCLE}")
        for record, number in zip(records, numbers, strict=True)
    ]


def _truth(value: Any, choices: Sequence[str]) -> tuple[tuple[str, ...], str | None]:
    if not cells.known(value) or value == "":
        return (), None
    if choices:
        right = cells.right_answer(value, choices, "the answer")  # as it is: the letter of an option that is empty
        return (right,), right
    answers = cells.listed(value, "the answer")
    return answers, answers[0] if len(set(answers)) == 1 else None


def _image(row: Mapping[str, Any]) -> str:
    """The file name of the picture without the folders of the machine it lay on."""
    path = row.get("image_path")
    if not isinstance(path, str):
        return ""
    return path.rpartition("/")[2] if path.startswith("/") else path.replace("\\", "/")
