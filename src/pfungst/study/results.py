"""`pfungst study results`: what people said, who took part, and how far they agree.

Its files are results.json, answers.csv, payments.csv, and what the kind of the study exports.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from pfungst.core import Table
from pfungst.core.files import jsonable, write_atomic, write_json
from pfungst.probes.measure import finding
from pfungst.report.page import csv_bytes
from pfungst.scores.reliability import Reliability, reliability
from pfungst.study.folder import Study
from pfungst.study.items import CHECK, ITEM, TRAINING, Content
from pfungst.study.kinds import Outcome, by_item, intervals, worker_of
from pfungst.study.schema import REMOVED
from pfungst.study.settings import Rules

ANSWERS = ("worker", "item", "role", "condition", "answer", "right", "seconds", "active_seconds", "counts", "about")
PAYMENTS = (
    "worker", "completion_code", "items", "checks_passed", "checks", "minutes", "amount", "currency", "state", "counts",
    "broken",
)  # fmt: skip
LOW = 2 / 3
"""Items are listed whose most frequent answer was given by a smaller share of the people who saw them."""


@dataclass(frozen=True)
class WorkerRow:
    """One worker in numbers."""

    worker: str
    state: str
    answered: int
    checks: int
    passed: int
    training_right: int
    training: int
    seconds: float | None
    """Median time on an item."""
    minutes: float
    """Sum of the times on all items, training and checks."""
    counts: bool
    """False: broke one of the `Rules`, none of the answers count."""
    broken: str
    """Which, in words."""
    completion_code: str
    """Empty while there is something left to do."""
    amount: float


@dataclass(frozen=True)
class Results:
    """A study, in numbers."""

    title: str
    kind: str
    items: int
    complete: int
    """Items with all the answers they need, of workers who count."""
    answers: int
    """Answers that count."""
    excluded: int
    """Answers to items of workers who do not count."""
    rules: Rules
    workers: tuple[WorkerRow, ...]
    outcome: Outcome
    agreement: Reliability
    disputed: tuple[tuple[str, str], ...]
    """Items below agreement, with what people said."""
    rows: tuple[Mapping[str, Any], ...]
    """Every answer, also those that do not count, with the column `counts`."""

    @property
    def counted(self) -> list[Mapping[str, Any]]:
        """The answers that count."""
        return [row for row in self.rows if row["counts"]]

    @property
    def tables(self) -> tuple[Table, ...]:
        """Everything that is shown."""
        named = (
            ("Krippendorff's alpha", replace(finding("alpha", self.agreement.alpha), unit="")),
            (
                f"Fleiss' kappa, {self.agreement.kappa_answers or '2 or more'} answers per item",
                replace(finding("kappa", self.agreement.kappa), unit=""),
            ),
            ("share of the most frequent answer", finding("share", self.agreement.majority)),
        )
        agreed = Table(
            f"Agreement on “{self.outcome.rated}”", ("measure", "items", "value"),
            tuple((name, one.clusters, one) for name, one in named), intervals(self.counted, "items"),
        )  # fmt: skip
        more: tuple[Table, ...] = ()
        if self.disputed:
            more = (Table("Items that people disagree about", ("item", "answers"), self.disputed),)
        return (*self.outcome.tables, agreed, *more, _worker_table(self.workers, self.rules))

    def numbers(self) -> dict[str, Any]:
        """For results.json."""
        return {
            "title": self.title, "kind": self.kind, "items": self.items, "complete": self.complete,
            "answers": self.answers, "excluded": self.excluded,
            "rules": {one.name: getattr(self.rules, one.name) for one in fields(Rules)},
            "findings": self.outcome.numbers, "agreement": self.agreement, "disputed": self.disputed,
            "workers": self.workers, "tables": self.outcome.tables,
        }  # fmt: skip


def study_results(study: Study, rules: Rules | None = None) -> Results:
    """The results so far. rules: by which answers count, by default those of the study's settings."""
    rules = rules or study.settings
    rows = study.book.answers()
    items = study.book.items()
    workers = tuple(_worker_rows(study, rows, rules))
    good = {one.worker for one in workers if one.counts}
    told = tuple({**row, "counts": row["role"] == ITEM and row["worker"] in good} for row in rows)
    counted = [row for row in told if row["counts"]]
    outcome = study.kind.outcome(counted, items)
    rated = by_item([row for row in counted if outcome.rated in row["value"]])
    said = {item: [row["value"][outcome.rated] for row in some] for item, some in rated.items()}
    answered = Counter(row["item"] for row in counted)
    disputed = _disputed(said, _words(items, outcome.rated))
    return Results(
        study.title, study.settings.kind, len(items), sum(answered[row["name"]] >= row["wanted"] for row in items),
        len(counted), sum(row["role"] == ITEM for row in told) - len(counted), rules, workers, outcome,
        reliability(list(said.values()), [list(map(worker_of, some)) for some in rated.values()]), disputed, told,
    )  # fmt: skip


def _words(items: Sequence[Mapping[str, Any]], rated: str) -> dict[str, dict[str, str]]:
    """Item -> value of an answer -> the words that people saw beside it."""
    fields = {row["name"]: Content.of(row["content"]).fields for row in items}
    return {item: dict(next((one.options for one in some if one.name == rated), ())) for item, some in fields.items()}


def _disputed(
    by_item: Mapping[str, Sequence[str]], words: Mapping[str, Mapping[str, str]]
) -> tuple[tuple[str, str], ...]:
    found = []
    for item, said in by_item.items():
        counts = Counter(said).most_common()
        if len(said) >= 2 and counts[0][1] < LOW * len(said) - 1e-9:
            shown = words.get(item, {})
            found.append((item, ", ".join(f"{shown.get(value, value)} ({n})" for value, n in counts)))
    return tuple(found)


def _worker_rows(study: Study, rows: Sequence[Mapping[str, Any]], rules: Rules) -> list[WorkerRow]:
    by_worker: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_worker.setdefault(row["worker"], []).append(row)
    made = []
    for worker in study.book.workers():
        mine = by_worker.get(worker.code, [])
        done = [row for row in mine if row["role"] in (ITEM, REMOVED)]
        checks = [bool(row["right"]) for row in mine if row["role"] == CHECK]
        training = [bool(row["right"]) for row in mine if row["role"] == TRAINING]
        seconds = float(np.median([row["seconds"] for row in done])) if done else None
        broken = rules.broken(sum(checks), len(checks), sum(training), len(training), seconds)
        state = "finished" if worker.finished else "at work" if done else "training" if worker.consented else "invited"
        made.append(
            WorkerRow(
                worker.code, state, len(done), len(checks), sum(checks), sum(training), len(training),
                seconds,
                sum(row["seconds"] for row in mine) / 60,
                not broken,
                broken,
                study.completion(worker.id, worker.code) if worker.finished else "",
                round(study.settings.pay * len(done), 2),
            )
        )  # fmt: skip
    return made


def _worker_table(workers: Sequence[WorkerRow], rules: Rules) -> Table:
    return Table(
        "Workers", ("worker", "state", "items", "checks passed", "training right", "seconds per item", "counts"),
        tuple(
            (one.worker, one.state, one.answered, f"{one.passed} of {one.checks}",
             f"{one.training_right} of {one.training}", "–" if one.seconds is None else f"{one.seconds:.1f}",
             "yes" if one.counts else f"no: {one.broken}")
            for one in workers
        ),
        rules.sentence,
    )  # fmt: skip


def answers_csv(results: Results) -> bytes:
    """Every answer. What workers wrote cannot become a formula in a spreadsheet."""
    return csv_bytes(
        ANSWERS,
        (
            [row["worker"], row["item"], row["role"], row["condition"], _text(row["value"]), row["right"],
             round(row["seconds"], 2), None if row["active"] is None else round(row["active"], 2), int(row["counts"]),
             _text(row["about"])]
            for row in results.rows
        ),
    )  # fmt: skip


def payments_csv(results: Results, currency: str) -> bytes:
    """What is owed to whom; work is paid whether or not its answers count."""
    return csv_bytes(
        PAYMENTS,
        (
            [one.worker, one.completion_code, one.answered, one.passed, one.checks, round(one.minutes, 1),
             f"{one.amount:.2f}", currency, one.state, int(one.counts), one.broken]
            for one in results.workers
        ),
    )  # fmt: skip


def export_study(study: Study, results: Results, out: Path) -> list[Path]:
    """Write everything into a folder; returns the files."""
    files: dict[str, bytes] = {
        "answers.csv": answers_csv(results),
        "payments.csv": payments_csv(results, study.settings.currency),
        **results.outcome.files,
    }
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "results.json", results.numbers())
    for name, content in files.items():
        write_atomic(out / name, content)
    return [out / "results.json", *(out / name for name in files)]


def _text(value: Any) -> str:
    return json.dumps(jsonable(value), ensure_ascii=False, sort_keys=True)
