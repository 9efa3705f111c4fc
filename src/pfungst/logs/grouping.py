"""From logs to questions under conditions: what `pfungst import` makes a data set of."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pfungst.core import DataError, Dataset, Example, UsageError
from pfungst.logs.pairing import pair
from pfungst.logs.reading import parse, read_log
from pfungst.logs.records import Log, Record, condition_of, take_name
from pfungst.logs.table import SECOND_ANSWER
from pfungst.rows.files import File
from pfungst.rows.vlmevalkit import contrast_group, hallusion_group
from pfungst.scores import same_answer

RULES = ("file", "folder", "circular", "epoch", "variant")
"""How conditions can be told apart, beside a column."""
CLEAN = (
    "clean",
    "base",
    "baseline",
    "original",
    "orig",
    "normal",
    "plain",
    "greedy",
    "unperturbed",
    "rot0",
    "rotation 0",
)
"""Names of a condition that the others are held against, where the user does not say which."""
PARTS = re.compile(r"[^_\-. /]+|[_\-. /]+")
"""The words of a file name, and what stands between them."""
_HALLUSION = re.compile(r"V[DS]_[a-z]+_[01]_\d+_\d+_\d+", re.IGNORECASE)


@dataclass(frozen=True)
class Grouped:
    """Records by question and condition."""

    conditions: tuple[str, ...]
    records: Mapping[str, Mapping[str, tuple[Record, Example | None]]]
    """Question -> condition -> record, and the example of a data set where one was given."""
    by: str = "file"
    """How they were told apart."""
    repeats: tuple[str, ...] = ()
    """Conditions that repeat the first one."""
    logs: tuple[Log, ...] = ()
    notes: tuple[str, ...] = ()


def group(
    specs: Sequence[str | os.PathLike[str]], by: str = "", clean: str = "", data: Dataset | None = None
) -> Grouped:
    """Read logs and tell their conditions apart.

    specs: files, each with its condition before it if wanted: `noisy=answers.jsonl`.
    by: `file` (its name), `folder`, `circular` (VLMEvalKit's rotations), `epoch`, `variant` (our own inspect logs), or
        the name of a column. By default: files, where there are several; else what the file itself says.
    clean: the condition that the others are held against; by default the one with such a name (`clean`, `base`,
        `original` ...), else the first.
    data: where the right answers are, if not in the logs.
    """
    if not specs:
        raise UsageError("Name the files that contain the answers.")
    named = [_named(os.fspath(spec)) for spec in specs]
    logs = [read_log(spec, keep=(by,) if by not in ("", "file", "folder") else ()) for _, spec in named]
    # A plain table has no rotations, epochs or variants but those of a column that is called so.
    column = by if by not in RULES or all(log.format == "table" and by in log.records[0].fields for log in logs) else ""
    by = "column" if column else by or _rule(logs)
    places = _places(by, [name for name, _ in named], [parse(spec)[1] for _, spec in named])
    found: dict[str, dict[str, tuple[Record, Example | None]]] = {}
    conditions: dict[str, int] = {}
    notes = [note for log in logs for note in log.notes]
    for log, place in zip(logs, places, strict=True):
        examples: Sequence[Example | None] = [None] * len(log.records)
        if data is not None:
            pairing = pair(log, data)
            examples = pairing.examples
            notes += pairing.notes
            if pairing.found < len(log.records):
                lost = len(log.records) - pairing.found
                notes.append(f"{log.path}: {lost} answers belong to no question of {data.name}.")
        for record, example in zip(log.records, examples, strict=True):
            if data is not None and example is None:
                continue
            condition = _condition(by, column, place, record, log)
            key = _key(by, record, example, log)
            conditions.setdefault(condition, record.take)
            before = found.setdefault(key, {}).get(condition)
            if before is not None and not record.id and example is None:
                raise DataError.at(
                    log.path,
                    record.where,
                    f"the question {key!r:.80} stands here a second time, and there are no ids.",
                    "Name the column of the ids, or count the rows: ?id=COLUMN or ?id=row.",
                )
            if before is not None and before[0].reply != record.reply:
                raise DataError.at(
                    log.path,
                    record.where,
                    f"question {key} has a second, different answer under the condition {condition!r}.",
                    SECOND_ANSWER,
                )
            found[key][condition] = (record, example)
    if data is not None and len(found) < len(data):
        notes.append(f"{len(data) - len(found):,} of {len(data):,} questions of {data.name} are not in the logs.")
    names = _ordered(sorted(conditions, key=conditions.__getitem__), clean)
    notes += _same_questions(names, found)
    repeats = tuple(name for name in names[1:] if by == "epoch" or condition_of(name) == names[0])
    # Two models may have answered in another order, or on several GPUs: the same questions make the same data set.
    found = dict(
        sorted(found.items(), key=lambda item: (len(item[0]), item[0]) if item[0].isdigit() else (99, item[0]))
    )
    return Grouped(names, found, column or by, repeats, tuple(logs), tuple(notes))


def _named(spec: str) -> tuple[str, str]:
    """`noisy=answers.jsonl` -> ("noisy", "answers.jsonl"); a path that exists is that path."""
    if Path(spec.partition("?")[0]).exists():
        return "", spec
    name, equals, rest = spec.partition("=")
    return (name, rest) if equals and "?" not in name and "/" not in name else ("", spec)


def _rule(logs: Sequence[Log]) -> str:
    if len(logs) > 1:
        return "file"
    records = logs[0].records
    if any(record.group for record in records):
        return "circular"
    if any(record.condition for record in records):
        return "variant"
    return "file"


def _places(by: str, names: Sequence[str], paths: Sequence[Path]) -> list[str]:
    """The condition of each file, as far as its name or folder says."""
    if len(paths) == 1 and by == "file":
        return [names[0] or "clean"]
    found = [path.resolve().parent.name if by == "folder" else File(path).stem for path in paths]
    if len(set(found)) < len(found) and by == "file":
        found = [f"{path.resolve().parent.name}/{name}" for path, name in zip(paths, found, strict=True)]
    short = _distinct(found) if len(set(found)) == len(found) else found
    return [name or place for name, place in zip(names, short, strict=True)]


def _distinct(names: Sequence[str]) -> list[str]:
    """Names without the words that all of them begin or end with."""
    if len(names) < 2:
        return list(names)
    parts = [PARTS.findall(name) for name in names]
    shortest = min(len(part) for part in parts)
    begin = 0
    while begin < shortest and len({part[begin] for part in parts}) == 1:
        begin += 1
    end = 0
    while end < shortest - begin and len({part[-1 - end] for part in parts}) == 1:
        end += 1
    cut = ["".join(part[begin : len(part) - end]).strip("_-. /") for part in parts]
    return cut if all(cut) and len(set(cut)) == len(cut) else list(names)


def _condition(by: str, column: str, place: str, record: Record, log: Log) -> str:
    if by == "epoch":
        return f"epoch {record.take + 1}"
    return take_name(_named_condition(by, column, place, record, log), record.take)


def _named_condition(by: str, column: str, place: str, record: Record, log: Log) -> str:
    if by in ("file", "folder"):
        return place
    if by in ("circular", "variant"):
        if not record.condition:
            told = "rows of a circular evaluation" if by == "circular" else "variants"
            raise DataError.at(log.path, record.where, f"the file does not contain {told}.", "Choose another --by.")
        return record.condition
    value = record.fields.get(column)
    if value is None:
        raise DataError.at(
            log.path,
            record.where,
            f"there is no column {column!r} to tell the conditions apart.",
            f"--by takes the name of a column, or one of {', '.join(RULES)}.",
        )
    return value or "(empty)"


def _key(by: str, record: Record, example: Example | None, log: Log) -> str:
    """What the records of one question have in common."""
    if example is not None:
        return example.id
    if by == "circular":
        return record.group
    if record.id:
        return record.id
    if record.asked.strip():
        # A prompt may be pages long, which is no name for anything.
        asked = " ".join(record.asked.split())
        short = asked if len(asked) <= 80 else hashlib.sha256(asked.encode("utf-8", "replace")).hexdigest()[:16]
        return f"{record.image_id} {short}".strip()
    raise DataError.at(
        log.path, record.where, "this answer has neither an id nor a question.", "Say ?id=COLUMN or ?id=row."
    )


def _same_questions(
    names: Sequence[str], found: Mapping[str, Mapping[str, tuple[Record, Example | None]]]
) -> list[str]:
    """Raise DataError where a condition holds other questions under the same ids: another data set, usually.

    Another wording keeps the right answer, and another image or order of options keeps the wording: a question that has
    neither is another question. Where there are a few of them, a note says so.
    """
    notes = []
    for name in names[1:]:
        both = [(key, one[names[0]][0], one[name][0]) for key, one in found.items() if names[0] in one and name in one]
        told = [(key, a, b) for key, a, b in both if a.target and b.target and a.asked.strip() and b.asked.strip()]
        other = [(key, a, b) for key, a, b in told if not same_answer(a.target, b.target) and not _alike(a, b)]
        if not other:
            continue
        key, a, b = other[0]
        text = (
            f"{len(other)} of {len(told)} questions are not the same under {names[0]!r} and {name!r}: id {key} asks "
            f"{a.asked!r:.80} (right: {a.target!r:.40}) here and {b.asked!r:.80} (right: {b.target!r:.40}) there."
        )
        if len(other) > len(told) / 5:
            raise DataError(f"{text} Import the files of one data set at a time.")
        notes.append(text)
    return notes


def check_shared(grouped: Grouped) -> None:
    """Raise DataError where a condition shares no question with the clean one: there is nothing to compare."""
    clean = grouped.conditions[0]
    for name in grouped.conditions[1:]:
        if condition_of(name) != name or any(clean in found and name in found for found in grouped.records.values()):
            continue
        ours, theirs = (next(key for key, found in grouped.records.items() if one in found) for one in (clean, name))
        raise DataError(
            f"No question was asked under both {clean!r} and {name!r}: the first ids are {ours!r:.60} and "
            f"{theirs!r:.60}. Do the files name their questions alike? Name the column of the ids: FILE?id=COLUMN."
        )


def _alike(a: Record, b: Record) -> bool:
    first, second = (" ".join((one.question or one.prompt).casefold().split()) for one in (a, b))
    return first in second or second in first


def _ordered(names: Sequence[str], clean: str) -> tuple[str, ...]:
    if clean and clean not in names:
        raise UsageError(f"There is no condition {clean!r}. There are: {', '.join(names)}.")
    if not clean and all(name.startswith(("rotation ", "epoch ")) for name in names):
        return tuple(sorted(names, key=lambda name: int(name.rpartition(" ")[2])))
    if not clean:
        known = [name for name in names if name.casefold() in CLEAN]
        clean = known[0] if len(known) == 1 else names[0]
    return tuple(sorted(names, key=lambda name: name != clean))


def contrasts(log: Log) -> Mapping[str, str]:
    """The id of a question -> the name of its contrast group, for the questions that have one: those of a group look
    alike but are not answered alike.

    A log of VLMEvalKit holds the questions of its data set and names it; the benchmarks made of pairs are told by that
    name, or by their ids.
    """
    ids = [record.id for record in log.records]
    if ids and all(_HALLUSION.fullmatch(id_) for id_ in ids):
        return {id_: hallusion_group(id_) for id_ in ids}
    if log.format != "vlmevalkit":
        return {}
    name = log.about.data or File(Path(log.path)).stem.rpartition("_")[2]
    numbered = all(id_.isdecimal() for id_ in ids)
    first = min(map(int, ids), default=0) if numbered else 0
    groups = {}
    for record in log.records:
        image = f"{record.question_type}/{record.image_id}" if record.image_id else ""
        place = int(record.id) - first if numbered else None
        groups[record.id] = contrast_group(name, record.id, image, place)
    return {id_: group for id_, group in groups.items() if group}
