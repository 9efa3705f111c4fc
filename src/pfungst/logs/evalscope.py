"""evalscope: `predictions/MODEL/*.jsonl`, with the right answers in `reviews/MODEL/*.jsonl` of the same name.

Both files are appended to: the last line of an index counts. With repeats each has an index of its own; a review names
their group, which is the row of the data set.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pfungst.core import DataError
from pfungst.logs.inspect_ai import said
from pfungst.logs.records import About, LogFormat, Record
from pfungst.rows import cells, options
from pfungst.rows.source import Source, open_source


class EvalScope(LogFormat):
    """evalscope predictions or reviews: index with model_output, or with sample_score."""

    name = "evalscope"
    title = "evalscope predictions"
    repeats = "last"
    _found: Mapping[str, Mapping[str, Any]] | None = None

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._takes: dict[int, dict[str, int]] = {}

    def claims(self, source: Source) -> float:
        columns = set(source.columns)
        return 0.9 if "index" in columns and columns & {"model_output", "sample_score"} else 0.0

    def record(self, row: Mapping[str, Any], where: str, source: Source) -> Record:
        key = cells.identifier(row.get("index"), "index")
        review = row if "sample_score" in row else self._reviews(source).get(key, {})
        judged = cells.mapping(review.get("sample_score"))
        score = cells.mapping(judged.get("score"))
        group, take = cells.whole(judged.get("group_id")), 0
        if group is not None:
            takes = self._takes.setdefault(group, {})
            key, take = str(group), takes.setdefault(key, len(takes))
        output = cells.mapping(row.get("model_output"))
        reply, told = said(output)
        reply = reply if output else score.get("prediction")
        target = cells.optional(review.get("target"), "target")
        prompt = _prompt(row) or _prompt(review)
        choices = options.options_in(prompt) if len(target.strip()) == 1 else ()
        right = options.target_of(target, choices, "target", lettered=True) if target else None
        return Record(
            key,
            reply if isinstance(reply, str) else None,
            where,
            prompt=prompt,
            choices=choices,
            answers=() if right is None else (right,),
            target=right,
            row_number=True,
            take=take,
            metrics=cells.mapping(score.get("value")),
            **told,
        )

    def about(self, source: Source) -> About:
        named = source.rows[0][1].get("model")
        notes: tuple[str, ...] = ()
        if "sample_score" not in source.columns and not self._reviews(source):
            notes = (f"{source.path} has no right answers, and there is no file of reviews next to it.",)
        return About(str(named or source.path.parent.name), source.stem, notes=notes)

    def _reviews(self, source: Source) -> Mapping[str, Mapping[str, Any]]:
        if self._found is None:
            self._found = _reviews(source.path)
        return self._found


def _reviews(path: Path) -> Mapping[str, Mapping[str, Any]]:
    """The lines of the review that belongs to a predictions file, by index."""
    beside = path.parent.parent.parent / "reviews" / path.parent.name / path.name
    if path.parent.parent.name != "predictions" or not beside.exists():
        return {}
    try:
        return {str(row.get("index")): row for _, row in open_source(beside).rows}
    except DataError:
        return {}


def _prompt(row: Mapping[str, Any]) -> str:
    return cells.last_asked(row.get("messages") or row.get("input"))
