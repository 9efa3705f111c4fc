"""Conditions: the same questions, asked under several conditions that somebody else made.

`pfungst import` makes such data sets from answers that were already given: to clean and noisy images, in seven wordings
of the prompt, with the options in four orders. An example `ID@CONDITION` of the group `ID` is one question under one
condition; the example `ID` itself is the clean one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from pfungst.core import (
    AnsweredTrial,
    Dataset,
    Example,
    Figure,
    Finding,
    Findings,
    Probe,
    ProbeError,
    Table,
    Trial,
    Variant,
)
from pfungst.core.flips import alike
from pfungst.core.stats import Floats, Labels
from pfungst.logs.records import condition_of
from pfungst.probes import measure
from pfungst.probes.measure import agreement, failures, known_right, largest_drop, worst_of_n
from pfungst.scores import same_answer

KEEPS = "the right answer: it is the same under all conditions"
DIFFERS = "the question: the right answer differs between conditions, and each reply is judged by its own"
MOST_CATEGORIES = 60
"""Rows of the table by category."""


def member_id(group: str, condition: str) -> str:
    """The id of a question under a condition that is not the clean one."""
    return f"{group}@{condition}"


@dataclass(frozen=True)
class Conditions(Probe):
    """Questions asked under several conditions: accuracy of each, paired drops, flips, all of a group, worst of n."""

    conditions: tuple[str, ...] = ()
    """Their names, the clean one first; by default as they come in the data."""
    again: tuple[str, ...] = ()
    """Those that repeat the clean one: their changes are sampling noise."""
    missing: tuple[str, ...] = ()
    """Ids of the examples that were not answered."""
    name: str = "conditions"
    wordings: ClassVar[bool] = True

    def trials(self, data: Dataset, seed: int) -> Iterator[Trial]:
        groups = _groups(data, self.conditions[0] if self.conditions else "clean")
        names = list(self.conditions) or list(dict.fromkeys(name for members in groups for name in members))
        if not any(names[0] in members for members in groups):
            raise ProbeError(f"No question of {data.name} was asked under the condition {names[0]!r}.")
        gone = set(self.missing)
        for members in groups:
            asked = [(name, members[name]) for name in names if name in members]
            answered = [(name, example) for name, example in asked if example.id not in gone]
            if not answered or answered[0][0] != names[0]:
                continue  # nothing to compare with
            clean = answered[0][1]
            same = all(_same_target(clean, example) for _, example in answered)
            notes = {"missing": [name for name, example in asked if example.id in gone], "differs": not same}
            yield Trial(
                clean.id,
                tuple(
                    Variant(
                        name,
                        replace(measure.clean_query(example), take=take),
                        example.id,
                        role="control" if take and condition_of(name) in (*self.again, names[0]) else "",
                    )
                    for take, (name, example) in enumerate(answered)
                ),
                KEEPS if same else DIFFERS,
                {key: value for key, value in notes.items() if value},
            )

    def findings(self, trials: Sequence[AnsweredTrial], seed: int) -> Findings:
        variants = list(dict.fromkeys(variant.name for trial in trials for variant in trial.trial.variants))
        variants = [name for name in self.conditions if name in variants] or variants
        takes = measure.grouped(variants, condition_of)
        names = list(takes)
        scores, clusters = _scores(trials, takes), measure.clusters(trials)
        settled = _scores([one if one.trial.notes.get("differs") else replace(one, scores=measure.settled(one))
                           for one in trials], takes)  # fmt: skip
        accuracies = [measure.mean("accuracy", scores[name], clusters, seed, name) for name in names]
        clean, others = accuracies[0], names[1:]
        alike = [trial for trial in trials if not trial.trial.notes.get("differs")]
        repeated = [_changed(alike, takes[names[0]], names[0], seed)] if len(takes[names[0]]) > 1 else []
        if not others:
            tables = _by_category(trials, takes, seed)
            often = f" questions, answered up to {len(variants)} times" if repeated else ""
            verdict = (
                f"One condition, {clean.condition}: accuracy {measure.with_interval(clean)} (n = {clean.n:,}{often})."
            )
            verdict += _repetition(repeated)
            return Findings(self.name, (clean, *repeated), verdict, clean, tables=tables)
        drops = measure.corrected(
            [
                measure.difference(
                    "drop", scores[names[0]], scores[name], clusters, seed, name, (settled[names[0]], settled[name])
                )
                for name in others
            ]
        )
        changes = [_changed(alike, [variants[0], *takes[name]], name, seed) for name in others]
        again = [one for one in changes if one.condition in self.again]
        disturbed, drop = self._together(scores, settled, clusters, seed)
        groups = _group_findings(trials, alike, seed)
        noise = repeated[0] if repeated else ""
        several = len(variants) > len(names)
        compared: tuple[object, ...] = ("",) if several else ()
        rows: list[tuple[object, ...]] = [(names[0], clean, "", "", "", noise, "", "", "", *compared, clean.n)]
        for name, accuracy, lost, changed in zip(others, accuracies[1:], drops, changes, strict=True):
            flips = [measure.flips(trials, variants[0], take) for take in takes[name]]
            told = f"{name} (a repetition)" if name in self.again else name
            compared = (sum(one.n for one in flips),) if several else ()
            rows.append(
                (told, accuracy, lost, *measure.p_cells(lost), changed, sum(one.right_to_wrong for one in flips),
                 sum(one.wrong_to_right for one in flips), sum(one.wrong_to_other_wrong for one in flips), *compared,
                 accuracy.n)
            )  # fmt: skip
        columns = ("condition", "accuracy", f"drop from {names[0]}", *measure.P_COLUMNS, "answers changed",
                   "right to wrong", "wrong to right", "wrong to other wrong",
                   *(("answers compared", "n, questions") if several else ("n",)))  # fmt: skip
        note = (
            "Drops are paired: the same questions under both conditions. Going from an answer to a reply that cannot "
            "be read is a change; two unread replies are not compared."
        )
        if len(alike) < len(trials):
            note += (
                f" The right answer differs between conditions for {len(trials) - len(alike):,} of {len(trials):,} "
                "questions; they are left out of `answers changed` and `agreement`."
            )
        if several:
            note += (
                " Where a question was asked several times under a condition, its score is their mean and n counts it "
                "once; each of its answers is held against the first one under the clean condition, and "
                "what became of them counts answers."
            )
        table = Table("Conditions", columns, tuple(rows), note)
        together = Table(
            "Over the conditions",
            tuple(one.name for one in groups),
            (tuple(groups),),
            "All of group: right under every condition (circular accuracy, where the conditions are option orders). "
            "None of group: wrong under every condition. Worst of n: score under the worst condition. Agreement: pairs "
            "of conditions with the same answer. Where a question was asked several times under a condition, each of "
            "its answers counts here. Groups with a missing reply are left out.",
        )
        bars = measure.series("accuracy", names, accuracies)
        figure = Figure("Accuracy by condition", "bar", (bars,), y_label="accuracy")
        return Findings(
            self.name, (*accuracies, *drops, *repeated, *changes, disturbed, drop, *groups),
            self._verdict(clean, disturbed, drop, drops, [*repeated, *again], groups[0],
                          several), clean, disturbed, drop,
            (table, together, *_by_category(trials, takes, seed)), (figure,), failures(trials),
        )  # fmt: skip

    def _together(
        self, scores: Mapping[str, Floats], settled: Mapping[str, Floats], clusters: Labels, seed: int
    ) -> tuple[Finding, Finding]:
        """Mean accuracy over the conditions that are not clean and no repetition, and what is lost to it."""
        clean, *others = scores
        wanted = [name for name in others if name not in self.again]
        label = wanted[0] if len(wanted) == 1 else "mean of the other conditions"
        means, same = (_mean([some[name] for name in wanted or others]) for some in (scores, settled))
        drop = measure.difference("drop", scores[clean], means, clusters, seed, label, (settled[clean], same))
        return measure.mean("accuracy", means, clusters, seed, label), drop

    def _verdict(
        self,
        clean: Finding,
        disturbed: Finding,
        drop: Finding,
        drops: Sequence[Finding],
        repeated: Sequence[Finding],
        together: Finding,
        several: bool,
    ) -> str:
        told = (
            f"Accuracy goes from {measure.percent(clean.value)} ({clean.condition}) to "
            f"{measure.percent(disturbed.value)} ({disturbed.condition}), a drop of {measure.with_interval(drop)}."
        )
        told += largest_drop([one for one in drops if one.condition not in self.again])
        if not math.isnan(together.value):
            every = "Right in every answer, under every condition" if several else "Right under every condition"
            told += f" {every}: {measure.with_interval(together)}."
        return told + _repetition(repeated)


def _repetition(changes: Sequence[Finding]) -> str:
    return f" The repetition alone changes {measure.with_interval(changes[0])} of the answers." if changes else ""


def _groups(data: Dataset, clean: str) -> list[dict[str, Example]]:
    """Condition -> example, of every group; the clean one first."""
    found = []
    for group, members in measure.grouped(data, lambda example: example.group or example.id).items():
        members.sort(key=lambda member: member.id != group)
        names = [clean if member.id == group else _condition(group, member, n) for n, member in enumerate(members, 1)]
        found.append(dict(zip(names, members, strict=True)))
    return found


def _condition(group: str, member: Example, place: int) -> str:
    before = member_id(group, "")
    return member.id.removeprefix(before) if member.id.startswith(before) else f"member {place}"


def _same_target(first: Example, second: Example) -> bool:
    if first.target is None or second.target is None:
        return first.answers == second.answers
    return same_answer(first.target, second.target)


def _scores(trials: Sequence[AnsweredTrial], takes: Mapping[str, Sequence[str]]) -> dict[str, Floats]:
    """The score of every trial under every condition, the mean over its repetitions; NaN where there is none."""
    columns = {name: np.full(len(trials), math.nan) for some in takes.values() for name in some}
    for at, trial in enumerate(trials):
        for variant, score in zip(trial.trial.variants, trial.scores, strict=True):
            columns[variant.name][at] = score
    return {condition: _mean([columns[name] for name in some]) for condition, some in takes.items()}


def _changed(trials: Sequence[AnsweredTrial], variants: Sequence[str], condition: str, seed: int) -> Finding:
    """The share of answers, question by question, that are another one than that of the first of these variants."""
    first, *others = variants
    shares = []
    for trial in trials:
        answers = {variant.name: answer for variant, answer in zip(trial.trial.variants, trial.answers, strict=True)}
        shares.append([1 - alike(answers[first], answers[name]) if name in answers else math.nan
                       for name in others])  # fmt: skip
    changed = _mean(np.array(shares, np.float64).reshape(len(trials), len(others)).T)
    return measure.mean("answers changed", changed, measure.clusters(trials), seed, condition)


def _mean(columns: Sequence[Floats] | Floats) -> Floats:
    """The mean of these columns, row by row, over what is known."""
    values = np.asarray(columns)
    known = (~np.isnan(values)).sum(0)
    return np.where(known > 0, np.nansum(values, 0) / np.maximum(known, 1), math.nan)


def _group_findings(trials: Sequence[AnsweredTrial], alike: Sequence[AnsweredTrial], seed: int) -> list[Finding]:
    whole, same = (
        [trial for trial in some if len(trial.scores) > 1 and not trial.trial.notes.get("missing")]
        for some in (trials, alike)
    )
    clusters = measure.clusters(whole)
    return [
        measure.mean("all of group", [known_right(trial.scores, all) for trial in whole], clusters, seed),
        measure.mean("none of group", [1 - known_right(trial.scores, any) for trial in whole], clusters, seed),
        worst_of_n(whole, seed),
        measure.mean("agreement", [agreement(trial) for trial in same], measure.clusters(same), seed),
    ]


def _by_category(trials: Sequence[AnsweredTrial], takes: Mapping[str, Sequence[str]], seed: int) -> tuple[Table, ...]:
    """Accuracy of every condition by the category of the question, where there are categories."""
    kinds = measure.grouped(trials, lambda trial: trial.example.question_type or trial.example.answer_type)
    if not 1 < len(kinds) <= MOST_CATEGORIES:
        return ()
    rows = []
    for kind, some in sorted(kinds.items()):
        scores, clusters = _scores(some, takes), measure.clusters(some)
        cells: list[object] = [measure.mean("accuracy", scores[name], clusters, seed, name) for name in takes]
        if len(takes) > 1:
            cells.append(_group_findings(some, some, seed)[0])
        rows.append((kind or "unknown", *cells, len(some)))
    columns = ("category", *takes, *(("all of group",) if len(takes) > 1 else ()), "n")
    return (Table("Accuracy by category", columns, tuple(rows)),)
