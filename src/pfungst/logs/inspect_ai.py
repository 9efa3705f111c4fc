"""inspect, and evalscope, which writes its model outputs.

inspect writes `.eval` (a zip) and `.json` logs. The format is versioned but not frozen; what is read here has been the
same since version 2 of it.

evalscope writes `predictions/MODEL/*.jsonl`, with the right answers in `reviews/MODEL/*.jsonl` of the same name. Both
files are appended to: the last line of an index counts. With repeats each has an index of its own; a review names their
group, which is the row of the data set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pfungst.core import DataError
from pfungst.logs.records import About, LogFormat, Record
from pfungst.rows import cells
from pfungst.rows.source import Source, open_source

_ATTACHED = "attachment://"


@dataclass(frozen=True)
class InspectOptions:
    category: str = ""
    """Key of the metadata that holds the category."""
    image: str = ""
    """Key of the metadata that names the image."""


class Inspect(LogFormat):
    """inspect logs, .eval or .json."""

    name = "inspect"
    title = "inspect log"
    options = InspectOptions

    def claims(self, source: Source) -> float:
        inside = "eval" in source.header and {"id", "epoch"} <= set(source.columns)
        return 1.0 if inside else 0.0

    def record(self, row: Mapping[str, Any], where: str, source: Source) -> Record:
        metadata = cells.mapping(row.get("metadata"))
        output = cells.mapping(row.get("output"))
        choices = cells.listed(row.get("choices"), "choices") if row.get("choices") else ()
        answers = cells.listed(row.get("target"), "target") if cells.known(row.get("target")) else ()
        answers = tuple(cells.right_answer(answer, choices, "target") for answer in answers if answer != "")
        if choices and len(set(answers)) > 1:
            answers = ()  # all of them must be named, which no matcher reads
        reply, told = said(output)
        epoch = cells.whole(row.get("epoch")) or 1
        return Record(
            cells.identifier(cells.first(metadata, ("example_id",)) or row.get("id"), "id"),
            None if reply is None or (row.get("error") and not reply) else reply,
            where,
            prompt=_prompt(row),
            choices=choices,
            answers=answers,
            target=answers[0] if len(set(answers)) == 1 else None,
            image_id=cells.label(metadata.get(self.set.get("image") or "image_id")),
            question_type=cells.label(metadata.get(self.set.get("category") or "category")),
            take=epoch - 1,
            condition=cells.label(metadata.get("variant")),
            metrics={
                name: cells.mapping(score).get("value") for name, score in cells.mapping(row.get("scores")).items()
            },
            **told,
        )

    def about(self, source: Source) -> About:
        run = cells.mapping(source.header.get("eval"))
        data = cells.mapping(run.get("dataset"))
        status = source.header.get("status")
        notes = [] if status in (None, "success") else [f"{source.path}: the run ended with the status {status}."]
        if several := sum(bool(row.get("choices")) and _several(row.get("target")) for _, row in source.rows):
            notes.append(f"{source.path}: {several} questions have several right options, which cannot be judged.")
        scores = cells.mapping(source.header.get("results")).get("scores")
        results = {
            f"{score.get('name')}/{name}": cells.mapping(metric).get("value")
            for score in (scores if isinstance(scores, list) else ())
            for name, metric in cells.mapping(cells.mapping(score).get("metrics")).items()
        }
        return About(str(run.get("model") or ""), str(data.get("name") or run.get("task") or ""), results, tuple(notes))


def said(output: Mapping[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """The reply in a model output in inspect's shape, and what else it tells a record: thinking, stop reason, costs."""
    found = output.get("choices")
    first = cells.mapping(found[0]) if isinstance(found, list) and found else {}
    content = cells.mapping(first.get("message")).get("content")
    parts = content if isinstance(content, list) else []
    thinking = [
        str(part.get("reasoning") or "")
        for part in parts
        if isinstance(part, Mapping) and part.get("type") == "reasoning"
    ]
    reply = output.get("completion")
    if not isinstance(reply, str) or not (reply or first):
        reply = cells.message_text(content) if first else None  # no choice at all: stopped before anything was said
    usage = cells.mapping(output.get("usage"))
    told = {
        "thinking": "\n".join(thinking),
        "stop": str(first.get("stop_reason") or ""),
        "input_tokens": cells.whole(usage.get("input_tokens")),
        "output_tokens": cells.whole(usage.get("output_tokens")),
        "seconds": cells.number(output.get("time")),
    }
    return reply, told


def _several(target: Any) -> bool:
    return isinstance(target, list) and len(set(map(str, target))) > 1


def _prompt(row: Mapping[str, Any]) -> str:
    """The last user message, with what was moved into attachments put back."""
    asked = cells.last_asked(row.get("input"))
    if asked.startswith(_ATTACHED):
        attached = cells.mapping(row.get("attachments")).get(asked[len(_ATTACHED) :])
        return attached if isinstance(attached, str) else ""
    return asked


class EvalScope(LogFormat):
    """evalscope predictions or reviews: index with model_output, or with sample_score."""

    name = "evalscope"
    title = "evalscope predictions"
    has = frozenset({"index"})
    either = frozenset({"model_output", "sample_score"})
    sure = 0.9
    repeats = "last"
    _found: Mapping[str, Mapping[str, Any]] | None = None

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._takes: dict[int, dict[str, int]] = {}

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
        prompt = _asked(row) or _asked(review)
        choices = cells.options_in(prompt) if len(target.strip()) == 1 else ()
        right = cells.target_of(target, choices, "target", lettered=True) if target else None
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


def _asked(row: Mapping[str, Any]) -> str:
    return cells.last_asked(row.get("messages") or row.get("input"))
