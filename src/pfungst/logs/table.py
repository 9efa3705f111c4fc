"""Plain tables: one reply a row, in columns that `?reply=COLUMN&id=COLUMN` may name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field, make_dataclass
from typing import Any

from pfungst.logs.records import About, LogFormat, Record
from pfungst.rows import cells
from pfungst.rows.answer_key import AnswerIs, AnswerKey
from pfungst.rows.fields import Bad, shown
from pfungst.rows.source import Source

REPLIES = (
    "reply", "prediction", "predictions", "pred", "predict", "predicted_answer", "response", "model_response", "output",
    "outputs", "model_output", "model_answer", "model_prediction", "generated_text", "generation", "completion",
    "replies", "responses", "generations", "completions", "predicted_text",
)  # fmt: skip
TRUTHS = (
    "target", "label", "gt", "ground_truth", "groundtruth", "gt_answer", "gold", "reference", "correct_answer",
    "gold_answer",
)  # fmt: skip
"""What is right, wherever it stands; `answer` is that only beside a reply."""
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "reply": REPLIES,
    "id": ("id", "question_id", "questionId", "index", "qid", "uid", "sample_id", "qa_id", "instance_id"),
    "question": ("question", "query"),
    "prompt": ("prompt", "input", "instruction"),
    "answers": ("answers",),
    "answer": ("answer", *TRUTHS),
    "choices": ("choices", "options"),
    "image": ("image_id", "imageId", "image", "image_path", "image_file", "image_source", "img"),
    "category": ("category", "question_type", "type"),
    "answer_type": ("answer_type",),
    "confidence": ("confidence",),
    "model": ("model", "model_id", "model_name"),
}
"""What is read, and the columns it is read from; the first that holds something counts."""

_HIDDEN = re.compile(r"-[0-9]{1,3}")
UNIQUE = "name ids that are unique: ?id=COLUMN, ?id=COLUMN+COLUMN or ?id=row."
SECOND_ANSWER = (
    "If it repeats the question, say which column numbers the repetitions: ?take=COLUMN. If it was given under another "
    f"condition, say which column names that: `pfungst import --by COLUMN`. If it is another question, {UNIQUE}"
)

ColumnOptions = make_dataclass(
    "ColumnOptions",
    [*((name, str, field(default="")) for name in COLUMNS), ("answer_is", AnswerIs, field(default=""))],
)
"""The column of each, where it is called otherwise. `id=row` counts the rows; `id=a+b` joins columns. `answer_is` says
how right answers name an option."""


class TableLog(LogFormat):
    """JSON, JSON lines, CSV, TSV, xlsx or Parquet with columns of any name: FILE?reply=output&id=qid."""

    name = "table"
    title = "a table of answers"
    options = ColumnOptions
    _spelt: Mapping[str, tuple[str, ...]] | None = None
    _key: AnswerKey | None = None

    def claims(self, source: Source) -> float:
        return 0.2 if {column.casefold() for column in source.columns} & set(REPLIES) else 0.0

    def record(self, row: Mapping[str, Any], where: str, source: Source) -> Record:
        self._spell_as(source)
        choices, lettered = self._choices(row)
        answers = cells.listed(self._get(row, "answers"), "answers")
        said = self._get(row, "answer")
        if (several := _several(said)) is not None:
            answers = answers if choices else answers or several
            said = several[0] if choices and len(several) == 1 else None
        target = None if said is None else self._target(said, choices, lettered, source)
        if target is None and len(set(answers)) == 1:
            target = answers[0]
        reply = self._get(row, "reply")
        if reply is None and not set(self._columns("reply")) & set(source.columns):
            raise Bad(f"there is no reply: the columns are {', '.join(row)}. Name it with ?reply=COLUMN.")
        if reply is None and any(row.get(column) == "" for column in self._columns("reply")):
            reply = ""  # the model said nothing, which is not the same as a request that failed
        confidence = cells.number(self._get(row, "confidence"))
        return Record(
            self._id(row, where, source),
            _reply(reply),
            where,
            cells.optional(self._get(row, "question"), "the question"),
            cells.optional(self._get(row, "prompt"), "the prompt") if _is_text(self._get(row, "prompt")) else "",
            choices,
            answers or (() if target is None else (target,)),
            target,
            cells.label(self._get(row, "image")),
            cells.label(self._get(row, "answer_type")),
            cells.label(self._get(row, "category")),
            confidence if confidence is not None and 0 <= confidence <= 1 else None,
        )

    def _target(self, said: Any, choices: tuple[str, ...], lettered: bool, source: Source) -> str | None:
        """The right answer; of options, what the key of the whole file makes of it, and a letter beside options in
        columns A, B ... A negative number is none: data sets write -1 where the answer is hidden."""
        if not choices or (lettered and "answer_is" not in self.set):
            return cells.target_of(said, choices, "the right answer", lettered)
        if _HIDDEN.fullmatch(cells.text(said, "the right answer").strip()):
            return None
        if self._key is None:
            self._key = self._key_of(source)
        return self._key.right(self._key.meant(said, choices))

    def _key_of(self, source: Source) -> AnswerKey:
        """How all rows of the file name the right option."""
        key = AnswerKey(self.set.get("answer_is", ""))
        rows = []
        for where, row in source.rows:
            with suppress(Bad):  # told when the row itself is read
                choices, lettered = self._choices(row)
                said = self._get(row, "answer")
                if said is None or _several(said) or not choices or (lettered and "answer_is" not in self.set):
                    continue
                if not _HIDDEN.fullmatch(cells.text(said, "the right answer").strip()):
                    rows.append((where, key.meant(said, choices)))
                    key.add(rows[-1][1], str(source.path), where)
        for where, meant in rows:
            if not key.decides(meant):
                key.refuse(str(source.path), where, meant)
        return key

    def about(self, source: Source) -> About:
        models = {str(self._get(row, "model")) for _, row in source.rows if self._get(row, "model") is not None}
        return About(models.pop() if len(models) == 1 else "")

    def _spell_as(self, source: Source) -> None:
        """Columns may be spelt with capitals: Question, Answer, Prediction."""
        if self._spelt is None:
            self._spelt = {
                what: (*names, *(one for one in source.columns if one not in names and one.casefold() in names))
                for what, names in COLUMNS.items()
            }

    def _columns(self, what: str) -> tuple[str, ...]:
        return (self.set[what],) if self.set.get(what) else (self._spelt or COLUMNS)[what]

    def _get(self, row: Mapping[str, Any], what: str) -> Any:
        return cells.first(row, self._columns(what))

    def _choices(self, row: Mapping[str, Any]) -> tuple[tuple[str, ...], bool]:
        """The options, from one column or from one for each, and whether answers are always their letters."""
        value = self._get(row, "choices")
        if value is None:
            return cells.option_columns(row, self._get(row, "answer")), True
        if not isinstance(value, str) or isinstance(cells.literal(value), list | dict):
            return cells.listed(value, "the choices"), False
        inside = cells.lettered_options(value)
        return inside or tuple(part.strip() for part in value.split("|")), bool(inside)

    def _id(self, row: Mapping[str, Any], where: str, source: Source) -> str:
        column = self.set.get("id", "")
        if column and column not in row:
            if column == "row":
                return str(source.numbers[where])
            if "+" in column:
                return "_".join(cells.identifier(row.get(part), part) for part in column.split("+"))
        value = self._get(row, "id")
        if value is None and column:
            raise Bad(f"the column {column} is empty.")
        return "" if value is None else cells.identifier(value, "the id")


def _several(said: Any) -> tuple[str, ...] | None:
    """Right answers that stand in one cell as a list of texts, each of them right; of options all must be named, which
    no matcher reads. `[2, 5]` in a table of texts is one answer."""
    found = cells.literal(said) if isinstance(said, str) else said
    if not isinstance(found, list) or (isinstance(said, str) and not all(isinstance(one, str) for one in found)):
        return None
    return cells.listed(found, "the right answer")


def _is_text(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _reply(value: Any) -> str | None:
    """The reply as text; of a list the only one. None where there is none: nothing came back."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, list):
        raise Bad(f"there are {len(value)} replies in one row: {shown(value)}. Write one row per reply.")
    return cells.text(value, "the reply") if cells.known(value) else None
