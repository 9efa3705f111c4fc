"""LLaVA's answer files: `{"question_id", "prompt", "text", "answer_id", "model_id", "metadata"}`, one a line.

`text` is the reply. In LLaVA's question files `text` is the question: those have no `prompt`, `answer_id` or
`model_id`, and are not claimed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from pfungst.logs.records import About, LogFormat, Record
from pfungst.rows import cells
from pfungst.rows.source import Source


class Llava(LogFormat):
    """LLaVA answer files: question_id, prompt and text."""

    name = "llava"
    title = "LLaVA answers"

    def claims(self, source: Source) -> float:
        columns = set(source.columns)
        return 0.9 if {"question_id", "text"} <= columns and columns & {"prompt", "answer_id", "model_id"} else 0.0

    def record(self, row: Mapping[str, Any], where: str, source: Source) -> Record:
        return Record(
            cells.identifier(row.get("question_id"), "question_id"),
            cells.text(row.get("text"), "text"),
            where,
            prompt=cells.optional(row.get("prompt"), "prompt"),
            image_id=cells.optional(row.get("image"), "image"),
            question_type=cells.optional(row.get("category"), "category"),
        )

    def about(self, source: Source) -> About:
        models = Counter(str(row["model_id"]) for _, row in source.rows if row.get("model_id"))
        return About(models.most_common(1)[0][0] if models else "")
