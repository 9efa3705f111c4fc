"""lm-evaluation-harness and lmms-eval, which grew out of it.

lm-eval writes `samples_TASK_DATE.jsonl`, one line a document and filter. Several filters give several lines a document.
They share the raw reply, which is what is read here; only the metrics differ, so one filter is chosen (`?filter=NAME`,
by default the first).

lmms-eval writes `TIME_samples_TASK.jsonl` (0.3 to 0.7) with `TIME_results.json` beside it, and JSON before 0.3.
`doc_id` is a row number of the task's split, not the data set's id; an id inside a metric is the data set's own and is
preferred where it is unique. Lines are appended, so the last line of a document counts. `doc_hash` is the same on every
line in some versions and is not read. Of a multiple choice judged by likelihood the file holds losses: lmms-eval takes
the smallest, lm-eval the largest. Targets went through `str()`: those of a test split are all `None`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase
from typing import Any

from pfungst.logs.records import About, LogFormat, Record
from pfungst.logs.vlmevalkit import rotations
from pfungst.rows import cells
from pfungst.rows.fields import Bad
from pfungst.rows.source import Source

IDS = ("question_id", "id", "index", "qid", "questionId", "Index")
_OWN = frozenset(
    {
        "doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash",
        "prompt_hash", "target_hash", "input", "input_media", "token_counts", "task_name",
    }
)  # fmt: skip
"""Keys that are not metrics."""


@dataclass(frozen=True)
class LmEvalOptions:
    filter: str = ""
    """Whose metrics are read."""


class LmEval(LogFormat):
    """lm-evaluation-harness samples: samples_TASK_DATE.jsonl."""

    name = "lm-eval"
    title = "lm-evaluation-harness samples"
    options = LmEvalOptions
    has = frozenset({"doc_id", "resps"})
    either = frozenset({"filter", "prompt_hash"})
    sure = 0.9
    _own_ids: bool | None = None

    def record(self, row: Mapping[str, Any], where: str, source: Source) -> Sequence[Record] | None:
        wanted = self.set.get("filter") or source.rows[0][1].get("filter")
        if row.get("filter") != wanted:
            return None
        if self._own_ids is None:
            self._own_ids = own_ids(source)
        return sample(row, where, self._own_ids)


_NAME = re.compile(r"(?P<run>.+)_samples_(?P<task>.+)")


class LmmsEval(LogFormat):
    """lmms-eval samples: TIME_samples_TASK.jsonl, with the results next to it."""

    name = "lmms-eval"
    title = "lmms-eval samples"
    has = frozenset({"doc_id"})
    either = frozenset({"filtered_resps", "resps"})
    sure = 0.8
    repeats = "last"
    _own_ids: bool | None = None

    def record(self, row: Mapping[str, Any], where: str, source: Source) -> Sequence[Record]:
        if self._own_ids is None:
            self._own_ids = own_ids(source)
        return sample(row, where, self._own_ids, losses=True)

    def finish(self, records: Sequence[Record]) -> Sequence[Record]:
        if all(record.target == "None" for record in records):
            records = [replace(record, answers=(), target=None) for record in records]
        return rotations(records)

    def about(self, source: Source) -> About:
        if "model_configs" in source.header or "args" in source.header:
            arguments = cells.mapping(source.header.get("args"))
            return About(str(arguments.get("model") or ""))
        named = _NAME.fullmatch(source.stem)
        if named is None:
            return About()
        path = source.path.with_name(f"{named['run']}_results.json")
        if not path.exists():
            return About(data=named["task"])
        try:
            found = cells.mapping(json.loads(path.read_text("utf-8")))
        except (OSError, ValueError, RecursionError):
            return About(data=named["task"], notes=(f"{path} cannot be read, so the model is not known.",))
        config = cells.mapping(cells.mapping(found.get("configs")).get(named["task"]))
        parts = (config.get("dataset_path"), config.get("dataset_name"), config.get("test_split"))
        return About(
            str(found.get("model_name") or cells.mapping(found.get("config")).get("model") or ""),
            "/".join(str(part) for part in parts if part) or named["task"],
            cells.mapping(cells.mapping(found.get("results")).get(named["task"])),
        )


def own_ids(source: Source) -> bool:
    """Whether an id that samples name belongs to one document: POPE and HallusionBench begin anew in every part."""
    documents: dict[str, Any] = {}
    pairs = ((_named(row), row.get("doc_id")) for _, row in source.rows)
    return all(documents.setdefault(named, document) == document for named, document in pairs if named)


def sample(row: Mapping[str, Any], where: str, own_ids: bool = True, losses: bool = False) -> Sequence[Record]:
    """One line of lm-eval, or of lmms-eval, which grew out of it: a record for each time the question was asked.

    own_ids: whether the ids that samples name are unique; otherwise the document's number is the id.
    losses: what stands where lm-eval has likelihoods is the less the better.
    """
    doc = cells.mapping(row.get("doc"))
    named = _named(row) if own_ids else ""
    prompt = _prompt(row)
    target = row.get("target")
    choices = _choices(doc)
    if not choices and isinstance(target, str) and len(target.strip()) == 1:
        choices = cells.options_in(prompt)
    replies = _flat(row.get("resps", row.get("filtered_resps")))
    likely = bool(replies) and all(isinstance(one, Sequence) and not isinstance(one, str) for one in replies)
    if likely:
        offered = _continuations(row)
        choices = choices if len(choices) == len(offered) and _are_letters(offered) else offered or choices
    answers, right = _truth(target, choices)
    common = {
        "where": where, "question": _question(doc), "prompt": prompt, "answers": answers, "target": right,
        "image_id": cells.label(cells.first(doc, ("image_id", "imageId", "image_source"))),
        "question_type": cells.label(cells.first(doc, ("category", "question_type"))),
        "row_number": not named, "metrics": _metrics(row), **_tokens(row),
    }  # fmt: skip
    key = named or cells.identifier(row.get("doc_id"), "doc_id")
    if likely:
        return [_likelihoods(key, replies, choices, common, losses)]
    said = [cells.text(reply, "the reply") if cells.known(reply) else None for reply in replies or [None]]
    return [Record(key, reply, choices=choices, take=take, **common) for take, reply in enumerate(said)]


def _metrics(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in _OWN}


def _named(row: Mapping[str, Any]) -> str:
    """The question's own id, inside a metric or the document; `doc_id` is only a row number."""
    for place in (*(cells.mapping(value) for value in _metrics(row).values()), cells.mapping(row.get("doc"))):
        value = cells.first(place, IDS)
        if isinstance(value, str | int) and not isinstance(value, bool):
            return cells.identifier(value, "the question's id")
    return ""


def _prompt(row: Mapping[str, Any]) -> str:
    if isinstance(row.get("input"), str):
        return str(row["input"])
    arguments: Any = row.get("arguments")
    while isinstance(arguments, Mapping | Sequence) and not isinstance(arguments, str) and arguments:
        arguments = next(iter(arguments.values())) if isinstance(arguments, Mapping) else arguments[0]
    return arguments if isinstance(arguments, str) else ""


def _question(doc: Mapping[str, Any]) -> str:
    value = cells.first(doc, ("question", "query", "Question"))
    return value if isinstance(value, str) else ""


def _choices(doc: Mapping[str, Any]) -> tuple[str, ...]:
    value = cells.first(doc, ("choices", "options"))
    if isinstance(value, Mapping):  # {"text": [...], "label": [...]}
        value = value.get("text")
    return cells.listed(value, "the choices") if value is not None else cells.option_columns(doc)


def _truth(target: Any, choices: Sequence[str]) -> tuple[tuple[str, ...], str | None]:
    """Human answers and the right one. Targets went through `str()`: a list arrives as its Python text."""
    if not cells.known(target) or target == "":
        return (), None
    if choices and isinstance(target, int | str) and str(target).isdigit() and str(target) not in choices:
        place = int(target)
        if place < len(choices):
            return (choices[place],), choices[place]
    answers = cells.listed(target, "the target")
    if len(answers) == 1:
        right = cells.right_answer(answers[0], choices, "the target")
        return (right,), right
    return answers, None


def _tokens(row: Mapping[str, Any]) -> dict[str, Any]:
    counts = row.get("token_counts")
    used = cells.mapping(counts[0]) if isinstance(counts, list) and counts else {}
    return {name: cells.whole(used.get(name)) for name in ("input_tokens", "output_tokens")}


def _flat(value: Any) -> list[Any]:
    """Replies without the lists that some versions put around them."""
    if isinstance(value, str):
        return [value]
    while isinstance(value, list) and len(value) == 1 and isinstance(value[0], list) and not _pair(value[0]):
        value = value[0]
    if not isinstance(value, list):
        return []
    return [one[0] if isinstance(one, list) and len(one) == 1 else one for one in value]


def _pair(value: Any) -> bool:
    """A likelihood and whether it is the greedy continuation."""
    return isinstance(value, list) and len(value) == 2 and str(value[1]) in ("True", "False")


def _continuations(row: Mapping[str, Any]) -> tuple[str, ...]:
    arguments = row.get("arguments")
    every = list(arguments.values()) if isinstance(arguments, Mapping) else arguments
    if not isinstance(every, list):
        return ()
    found = [list(one.values()) if isinstance(one, Mapping) else one for one in every]
    texts = [one[1] for one in found if isinstance(one, list) and len(one) > 1 and isinstance(one[1], str)]
    return tuple(text.strip() for text in texts) if len(texts) == len(found) else ()


def _are_letters(options: Sequence[str]) -> bool:
    """Whether only the letters of options were offered: A, B, C ..."""
    return [option.strip("(). ") for option in options] == list(ascii_uppercase[: len(options)])


def _likelihoods(
    key: str, replies: Sequence[Any], choices: tuple[str, ...], common: dict[str, Any], losses: bool
) -> Record:
    """A multiple choice judged by likelihood: the reply is the likeliest continuation, or its letter where the file
    does not say what the options are."""
    try:
        scores = tuple(-float(one[0]) if losses else float(one[0]) for one in replies)
    except (TypeError, ValueError, IndexError):
        raise Bad("resps holds neither text nor likelihoods.") from None
    best = scores.index(max(scores))
    if not choices and best < len(ascii_uppercase):
        right = _letter(common["target"], len(scores))
        common = {**common, "target": right, "answers": () if right is None else (right,)}
        return Record(key, ascii_uppercase[best], **common)
    if len(scores) != len(choices):
        raise Bad(f"there are {len(scores)} likelihoods for {len(choices)} choices.")
    return Record(key, choices[best], choices=choices, scores=scores, **common)


def _letter(target: str | None, options: int) -> str | None:
    """The letter of the right option, where the target is one or counts from 0; the text of an option nobody listed
    tells nothing."""
    letters = ascii_uppercase[:options]
    said = (target or "").strip()
    if said.isdecimal():
        return letters[int(said)] if int(said) < len(letters) else None
    return said if len(said) == 1 and said in letters else None
