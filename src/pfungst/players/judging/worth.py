"""What an accuracy or a drop by a judge is worth: its bounds where judgements are missing, and its correction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pfungst.core import AnsweredTrial, Finding, Table
from pfungst.core.types import POINTS
from pfungst.probes import measure
from pfungst.scores.agreement import Agreement, corrected_accuracy, corrected_drop

if TYPE_CHECKING:
    from pfungst.players.judging.section import Judged


def accuracy_table(
    trials: Mapping[str, Sequence[AnsweredTrial]], held: Agreement | None, answers: Sequence[Judged], seed: int
) -> tuple[Table, list[Finding]]:
    """Every accuracy, and the findings that other probes do not have."""
    judged = {(one.probe, one.condition, id(one.trial)) for one in answers}
    rows, found = [], []
    for probe, condition in conditions(trials):
        some = measure.having(trials[probe], condition)
        plain = measure.accuracy(some, condition, seed)
        scores, clusters = measure.scores(some, condition), measure.clusters(some)
        gone = [math.isnan(s) and (probe, condition, id(t)) in judged for s, t in zip(scores, some, strict=True)]
        known = [score for score in scores if not math.isnan(score)]
        name, cells = f"{probe}: {condition}", []
        if any(gone):
            n = len(known) + sum(gone)
            bounds = (sum(known) / n, (sum(known) + sum(gone)) / n)
            cells = [Finding(f"accuracy if missing are {word}", value, n, condition=name)
                     for word, value in zip(("wrong", "right"), bounds)]  # fmt: skip
        corrected = []
        if held is not None:
            interval = corrected_accuracy(scores, clusters, held, seed=seed)
            corrected = [measure.finding("corrected accuracy", interval, name)]
        rows.append((probe, condition, plain.n, plain, sum(gone), *(cells or ("", "")), *corrected))
        found += [*cells, *corrected]
    columns = ("probe", "condition", "n", "judged right", "missing", "if missing are wrong", "if missing are right")
    return Table("Accuracy by the judge", _with_correction(columns, held), tuple(rows), _note(held)), found


def drop_table(
    trials: Mapping[str, Sequence[AnsweredTrial]], held: Agreement | None, answers: Sequence[Judged], seed: int
) -> tuple[Table, list[Finding]]:
    """Every drop from the clean condition."""
    judged = {(one.probe, one.condition, id(one.trial)) for one in answers}
    rows, found = [], []
    for probe, clean, condition in _pairs(trials):
        some = measure.having(measure.having(trials[probe], clean), condition)
        plain = measure.drop(some, clean, condition, seed)
        pairs = [tuple(_range(t.of(one)[1], (probe, one, id(t)) in judged) for one in (clean, condition)) for t in some]
        # The least drop there can be: missing clean answers wrong, missing disturbed ones right; and the other way.
        usable = [(a, b) for a, b in pairs if a is not None and b is not None]
        gone = sum(a[0] != a[1] or b[0] != b[1] for a, b in usable)
        name, cells = f"{probe}: {condition}", []
        if gone:
            least = sum(a[0] - b[1] for a, b in usable) / len(usable)
            most = sum(a[1] - b[0] for a, b in usable) / len(usable)
            cells = [Finding(f"{word} drop with missing counted", value, len(usable), condition=name, unit=POINTS)
                     for word, value in (("least", least), ("largest", most))]  # fmt: skip
        corrected = []
        if held is not None:
            scores = (measure.scores(some, clean), measure.scores(some, condition))
            interval = corrected_drop(*scores, measure.clusters(some), held, seed=seed)
            corrected = [measure.finding("corrected drop", interval, name, unit=POINTS)]
        rows.append((probe, condition, plain.n, plain, gone, *(cells or ("", "")), *corrected))
        found += [*cells, *corrected]
    columns = ("probe", "condition", "n", "drop", "missing", "least possible", "largest possible")
    return Table("Drops by the judge", _with_correction(columns, held), tuple(rows), _note(held)), found


def conditions(trials: Mapping[str, Sequence[AnsweredTrial]]) -> list[tuple[str, str]]:
    """Probe and condition, in the order they were asked."""
    found = {(probe, v.name): None for probe, some in trials.items() for trial in some for v in trial.trial.variants}
    return list(found)


def _pairs(trials: Mapping[str, Sequence[AnsweredTrial]]) -> list[tuple[str, str, str]]:
    found: dict[tuple[str, str, str], None] = {}
    for probe, some in trials.items():
        for trial in some:
            clean, *others = (variant.name for variant in trial.trial.variants)
            found.update(((probe, clean, other), None) for other in others)
    return list(found)


def _range(score: float, judged: bool) -> tuple[float, float] | None:
    """The scores an answer may have: its own, any where the judgement is missing, none where the truth is unknown."""
    if not math.isnan(score):
        return score, score
    return (0.0, 1.0) if judged else None


def _with_correction(columns: tuple[str, ...], held: Agreement | None) -> tuple[str, ...]:
    return (*columns, "corrected") if held is not None else columns


def _note(held: Agreement | None) -> str:
    if held is None:
        return ""
    if held.no_correction:
        return f"No correction is possible: {held.no_correction}."
    return (
        "Corrected: Rogan and Gladen's estimate, with sensitivity and specificity from the human labels. It holds "
        "where the judge errs here as often as on the labelled answers."
    )
