"""From a specification `[format:]path[?option=value&...]` to a log."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pfungst.core import DataError
from pfungst.core.files import exists
from pfungst.core.registry import Registry
from pfungst.core.settings import read_query, read_settings
from pfungst.logs.records import Log, LogFormat, Record
from pfungst.logs.table import COLUMNS, SECOND_ANSWER, UNIQUE
from pfungst.rows import cells
from pfungst.rows.fields import Bad
from pfungst.rows.source import Source, open_source

LOGS = Registry(
    "log format",
    "pfungst.logs",
    {
        "vqa-results": "pfungst.logs.answers:VqaResults",
        "llava": "pfungst.logs.answers:Llava",
        "lmms-eval": "pfungst.logs.lm_eval:LmmsEval",
        "lm-eval": "pfungst.logs.lm_eval:LmEval",
        "vlmevalkit": "pfungst.logs.vlmevalkit:VlmEvalKit",
        "inspect": "pfungst.logs.inspect_ai:Inspect",
        "evalscope": "pfungst.logs.inspect_ai:EvalScope",
        "batch": "pfungst.logs.answers:Batch",
        "table": "pfungst.logs.table:TableLog",
    },
)


def read_log(spec: str | os.PathLike[str], *, keep: Iterable[str] = ()) -> Log:
    """Read a file of answers, whatever tool wrote it.

    spec: a path, optionally with its format before it and columns behind it: `answers.jsonl`, `vlmevalkit:pred.xlsx`,
        `mine.csv?reply=output&id=qid`. Without a format it is recognised from its columns.
    keep: columns to keep as text in `Record.fields`.

    Of any format, `?take=COLUMN` says which column numbers the repetitions of a question. Many things are called sample
    or seed, so it must be named.
    """
    named, path, options = parse(spec)
    source = open_source(path)
    name = source.fingerprint if not options else f"{source.fingerprint} {sorted(options.items())}"
    take = options.pop("take", "")
    if take and take not in source.columns:
        raise DataError.at(path, "", f"there is no column {take!r}; {_columns(source)}")
    format_ = _format(named, options, source)
    records = _records(format_, source, tuple(keep), take)
    if not records:
        raise DataError.at(path, "", "there are no answers in this file.")
    kept, notes = _once(format_, path, records)
    about = format_.about(source)
    found = format_.finish(kept)
    log = Log(str(path), format_.name, tuple(_counted(found) if take else found), name, about, (*about.notes, *notes))
    if log.failed:
        more = f"{path}: {log.failed} of {len(log.records)} requests failed; they count as missing, not as wrong."
        log = replace(log, notes=(*log.notes, more))
    return log


def parse(spec: str | os.PathLike[str]) -> tuple[str, Path, dict[str, str]]:
    """Format (empty: to be recognised), path and options. A text that names an existing path is that path."""
    text = os.fspath(spec)
    if isinstance(spec, Path) or exists(text):
        return "", Path(text), {}
    head, colon, rest = text.partition(":")
    named = head if colon and head in LOGS.names() else ""
    rest = rest if named else text
    if exists(rest):
        return named, Path(rest), {}
    place, _, query = rest.partition("?")
    return named, Path(place), read_query(text, query)


def _format(named: str, options: Mapping[str, Any], source: Source) -> LogFormat:
    if not named and options.keys() & {*COLUMNS, "answer_is"}:
        named = _claimed_with(options, source)
    kind = LOGS.get(named) if named else _recognised(source)
    if options and kind.options is None:
        raise DataError(f"The log format {kind.name} takes no options, but {', '.join(options)} was given.")
    given = read_settings(kind.options, options, what=f"log format {kind.name}", noun="option") if options else {}
    found: LogFormat = kind(**given)
    if kind.name == "table":
        columns = [value for name, value in given.items() if name in COLUMNS]
        missing = [value for value in columns if value not in source.columns and value != "row" and "+" not in value]
        if missing:
            raise DataError.at(source.path, "", f"there is no column {missing[0]!r}; {_columns(source)}")
    return found


def _claimed_with(options: Mapping[str, Any], source: Source) -> str:
    """Columns are named for a plain table, unless the file is of a tool whose format has these very options."""
    for name in LOGS.names():
        kind = LOGS.get(name)
        own = getattr(kind.options, "__dataclass_fields__", {})
        if name != "table" and set(options) <= set(own) and kind().claims(source):
            return name
    return "table"


def _recognised(source: Source) -> Any:
    kinds = [LOGS.get(name) for name in [*LOGS.builtin, *sorted(set(LOGS.names()) - set(LOGS.builtin))]]
    claims = [(kind().claims(source), kind) for kind in kinds]
    sure = max(claim for claim, _ in claims)
    if sure <= 0:
        raise DataError.at(
            source.path,
            "",
            f"no known layout of answers was recognised: {_columns(source)}",
            f"Say which column holds the reply, and which the id: {source.path.name}?reply=COLUMN&id=COLUMN "
            f"(others: {', '.join(name for name in COLUMNS if name not in ('reply', 'id'))}).",
        )
    return next(kind for claim, kind in claims if claim == sure)


def _columns(source: Source) -> str:
    shown = ", ".join(source.columns[:30]) + (" ..." if len(source.columns) > 30 else "")
    return f"the columns are {shown}."


def _records(format_: LogFormat, source: Source, keep: tuple[str, ...], take: str) -> list[Record]:
    records = []
    names: list[str] = []
    for where, row in source.rows:
        try:
            found = format_.record(row, where, source)
            if found is None:
                continue
            for record in [found] if isinstance(found, Record) else found:
                if keep:
                    kept = {name: cells.optional(row.get(name), name) for name in keep if name in row}
                    record = replace(record, fields=kept)
                if take:
                    names.append(cells.identifier(row.get(take), take))
                records.append(record)
        except Bad as problem:
            raise DataError.at(source.path, where, str(problem)) from None
    ranks = {name: rank for rank, name in enumerate(sorted(set(names), key=lambda name: (len(name), name)))}
    if take:
        records = [replace(record, take=ranks[name]) for record, name in zip(records, names, strict=True)]
    return records


def _counted(records: Sequence[Record]) -> list[Record]:
    """Repetitions counted question by question under each condition, replies first: the first of all may be missing."""
    found = list(records)
    counts: Counter[tuple[str, ...]] = Counter()
    for at in sorted(range(len(found)), key=lambda at: (found[at].reply is None, found[at].take)):
        record = found[at]
        question = (record.id or f"{record.asked} {record.image_id}", record.condition, *record.fields.values())
        found[at] = replace(record, take=counts[question])
        counts[question] += 1
    return found


def _once(format_: LogFormat, path: Path, records: list[Record]) -> tuple[list[Record], tuple[str, ...]]:
    """One record per question, repetition and condition; a second one is an error, unless the tool appends lines."""
    found: dict[tuple[object, ...], Record] = {}
    unnamed = [record for record in records if not record.id]
    again = 0
    for record in records:
        if not record.id:
            continue
        key = (record.id, record.take, record.condition, *record.fields.values())
        before = found.get(key)
        if before is not None and (before.reply, before.asked) != (record.reply, record.asked):
            again += 1
            if format_.repeats != "last":
                what, advice = f"question {record.id} has a second, different answer", SECOND_ANSWER
                if before.asked != record.asked:
                    what = f"the id {record.id} stands at a second, different question"
                    advice = f"Keep one of them, or {UNIQUE}"
                raise DataError.at(path, record.where, f"{what} (the first is {before.where}).", advice)
        found[key] = record if before is None or format_.repeats == "last" else before
    notes = (
        (f"{path}: {again} questions were answered again later in the file; the last answer counts.",) if again else ()
    )
    return [*found.values(), *unnamed], notes
