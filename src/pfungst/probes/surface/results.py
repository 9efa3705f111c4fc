"""Answers to questions typed differently, read: drops by edit and by the number of characters touched."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pfungst.core import AnsweredTrial, Figure, Finding, Findings, Series, Table
from pfungst.probes import measure
from pfungst.probes.cells import Cell, Cells, cells_of, drops_of, failures, largest_told, mean_cell, worst_of_n

TOUCHED = "touched"
"""Name of a trial's note: characters touched, by variant."""
MEAN = "mean of all"
BINS = ((1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 32), (33, math.inf))
"""Characters touched, from and to."""


def read(name: str, trials: Sequence[AnsweredTrial], about: Mapping[str, str], seed: int) -> Findings:
    """The findings; `about` names the edits and says what they do."""
    by_name: dict[str, Cells] = {}
    by_length: dict[str, Cells] = {}
    everything = Cells()
    for trial in trials:
        clean, cluster = trial.scores[0], measure.cluster(trial)
        edits: dict[str, list[Cell]] = {}
        lengths: dict[str, list[Cell]] = {}
        for variant, cell in cells_of(trial):
            by_name.setdefault(variant, Cells()).add(clean, cell, cluster)
            edits.setdefault(edit_of(variant), []).append(cell)
            lengths.setdefault(_bin(trial.trial.notes[TOUCHED][variant]), []).append(cell)
        for length, some in lengths.items():
            by_length.setdefault(length, Cells()).add(clean, mean_cell(some), cluster)
        # every edit counts the same, at however many levels it could be made
        everything.add(clean, mean_cell([mean_cell(some) for some in edits.values()]), cluster)
    clean_accuracy = measure.accuracy(trials, "clean", seed)
    disturbed, drop = everything.accuracy(MEAN, seed), everything.drop(MEAN, seed)
    changed, worst = everything.changes(MEAN, seed), worst_of_n(trials, seed)
    order = [one for edit in about for one in sorted(by_name) if edit_of(one) == edit]
    drops = drops_of([(one, by_name[one]) for one in order], seed)
    accuracies = [by_name[one].accuracy(one, seed) for one in order]
    changes = [by_name[one].changes(one, seed) for one in order]
    means = _touched_means(trials)
    by_edit = Table(
        "By edit",
        ("edit", "what it does", "characters touched", "clean", "accuracy", "drop", "p (Holm)", "answers changed", "n"),
        tuple(
            (one, about[edit_of(one)], round(means[one], 1), by_name[one].before(one, seed), accuracy, lost, lost.p,
             change, len(by_name[one].scores))
            for one, accuracy, lost, change in zip(order, accuracies, drops, changes, strict=True)
        ),
        "Each edit is measured on the questions in which it finds something to do; clean: of the same questions.",
    )  # fmt: skip
    levels = [label for label in map(_label, BINS) if label in by_length]
    named = {label: "1 character" if label == "1" else f"{label} characters" for label in levels}
    length_drops = [by_length[label].drop(named[label], seed) for label in levels]
    length_accuracies = [by_length[label].accuracy(named[label], seed) for label in levels]
    by_characters = Table(
        "By characters touched",
        ("characters", "clean", "accuracy", "drop", "n"),
        tuple(
            (label, by_length[label].before(label, seed), accuracy, lost, len(by_length[label].scores))
            for label, accuracy, lost in zip(levels, length_accuracies, length_drops, strict=True)
        ),
        "Insertions, deletions and replacements of characters, over all edits.",
    )
    rows = (
        clean_accuracy, disturbed, drop, changed, worst, *accuracies, *drops, *changes, *length_accuracies,
        *length_drops,
    )  # fmt: skip
    return Findings(
        name, rows, _verdict(clean_accuracy, disturbed, drop, drops, changed, worst), clean_accuracy, disturbed, drop,
        (by_edit, by_characters), (_bars(drops), _curve(levels, length_drops)), failures(trials),
    )  # fmt: skip


def edit_of(variant: str) -> str:
    """`typo 2` is an edit `typo`."""
    name, _, level = variant.rpartition(" ")
    return name if level.isdigit() else variant


def _label(one: tuple[int, float]) -> str:
    low, high = one
    return f"{low} or more" if math.isinf(high) else str(low) if low == high else f"{low} to {int(high)}"


def _bin(length: int) -> str:
    return next(_label(one) for one in BINS if length <= one[1])


def _touched_means(trials: Sequence[AnsweredTrial]) -> dict[str, float]:
    lengths: dict[str, list[int]] = {}
    for trial in trials:
        for name, length in trial.trial.notes[TOUCHED].items():
            lengths.setdefault(name, []).append(length)
    return {name: sum(some) / len(some) for name, some in lengths.items()}


def _bars(drops: Sequence[Finding]) -> Figure:
    ordered = sorted(drops, key=lambda one: -one.value if one.value == one.value else math.inf)
    return Figure("Drop under every edit", "bar", (_series([one.condition for one in ordered], ordered),), "", "drop")


def _curve(labels: Sequence[str], drops: Sequence[Finding]) -> Figure:
    return Figure("Drop by characters touched", "line", (_series(labels, drops),), "characters touched", "drop")


def _series(labels: Sequence[str], found: Sequence[Finding]) -> Series:
    values = [(one.value, one.low, one.high) for one in found]
    value, low, high = (tuple(column) for column in zip(*values, strict=True))
    return Series("drop", tuple(labels), value, low, high)


def _verdict(
    clean: Finding, disturbed: Finding, drop: Finding, drops: Sequence[Finding], changed: Finding, worst: Finding
) -> str:
    told = (
        f"Typed differently, questions lose {measure.with_interval(drop)} of accuracy ({measure.percent(clean.value)} "
        f"to {measure.percent(disturbed.value)}), and {measure.with_interval(changed)} of the answers change."
    )
    told += largest_told(drops)
    return f"{told} Under the worst edit of each question {measure.with_interval(worst)} is left."
