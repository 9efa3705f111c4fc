"""Files of a study: results.json, answers.csv, payments.csv, and what its kind exports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pfungst.core.files import jsonable, write_atomic, write_json
from pfungst.report.exports.tables import csv_bytes
from pfungst.study.folder import Study
from pfungst.study.results import Results

ANSWERS = ("worker", "item", "role", "condition", "answer", "right", "seconds", "active_seconds", "counts", "about")
PAYMENTS = ("worker", "completion_code", "items", "checks_passed", "checks", "minutes", "amount", "currency", "state")


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
             f"{one.amount:.2f}", currency, one.state]
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
