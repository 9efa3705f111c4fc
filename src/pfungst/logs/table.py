"""Plain tables: one reply a row, in columns that `?reply=COLUMN&id=COLUMN` may name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, make_dataclass
from typing import Any

from pfungst.data.fields import Bad
from pfungst.logs import cells
from pfungst.logs.records import About, LogFormat, Record
from pfungst.logs.source import Source

REPLIES = (
    "reply", "prediction", "predictions", "pred", "predict", "predicted_answer", "response", "model_response", "output",
    "outputs", "model_output", "model_answer", "model_prediction", "generated_text", "generation", "completion",
)  # fmt: skip
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "reply": REPLIES,
    "id": ("id", "question_id", "questionId", "index", "qid", "uid", "sample_id", "qa_id"),
    "question": ("question", "query"),
    "prompt": ("prompt", "input", "instruction"),
    "answers": ("answers",),
    "answer": ("answer", "target", "label", "gt", "ground_truth", "groundtruth", "gt_answer", "gold", "reference"),
    "choices": ("choices", "options"),
    "image": ("image_id", "imageId", "image", "image_path", "image_file", "image_source", "img"),
    "category": ("category", "question_type", "type"),
    "answer_type": ("answer_type",),
    "confidence": ("confidence",),
    "model": ("model", "model_id", "model_name"),
}
"""What is read, and the columns it is read from; the first that holds something counts."""

ColumnOptions = make_dataclass("ColumnOptions", [(name, str, field(default="")) for name in COLUMNS])
"""The column of each, where it is called otherwise. `id=row` counts the rows; `id=a+b` joins columns."""


class TableLog(LogFormat):
    """JSON, JSON lines, CSV, TSV or Parquet with columns of any name: FILE?reply=output&id=qid."""

    name = "table"
    title = "a table of answers"
    options = ColumnOptions

    def claims(self, source: Source) -> float:
        return 0.2 if set(source.columns) & set(REPLIES) else 0.0

    def record(self, row: Mapping[str, Any], where: str, source: Source) -> Record:
        choices = self._choices(row)
        answers = cells.listed(self._get(row, "answers"), "answers")
        said = self._get(row, "answer")
        target = None if said is None else self._target(said, choices, row)
        if target is None and len(set(answers)) == 1:
            target = answers[0]
        reply = self._get(row, "reply")
        if reply is None and not set(self._columns("reply")) & set(source.columns):
            raise Bad(f"there is no reply: the columns are {', '.join(row)}. Name it with ?reply=COLUMN.")
        if reply is None and any(row.get(column) == "" for column in self._columns("reply")):
            reply = ""  # the model said nothing, which is not the same as a request that failed
        confidence = cells.number(self._get(row, "confidence"))
        return Record(
            self._id(row, where),
            _reply(reply),
            where,
            cells.optional(self._get(row, "question"), "the question"),
            cells.optional(self._get(row, "prompt"), "the prompt") if _is_text(self._get(row, "prompt")) else "",
            choices,
            answers or (() if target is None else (target,)),
            target,
            cells.optional(self._get(row, "image"), "the image") if _is_text(self._get(row, "image")) else "",
            cells.optional(self._get(row, "answer_type"), "answer_type"),
            cells.optional(self._get(row, "category"), "the category"),
            confidence if confidence is not None and 0 <= confidence <= 1 else None,
        )

    def about(self, source: Source) -> About:
        models = {str(self._get(row, "model")) for _, row in source.rows if self._get(row, "model") is not None}
        return About(models.pop() if len(models) == 1 else "")

    def _columns(self, what: str) -> tuple[str, ...]:
        return (self.set[what],) if self.set.get(what) else COLUMNS[what]

    def _get(self, row: Mapping[str, Any], what: str) -> Any:
        return cells.first(row, self._columns(what))

    def _choices(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        value = self._get(row, "choices")
        return (
            cells.listed(value, "the choices")
            if value is not None
            else cells.option_columns(row, self._get(row, "answer"))
        )

    def _target(self, said: Any, choices: tuple[str, ...], row: Mapping[str, Any]) -> str:
        """Beside options in columns A, B ... the answer is a letter; beside a list it may be its number from 0."""
        lettered = self._get(row, "choices") is None
        if choices and not lettered and isinstance(said, int) and not isinstance(said, bool) and said < len(choices):
            return choices[said]
        return cells.target_of(said, choices, "the right answer", lettered)

    def _id(self, row: Mapping[str, Any], where: str) -> str:
        column = self.set.get("id", "")
        if column and column not in row:
            if column == "row":
                return where.rpartition(" ")[2]
            if "+" in column:
                return "_".join(cells.identifier(row.get(part), part) for part in column.split("+"))
        value = self._get(row, "id")
        if value is None and column:
            raise Bad(f"the column {column} is empty.")
        return "" if value is None else cells.identifier(value, "the id")


def _is_text(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _reply(value: Any) -> str | None:
    """The reply as text; of a list the only one. None where there is none: nothing came back."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return cells.text(value, "the reply") if cells.known(value) else None
