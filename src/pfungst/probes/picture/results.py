"""Answers about disturbed images, read: severity curves, drops, worst of n, and where accuracy falls by half."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pfungst.core import AnsweredTrial, Figure, Finding, Findings, Series, Table, UsageError, read_config
from pfungst.core.stats import Floats, jackknife
from pfungst.core.types import POINTS
from pfungst.probes import measure
from pfungst.probes.cells import MEAN, Cells, Sheet, bars, drops_of, failures, largest_told

SHOWN = 5
"""Operations that get a curve of their own, those with the largest drops."""


def read(
    name: str,
    trials: Sequence[AnsweredTrial],
    about: Mapping[str, str],
    severities: Sequence[int],
    reference: Mapping[str, float] | None,
    seed: int,
) -> Findings:
    """The findings; `about` names the operations and says what they do, `reference` has another player's drops."""
    cells = Sheet.of(trials, operation_of, lambda trial, variant: int(variant.rpartition(" ")[2]))
    present = [one for one in about if one in cells.headings]
    clean, disturbed, drop, changed, worst = cells.all.summary(trials, seed)
    drops = drops_of([(one, cells.headings[one]) for one in present], seed)
    accuracies = {one: found.accuracy(one, seed) for one, found in cells.variants.items()}
    changes = [cells.headings[one].changes(one, seed) for one in present]
    halves = {one: half_at(cells.variants, one, severities) for one in present}
    found_halves = [
        Finding("half at", value, len(cells.headings[one].scores), condition=one, how="interpolated", unit="severity")
        for one, value in halves.items()
        if not math.isnan(value)
    ]
    mean_drop, relative = _mean_drops(cells, present, reference)
    levels = sorted(severities)
    by_operation = [
        (one, about[one], cells.headings[one].before(one, seed), *(accuracies.get(f"{one} {at}", "") for at in levels),
         lost, *measure.p_cells(lost), change, "not reached" if math.isnan(halves[one]) else f"{halves[one]:.1f}",
         len(cells.headings[one].scores))
        for one, lost, change in zip(present, drops, changes, strict=True)
    ]  # fmt: skip
    table = Table(
        "By operation",
        (
            "operation",
            "what it does",
            "clean",
            *map(str, levels),
            "drop",
            *measure.P_COLUMNS,
            "answers changed",
            "half at",
            "n",
        ),
        tuple(by_operation),
        "Accuracy at every severity. Clean: of the same questions. Half at: the severity at which accuracy falls to "
        "half of that. A severity that the contract refuses for some questions is measured on the others.",
    )
    rows = (
        clean, disturbed, drop, mean_drop, *relative, changed, worst, *accuracies.values(), *drops, *changes,
        *found_halves,
    )  # fmt: skip
    figures = (bars("Drop under every operation", drops), *_curves(cells, drops, accuracies, clean, levels, seed))
    verdict = _verdict(clean, disturbed, drop, drops, worst, halves, relative)
    tables = (table, *_refusals(trials))
    return Findings(name, rows, verdict, clean, disturbed, drop, tables, figures, failures(trials))


def operation_of(variant: str) -> str:
    """`blur 3` is an operation `blur`."""
    return variant.rpartition(" ")[0]


def half_at(variants: Mapping[str, Cells], operation: str, severities: Sequence[int]) -> float:
    """The severity at which accuracy first falls to half of that on the clean images, interpolated; NaN if it never
    does. Severity 0 is the clean image."""
    before, kept = 0, 1.0
    for severity in sorted(severities):
        some = variants.get(f"{operation} {severity}")
        if some is None:
            continue
        known = [(a, b) for a, b in zip(some.clean, some.scores, strict=True) if not math.isnan(a + b)]
        total = sum(a for a, _ in known)
        if not total:
            continue
        share = sum(b for _, b in known) / total
        if share <= 0.5:
            return before + (severity - before) * (kept - 0.5) / (kept - share)
        before, kept = severity, share
    return math.nan


def reference_drops(run: Path, severities: Sequence[int]) -> dict[str, float]:
    """The drop under every operation of the player of another run."""
    probes = {one["name"]: one.get("settings", {}) for one in read_config(run)["probes"]}
    if "picture" not in probes:
        raise UsageError(f"The reference {run} did not run the probe picture. Name a run folder that did.")
    theirs = sorted(probes["picture"].get("severities", ()))
    if theirs != sorted(severities):
        raise UsageError(
            f"The reference {run} was asked at the severities {'+'.join(map(str, theirs))}, not "
            f"{'+'.join(map(str, sorted(severities)))}: drops at other severities cannot be compared."
        )
    path = run / "findings.json"
    try:
        told: Any = json.loads(path.read_text("utf-8"))
        (found,) = [one for one in told["findings"] if one["probe"] == "picture"]
        drops = {row["condition"]: row["value"] for row in found["rows"] if row["name"] == "drop"}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} has no findings of the probe picture ({error}). Finish that exam first.") from error
    return {name: float(value) for name, value in drops.items() if name != MEAN and value is not None}


# --- by operation and severity ----------------------------------------------------------------------------------------


def _mean_drops(
    cells: Sheet[int], present: Sequence[str], reference: Mapping[str, float] | None
) -> tuple[Finding, list[Finding]]:
    """The mean of the operations' drops, as in ImageNet-C; and relative to the reference over those that both have."""
    mean = _mean_drop([cells.headings[one] for one in present], "mean corruption drop", 1.0)
    shared = [one for one in present if reference is not None and one in reference]
    if reference is None or not shared:
        return mean, []
    theirs = sum(reference[one] for one in shared) / len(shared)
    if theirs <= 0:  # a reference that loses nothing is no measure
        return mean, [Finding("relative drop", math.nan, mean.n, how="the reference loses nothing", unit="times")]
    ours = _mean_drop([cells.headings[one] for one in shared], "relative drop", 1 / theirs)
    return mean, [replace(ours, unit="times", condition=f"{len(shared)} operations")]


def _mean_drop(some: Sequence[Cells], name: str, factor: float) -> Finding:
    """The mean of several drops."""
    names = dict.fromkeys(cluster for cell in some for cluster in cell.clusters)
    labels = {cluster: at for at, cluster in enumerate(names)}
    sums, counts = np.zeros((len(some), len(labels))), np.zeros((len(some), len(labels)))
    for row, cell in enumerate(some):
        lost = np.array(cell.clean) - np.array(cell.scores)
        codes = np.array([labels[cluster] for cluster in cell.clusters])
        known = ~np.isnan(lost)
        sums[row] = np.bincount(codes[known], weights=lost[known], minlength=len(labels))
        counts[row] = np.bincount(codes[known], minlength=len(labels))
    found = jackknife(np.vstack([sums, counts]).T, counts.sum(0), _mean_of_means, bounds=(-1.0, 1.0))
    scaled = {end: factor * getattr(found, end) for end in ("value", "low", "high", "at_least", "at_most")}
    n = max((len(cell.scores) for cell in some), default=0)
    return measure.finding(name, replace(found, **scaled, n=n), unit=POINTS)


def _mean_of_means(sums: Floats) -> Floats:
    """From (times, sums and then counts of every operation)."""
    total, count = np.split(sums, 2, axis=1)
    means = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    known = (count > 0).sum(1)
    return np.asarray(np.where(known > 0, np.nansum(means, 1) / np.maximum(known, 1), np.nan))


# --- in words, tables and figures -------------------------------------------------------------------------------------


def _refusals(trials: Sequence[AnsweredTrial]) -> list[Table]:
    counts: Counter[tuple[str, str]] = Counter()
    lost = 0
    for trial in trials:
        lost += int(trial.trial.notes.get("left out", 0))
        counts.update(trial.trial.notes.get("refused", {}).items())
    if not counts and not lost:
        return []
    told = (
        f" {lost} more questions are left out of all numbers: none of the operations is allowed on their images."
        if lost
        else ""
    )
    return [
        Table(
            "Refused",
            ("operation", "because the question, or its image", "questions"),
            tuple((name, why, n) for (name, why), n in sorted(counts.items())),
            f"A disturbance that could change the right answer is left out.{told}",
        )
    ]


def _curves(
    cells: Sheet[int],
    drops: Sequence[Finding],
    accuracies: Mapping[str, Finding],
    clean: Finding,
    levels: Sequence[int],
    seed: int,
) -> list[Figure]:
    if len(levels) < 2:
        return []
    known = [level for level in levels if level in cells.levels]
    means = [clean, *(cells.levels[level].accuracy("", seed) for level in known)]
    lines = [measure.series("all operations", (0, *known), means)]
    order = [one.condition for one in sorted(drops, key=lambda one: -one.value)]
    for name in order[:SHOWN]:
        points = [(0, cells.headings[name].before(name, seed).value)]
        points += [(at, accuracies[f"{name} {at}"].value) for at in levels if f"{name} {at}" in accuracies]
        lines.append(Series(name, tuple(at for at, _ in points), tuple(value for _, value in points)))
    title = "Accuracy by severity" + (f", the {SHOWN} largest drops" if len(order) > SHOWN else "")
    return [Figure(title, "line", tuple(lines), "severity", "accuracy")]


def _verdict(
    clean: Finding,
    disturbed: Finding,
    drop: Finding,
    drops: Sequence[Finding],
    worst: Finding,
    halves: Mapping[str, float],
    relative: Sequence[Finding],
) -> str:
    told = (
        f"Disturbed images cost {measure.with_interval(drop)} of accuracy ({measure.percent(clean.value)} to "
        f"{measure.percent(disturbed.value)})."
    )
    told += largest_told(drops)
    told += f" Under the worst disturbance of each question {measure.with_interval(worst)} is left."
    fallen = [f"{one} (severity {value:.1f})" for one, value in halves.items() if not math.isnan(value)]
    if fallen:
        told += f" Accuracy falls by half under {', '.join(fallen)}."
    for one in relative:
        if not math.isnan(one.value):
            told += f" That is {one.value:.2f} [{one.low:.2f}, {one.high:.2f}] times what the reference loses."
    return told
