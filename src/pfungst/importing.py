"""Answers that were already given, as an ordinary run folder: nobody is asked."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

from pfungst.api import Run, reading_notes, repeated, slug
from pfungst.core import Answer, DataError, Dataset, Exam, Example, ExamSpec, PfungstError, Probe, Progress, UsageError
from pfungst.core.files import write_atomic
from pfungst.core.fingerprint import digest
from pfungst.core.types import no_progress
from pfungst.data import load
from pfungst.data.images import normal_path
from pfungst.logs.grouping import PARTS, Grouped, check_shared, contrasts, group
from pfungst.logs.records import Record
from pfungst.players.recorded import LoggedPlayer
from pfungst.probes.conditions import Conditions, member_id
from pfungst.probes.contrast import Contrast
from pfungst.report import write_report
from pfungst.rows.files import File
from pfungst.scores import get_metric
from pfungst.scores.matchers import get_matcher

QUESTIONS = "questions.jsonl"
"""The data set of an imported run, in its folder."""
_YES_NO = ("yes", "no")


def import_logs(
    logs: Sequence[str | os.PathLike[str]] | str | os.PathLike[str],
    out: str | Path | None = None,
    *,
    by: str = "",
    clean: str = "",
    again: Sequence[str] = (),
    data: Dataset | str | Path | None = None,
    data_options: Mapping[str, Any] | None = None,
    matcher: str | None = None,
    metric: str | None = None,
    name: str = "",
    seed: int = 0,
    progress: Progress = no_progress,
) -> Run:
    """Turn logs of answers that one model gave, under one or several conditions, into a run folder with its report.

    logs: files of any format that `pfungst.logs` reads; `noisy=FILE` names the condition of a file.
    out: the run folder, by default runs/MODEL-DATA.
    by: what tells conditions apart: `file`, `folder`, `circular`, `epoch`, `variant`, or a column. By default the
        files, where there are several, else what the file itself says.
    clean: the condition that the others are held against.
    again: conditions that repeat the clean one: what changes there is sampling noise.
    data: the data set with the right answers, where the logs do not hold them.
    matcher, metric: how replies are read and judged; by default `lenient`, and what fits the answers.
    name: of the model, where the logs do not say.
    """
    specs = [logs] if isinstance(logs, str | os.PathLike) else list(logs)
    truth = load(data, **(data_options or {})) if isinstance(data, str | Path) else data
    progress("reading logs", 0, len(specs))
    grouped = group(specs, by, clean, truth)
    check_shared(grouped)
    progress("reading logs", len(specs), len(specs))
    for one in again:
        if one not in grouped.conditions[1:]:
            raise UsageError(f"There is no condition {one!r} to repeat {grouped.conditions[0]!r}; there are: "
                             f"{', '.join(grouped.conditions)}.")  # fmt: skip
    answers, rows, missing = _questions(grouped)
    model = name or _model(grouped)
    about = truth.name if truth is not None else _data_name(grouped)
    path = Path(out) if out is not None else Path("runs") / f"{slug(model)}-{slug(about)}"
    _write_questions(path, "".join(rows).encode("utf-8", "replace"))
    spec = f"table:{{run}}/{QUESTIONS}"
    whole = load(spec.replace("{run}", str(path)))
    whole = replace(whole, name=about, metric=metric or _metric(whole, truth))
    reading = matcher or "lenient"
    told = digest([log.fingerprint for log in grouped.logs], list(grouped.conditions), grouped.by, whole.fingerprint)
    player = LoggedPlayer(model, answers, f"logs-1-{told}", reading)
    probes: list[Probe] = [Conditions(grouped.conditions, (*again, *grouped.repeats), tuple(missing))]
    contrast = Contrast("data", tuple(missing))
    if contrast.finds(whole):
        probes.append(contrast)
    config = {
        "matcher": reading,
        "logs": {
            "by": grouped.by,
            "files": [
                {"file": Path(log.path).name, "format": log.format, "sha256": log.fingerprint} for log in grouped.logs
            ],
            "notes": _without_folders([*grouped.notes, *_told(grouped, whole, missing)], grouped),
        },
    }
    exam = Exam(
        player, whole, probes, get_metric(whole.metric), path, seed, config, progress, matcher=get_matcher(reading),
        spec=ExamSpec("", spec, max_errors=0),
    )  # fmt: skip
    examined = exam.run()
    write_report(path, whole)
    advice = "Where a column numbers the repetitions, FILE?take=COLUMN counts each question once."
    again_told = (f"{one} {advice}" for one in repeated(whole))
    notes = (
        *grouped.notes,
        *_told(grouped, whole, missing),
        *again_told,
        *reading_notes(examined, whole.metric, reading),
    )
    return Run(path, notes=notes)


def _write_questions(path: Path, content: bytes) -> None:
    """The data set of the run; another run's is never written over."""
    file = path / QUESTIONS
    if (path / "exam.json").exists() and not (file.exists() and file.read_bytes() == content):
        raise PfungstError(f"{path} holds another run. Choose another run folder.")
    write_atomic(file, content)


def _questions(grouped: Grouped) -> tuple[dict[str, Answer], list[str], list[str]]:
    """Answers by example, the examples as lines of JSON, and the examples without an answer."""
    answers: dict[str, Answer] = {}
    rows: list[str] = []
    missing: list[str] = []
    named = {id_: group for log in grouped.logs for id_, group in contrasts(log).items()}
    for key, id_, record, example in _members(grouped):
        row = _row(key, id_, record, example)
        if id_ == key and (group := example.contrast if example is not None else named.get(record.id)):
            row["contrast_group"] = group
        rows.append(json.dumps(row, ensure_ascii=False) + "\n")
        if record.reply is None:
            missing.append(id_)
            continue
        answer = record.answer()
        if answer.scores is not None and len(answer.scores) != len(row.get("choices", ())):
            answer = replace(answer, scores=None)
        answers[id_] = answer
    if not answers:
        raise DataError("There are no answers in these logs: all requests failed.")
    return answers, rows, missing


def _members(grouped: Grouped) -> Iterator[tuple[str, str, Record, Example | None]]:
    """Group, example id, record and example of every question under every condition.

    A question that was not asked under a condition stands there without a reply, except in a circular evaluation, where
    a question has as many rotations as options.
    """
    for key, found in grouped.records.items():
        wanted = [name for name in grouped.conditions if name in found or grouped.by != "circular"]
        spare = next(iter(found.values()))
        for name in wanted:
            record, example = found.get(name) or (replace(spare[0], reply=None), spare[1])
            yield key, key if name == grouped.conditions[0] else member_id(key, name), record, example


def _row(key: str, id_: str, record: Record, example: Example | None) -> dict[str, Any]:
    choices, answers, target = record.choices, record.answers, record.target
    known = example if example is not None else Example("", "")
    if example is not None:
        # The log knows the order in which the options were shown, the data set which of them is right.
        choices = choices if sorted(choices) == sorted(example.choices) or not example.choices else example.choices
        answers, target = example.answers, example.target
    if target is not None and choices and target not in choices:
        choices = ()
    asked = record.asked.strip() or known.question
    row = {
        "id": id_,
        "group": key,
        "question": asked or "(not in the log)",
        "image_id": known.image_id or normal_path(record.image_id),
        "answers": list(answers),
        "target": target,
        "choices": list(choices),
        "answer_type": known.answer_type or record.answer_type or _kind(target, choices),
        "question_type": known.question_type or record.question_type,
    }
    return {name: value for name, value in row.items() if value not in (None, "", [])}


def _kind(target: str | None, choices: Sequence[str]) -> str:
    """The answer type by the rule of VQA: what the right answer is."""
    if target is None or choices:
        return ""
    said = target.strip().casefold()
    return "yes/no" if said in _YES_NO else "number" if said.isdigit() else ""


def _metric(data: Dataset, truth: Dataset | None) -> str:
    if truth is not None:
        return truth.metric
    if sum(bool(example.choices) for example in data) > len(data) / 2:
        return "choice"
    if any(len(example.answers) > max(3, len(set(example.answers))) for example in data):
        return "vqa"  # people say the same; a list of answers that will do has none twice
    return "any" if any(len(example.answers) > 1 for example in data) else "exact"


def _model(grouped: Grouped) -> str:
    models = list(dict.fromkeys(log.about.model for log in grouped.logs if log.about.model))
    if len(models) > 1:
        raise UsageError(
            f"These logs are answers of {len(models)} models ({', '.join(models[:4])}). Import one model at a time and "
            "compare the runs; if it is one model under several names, say --name NAME."
        )
    if models:
        return models[0]
    stems = [File(Path(log.path)).stem for log in grouped.logs]
    # the words that several files share (m of m-clean and m-noisy), or else letters, of which a few are no name
    words: list[Sequence[str]] = [PARTS.findall(stem) for stem in stems]
    for parts, fewest in ((words, 1 if len(stems) > 1 else 4), (stems, 4)):
        same = takewhile(lambda alike: len(set(alike)) == 1, zip(*parts, strict=False))
        common = "".join(alike[0] for alike in same).rstrip("_-. ")
        if len(common) >= fewest:
            return common
    return Path(grouped.logs[0].path).resolve().parent.name


def _without_folders(notes: Sequence[str], grouped: Grouped) -> list[str]:
    """A run may be shown to others, who need not know where the files lay."""
    for log in grouped.logs:
        notes = [note.replace(log.path, Path(log.path).name) for note in notes]
    return list(notes)


def _data_name(grouped: Grouped) -> str:
    names = list(dict.fromkeys(log.about.data for log in grouped.logs if log.about.data))
    return names[0] if len(names) == 1 else "logs"


def _told(grouped: Grouped, data: Dataset, missing: Sequence[str]) -> Iterator[str]:
    gone = set(missing)
    alone = sum(key in gone for key in grouped.records)
    if missing:
        yield f"{len(missing):,} of {len(data):,} replies are missing; they are left out, not counted as wrong."
    if alone and len(grouped.conditions) > 1:
        yield (
            f"{alone:,} of {len(grouped.records):,} questions have no answer under {grouped.conditions[0]!r}, with "
            "which the others are compared; they are left out."
        )
    unknown = sum(example.target is None and not example.answers for example in data)
    if unknown == len(data):
        what = "only changes" if len(data) > len(grouped.records) else "nothing"
        yield f"The logs contain no right answers, so {what} can be counted. Name the data set with --data."
    elif unknown:
        yield f"{unknown:,} of {len(data):,} questions have no right answer; they are left out of every accuracy."
