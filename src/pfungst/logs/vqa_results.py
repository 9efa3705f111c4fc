"""Official VQA results: `[{"question_id": 262148000, "answer": "red"}, ...]`; the question and what is right are read
where somebody has added them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pfungst.logs.records import LogFormat, Record
from pfungst.logs.table import REPLIES, TRUTHS
from pfungst.rows import cells
from pfungst.rows.fields import Bad
from pfungst.rows.source import Source

IDS = ("question_id", "id", "questionId")


class VqaResults(LogFormat):
    """Official VQA results: question_id and answer; confidence and scores if there are any."""

    name = "vqa-results"
    title = "VQA results"

    def claims(self, source: Source) -> float:
        columns = set(source.columns)
        if not columns & {"answer", "prediction"} or not columns & set(IDS):
            return 0.0
        if "answer" in columns:  # beside a reply it is the truth
            return 0.6 if not {column.casefold() for column in columns} & set(REPLIES) else 0.0
        return 0.6 if columns == {"questionId", "prediction"} else 0.0  # GQA's predictions

    def record(self, row: Mapping[str, Any], where: str, source: Source) -> Record:
        key = cells.first(row, IDS)
        if not isinstance(key, str | int) or isinstance(key, bool):
            raise Bad(f"question_id should be a number or text, not {key!r:.60}.")
        said = row["answer"] if "answer" in row else row.get("prediction")
        if isinstance(said, int) and not isinstance(said, bool):
            said = str(said)
        if not isinstance(said, str):
            raise Bad(f"answer should be text, not {said!r:.60}.")
        confidence = row.get("confidence")
        if confidence is not None and not (cells.number(confidence) is not None and 0 <= confidence <= 1):
            raise Bad(f"confidence should be a number from 0 to 1, not {confidence!r:.60}.")
        scores = row.get("scores")
        if scores is not None and not (isinstance(scores, list) and all(cells.number(s) is not None for s in scores)):
            raise Bad(f"scores should be a list of numbers, not {scores!r:.60}.")
        right = cells.first(row, TRUTHS)
        answers = cells.listed(right, "the right answer") if right is not None else ()
        return Record(
            cells.identifier(key, "question_id"),
            said,
            where,
            cells.label(row.get("question")),
            answers=answers,
            target=answers[0] if len(set(answers)) == 1 else None,
            confidence=None if confidence is None else float(confidence),
            scores=None if scores is None else tuple(float(score) for score in scores),
        )
