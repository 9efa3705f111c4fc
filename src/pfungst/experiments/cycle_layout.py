"""The tables of a study of cycle consistency, in the layout of the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pfungst.core import Table
from pfungst.experiments.base import ENDS, Experiment
from pfungst.experiments.cycle import CONTROL, JUDGED, MEASURES, VARIANTS, CycleResult, CycleStudy, run
from pfungst.experiments.cycle_table import COLUMNS

Rows = Sequence[Mapping[str, Any]]
CONSENSUS = ("CS(1)", "CS(2)", "CS(3)", "CS(4)", "ORI", "REP")
STEP = "Every run at its best step on images that are not measured."


def study_tables(result: CycleResult) -> list[Table]:
    """Table 2 first, at the best step where the study looked for it; then Table 1 for every rephraser, the control with
    hidden words, Table 3, Table 4, and where models look."""
    if not result.rows:
        return [Table(f"Arrays in {result.prepared}", ("split", "questions"), tuple(result.splits.items()))]
    missing = f" {result.missing} runs are missing: run the same command again." if result.missing else ""
    how = f"In percent. 95% intervals: {result.how}.{missing}"
    found = [_parts("Cycle consistency", result.rows, how)]
    if result.best:
        note = "The same runs, each at its best step on images that are not measured."
        found.append(_parts("At the best step", result.best, note))
    shown = {result.rephraser: result.best or result.rows}
    shown |= {name: part["best"] or part["rows"] for name, part in result.others.items()}
    note = STEP if result.best else ""
    for name, rows in shown.items():
        about = f", wordings by {name}" if result.others else ""
        found += [_consensus(rows, about, note), _control(rows, about), _looks(rows, about, note)]
    found += [_writing(result.writing), _failures(result.failures)]
    return [table for table in found if table.rows]


def _parts(title: str, rows: Rows, note: str) -> Table:
    """Table 2, and CS(k) beside it."""
    columns = ("model", "variant", "seeds", *MEASURES, "CS(4) - base", "val - base")
    return Table(
        title,
        columns,
        tuple(
            (
                row["model"],
                VARIANTS[row["variant"]].title,
                row["seeds"],
                *(f"{100 * row[m]['value']:.2f}" for m in MEASURES),
                *(signed(row[f"{m} - base"]) if f"{m} - base" in row else "" for m in ("CS(4)", "val")),
            )
            for row in rows
        ),
        note,
    )


def _consensus(rows: Rows, about: str, note: str) -> Table:
    """Table 1: each model, and with the whole scheme (CC); below it the difference."""
    lines: list[tuple[str, ...]] = []
    for row in rows:
        if row["variant"] in JUDGED:
            lines.append((_scheme(row), *(f"{100 * row[m]['value']:.2f}" for m in CONSENSUS)))
            if "CS(4) - base" in row:
                lines.append(("  gain", *(signed(row[f"{m} - base"]) for m in CONSENSUS)))
    return Table(f"Consensus{about}", ("model", *CONSENSUS), tuple(lines), note)


def _scheme(row: Mapping[str, Any]) -> str:
    """A model, and with the whole scheme."""
    return str(row["model"]) + (" + CC" if row["variant"] == "gating" else "")


def _control(rows: Rows, about: str) -> Table:
    measures = ("CS(4)", "REP", "val")
    lines = tuple(
        (f"{row['model']} {VARIANTS[row['variant']].title}", *(signed(row[f"{m} - control"]) for m in measures))
        for row in rows
        if "control" in row
    )
    return Table(f"Against {VARIANTS[CONTROL].title}{about}", ("variant", *measures), lines)


def _looks(rows: Rows, about: str, note: str) -> Table:
    """Figure 4 as a number."""
    lines = tuple(
        (
            row["model"],
            VARIANTS[row["variant"]].title,
            f"{row['looks']['value']:.3f} [{row['looks']['low']:.3f}, {row['looks']['high']:.3f}]",
            _points(row["looks - base"], 3) if "looks - base" in row else "",
        )
        for row in rows
        if "looks" in row and row["variant"] in JUDGED
    )
    told = "The overlap of the attention in another wording with that in the original: 1 where it is the same."
    columns = ("model", "variant", "overlap", "- base")
    return Table(f"Where they look{about}", columns, lines, f"{told} {note}".strip())


def _writing(rows: Rows) -> Table:
    """Table 3."""
    names = list(rows[0]["mean"]) if rows else []
    lines = tuple(
        (
            row["model"],
            "what F attends to" if row["variant"] == "gating" else "the whole image",
            row["seeds"],
            *(f"{row['mean'][name]:.3f}" for name in names),
        )
        for row in rows
    )
    note = "One greedy question for each validation image and its right answer, against the one that was asked."
    return Table("Question generation", ("model", "G is told of", "seeds", *names), lines, note)


def _failures(rows: Rows) -> Table:
    """Table 4."""
    lines = tuple(
        (
            _scheme(row) + (" + FP" if row["way"] == "FP" else ""),
            row["seeds"],
            *(f"{row[name]:.3f}" if row[name] is not None else "" for name in COLUMNS),
            _points(row["f1 - base"], 3) if "f1 - base" in row else "",
        )
        for row in rows
    )
    columns = ("model", "seeds", "precision", "recall", "F1", "AUGRC", "ECE", "F1 - base")
    note = (
        "Half of the validation images set the threshold and train FP, the other half judges both. Means over seeds; "
        "the interval is Student's over the seeds."
    )
    return Table("Failure prediction", columns, lines, note)


def signed(one: Mapping[str, float]) -> str:
    """A difference with its interval, in percent."""
    return _points(one, 2, 100)


def _points(one: Mapping[str, float], digits: int, scale: int = 1) -> str:
    value, low, high = (f"{scale * one[end]:+.{digits}f}" for end in ENDS)
    return f"{value} [{low}, {high}]"


EXPERIMENT = Experiment("cycle", CycleStudy, run, study_tables)
