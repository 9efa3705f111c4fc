"""Answers to questions typed differently, read: drops by edit and by the number of characters touched."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import itemgetter

from pfungst.core import AnsweredTrial, Figure, Finding, Findings, Table
from pfungst.core.types import POINTS
from pfungst.probes import measure
from pfungst.probes.cells import Sheet, bars, drops_of, failures, largest_told, mean_known

TOUCHED = "touched"
"""Name of a trial's note: characters touched, by variant."""
BINS = ((1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 32), (33, math.inf))
"""Characters touched, from and to."""


def read(name: str, trials: Sequence[AnsweredTrial], about: Mapping[str, str], seed: int) -> Findings:
    """The findings; `about` names the edits and says what they do."""
    cells = Sheet.of(trials, edit_of, lambda trial, variant: _bin(trial.trial.notes[TOUCHED][variant]))
    by_name, by_length = cells.variants, cells.levels
    clean, disturbed, drop, changed, worst = cells.all.summary(trials, seed)
    order = [one for edit in about for one in sorted(by_name) if edit_of(one) == edit]
    drops = drops_of([(one, by_name[one]) for one in order], seed)
    accuracies = [by_name[one].accuracy(one, seed) for one in order]
    changes = [by_name[one].changes(one, seed) for one in order]
    means = _touched_means(trials)
    by_edit = Table(
        "By edit",
        ("edit", "what it does", "characters touched", "clean", "accuracy", "drop", *measure.P_COLUMNS,
         "answers changed", "n"),
        tuple(
            (one, about[edit_of(one)], round(means[one], 1), by_name[one].before(one, seed), accuracy, lost,
             *measure.p_cells(lost), change, len(by_name[one].scores))
            for one, accuracy, lost, change in zip(order, accuracies, drops, changes, strict=True)
        ),
        "Each edit is measured on the questions that it can change; clean: of the same questions. The headline is the "
        f"mean over edits{_joined(order)}.",
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
        clean, disturbed, drop, changed, worst, *accuracies, *drops, *changes, *length_accuracies, *length_drops,
    )  # fmt: skip
    line = measure.series("drop", levels, length_drops)
    curve = Figure("Drop by characters touched", "line", (line,), "characters touched", "drop, points", POINTS)
    return Findings(
        name, rows, _verdict(clean, disturbed, drop, drops, changed, worst, order), clean, disturbed, drop,
        (by_edit, by_characters), (bars("Drop under every edit", drops), curve), failures(trials),
    )  # fmt: skip


def edit_of(variant: str) -> str:
    """`typo 2` is an edit `typo`."""
    name, _, level = variant.rpartition(" ")
    return name if level.isdigit() else variant


def _joined(order: Sequence[str]) -> str:
    """That the levels of an edit count as one, where there are several."""
    several = [levels for levels in measure.grouped(order, edit_of).values() if len(levels) > 1]
    return "".join(f", of which {', '.join(levels[:-1])} and {levels[-1]} are one" for levels in several)


def _label(one: tuple[int, float]) -> str:
    low, high = one
    return f"{low} or more" if math.isinf(high) else str(low) if low == high else f"{low} to {int(high)}"


def _bin(length: int) -> str:
    return next(_label(one) for one in BINS if length <= one[1])


def _touched_means(trials: Sequence[AnsweredTrial]) -> dict[str, float]:
    lengths = [length for trial in trials for length in trial.trial.notes[TOUCHED].items()]
    return {name: mean_known(n for _, n in some) for name, some in measure.grouped(lengths, itemgetter(0)).items()}


def _verdict(
    clean: Finding, disturbed: Finding, drop: Finding, drops: Sequence[Finding], changed: Finding, worst: Finding,
    order: Sequence[str],
) -> str:  # fmt: skip
    told = (
        f"Typed differently, questions lose {measure.with_interval(drop)} of accuracy ({measure.percent(clean.value)} "
        f"to {measure.percent(disturbed.value)}; the mean over edits{_joined(order)}), and "
        f"{measure.with_interval(changed)} of the answers change."
    )
    told += largest_told(drops)
    return f"{told} Under the worst edit of each question {measure.with_interval(worst)} is left."
