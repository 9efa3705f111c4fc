"""Answers gathered under a heading, trial by trial: for probes that ask an example in many ways."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import Generic, TypeVar

from pfungst.core import AnsweredTrial, Failure, Figure, Finding
from pfungst.core.flips import alike
from pfungst.core.types import POINTS
from pfungst.probes import measure

MEAN = "mean of all"
"""Condition of the findings over all variants."""
Cell = tuple[float, float, float]
"""A score, whether the answer changed, and the score where answers that are the same score the same."""
Level = TypeVar("Level", str, int)


@dataclass
class Cells:
    """One row a trial: the clean score, the means of what stands in the cells under this heading."""

    clean: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    changed: list[float] = field(default_factory=list)
    settled: list[float] = field(default_factory=list)
    clusters: list[str] = field(default_factory=list)

    def add(self, clean: float, cell: Cell, cluster: str) -> None:
        self.clean.append(clean)
        for column, value in zip((self.scores, self.changed, self.settled), cell, strict=True):
            column.append(value)
        self.clusters.append(cluster)

    def before(self, condition: str, seed: int) -> Finding:
        """Clean accuracy on the same trials."""
        return measure.mean("accuracy", self.clean, self.clusters, seed, condition)

    def accuracy(self, condition: str, seed: int) -> Finding:
        return measure.mean("accuracy", self.scores, self.clusters, seed, condition)

    def drop(self, condition: str, seed: int) -> Finding:
        settled = (self.clean, self.settled)
        return measure.difference("drop", self.clean, self.scores, self.clusters, seed, condition, settled)

    def changes(self, condition: str, seed: int) -> Finding:
        return measure.mean("answers changed", self.changed, self.clusters, seed, condition)

    def summary(self, trials: Sequence[AnsweredTrial], seed: int) -> tuple[Finding, Finding, Finding, Finding, Finding]:
        """Clean accuracy; accuracy, drop and changes over all variants; worst of n."""
        found = self.accuracy(MEAN, seed), self.drop(MEAN, seed), self.changes(MEAN, seed)
        return measure.accuracy(trials, "clean", seed), *found, worst_of_n(trials, seed)


@dataclass(frozen=True)
class Sheet(Generic[Level]):
    """The answers by variant, by heading, by level, and all together; each a mean for every trial."""

    variants: Mapping[str, Cells]
    headings: Mapping[str, Cells]
    levels: Mapping[Level, Cells]
    all: Cells

    @classmethod
    def of(
        cls,
        trials: Sequence[AnsweredTrial],
        heading: Callable[[str], str],
        level: Callable[[AnsweredTrial, str], Level],
    ) -> Sheet[Level]:
        """heading: of a variant. level: of a variant of a trial."""
        variants: dict[str, Cells] = defaultdict(Cells)
        headings: dict[str, Cells] = defaultdict(Cells)
        levels: dict[Level, Cells] = defaultdict(Cells)
        everything = Cells()
        for trial in trials:
            clean, cluster, cells = trial.scores[0], measure.cluster(trial), cells_of(trial)
            by_heading = _means(cells, heading)
            for variant, cell in cells:
                variants[variant].add(clean, cell, cluster)
            for name, cell in by_heading.items():
                headings[name].add(clean, cell, cluster)
            for place, cell in _means(cells, partial(level, trial)).items():
                levels[place].add(clean, cell, cluster)
            # every heading counts the same, at however many levels there are variants of it
            everything.add(clean, mean_cell(by_heading.values()), cluster)
        return cls(dict(variants), dict(headings), dict(levels), everything)


def cells_of(trial: AnsweredTrial) -> list[tuple[str, Cell]]:
    """The variants of a trial but the clean one, by name."""
    changed = (1.0 - alike(trial.answers[0], answer) for answer in trial.answers)
    cells = zip(trial.scores, changed, measure.settled(trial), strict=True)
    return [(one.name, cell) for one, cell in zip(trial.trial.variants, cells, strict=True)][1:]


def mean_cell(cells: Iterable[Cell]) -> Cell:
    """Mean score, unknown where one is; mean change over the pairs that can be compared."""
    scores, changes, settled = zip(*cells, strict=True)
    return sum(scores) / len(scores), mean_known(changes), sum(settled) / len(settled)


def mean_known(values: Iterable[float]) -> float:
    """The mean of those that are known; NaN where none is."""
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


def _means(cells: Sequence[tuple[str, Cell]], heading: Callable[[str], Level]) -> dict[Level, Cell]:
    groups = measure.grouped(cells, lambda named: heading(named[0]))
    return {name: mean_cell(cell for _, cell in some) for name, some in groups.items()}


def lost(trial: AnsweredTrial, heading: Callable[[str], str]) -> float:
    """Clean score minus the mean over headings, each of which counts the same, of the mean score of its variants."""
    return trial.scores[0] - mean_cell(_means(cells_of(trial), heading).values())[0]


def drops_of(cells: Sequence[tuple[str, Cells]], seed: int) -> list[Finding]:
    """The drop under every heading, tests corrected for their number."""
    return measure.corrected([some.drop(name, seed) for name, some in cells])


def largest_told(drops: Sequence[Finding]) -> str:
    """A sentence on the largest of several drops, for verdicts; nothing where there is one alone."""
    known = [one for one in drops if not math.isnan(one.value)]
    if len(known) < 2:
        return ""
    most = max(known, key=lambda one: one.value)
    if most.value <= 0:
        return f" Under none of the {len(known)} does accuracy fall."
    sure = "" if most.p_holm is None else f" (p = {most.p_holm:.2g} after Holm)"
    return f" The largest drop is that under {most.condition}, {measure.with_interval(most)}{sure}."


def bars(title: str, drops: Sequence[Finding]) -> Figure:
    """The drops, largest first."""
    ordered = sorted(drops, key=lambda one: -one.value if one.value == one.value else math.inf)
    series = measure.series("drop", (one.condition for one in ordered), ordered)
    return Figure(title, "bar", (series,), "", "drop, points", POINTS)


def agreement(trial: AnsweredTrial) -> float:
    """Share of the pairs of variants with the same answer, of those that can be compared."""
    return mean_known(alike(a, b) for a, b in combinations(trial.answers, 2))


def known_right(scores: Sequence[float], rule: Callable[[Iterable[bool]], bool]) -> float:
    """1 where all (or any) are right: a score above 0, as everywhere; NaN where one is unknown."""
    return math.nan if any(map(math.isnan, scores)) else float(rule(score > 0 for score in scores))


def worst_of_n(trials: Sequence[AnsweredTrial], seed: int) -> Finding:
    """Mean over trials of the least score of any variant, the clean one included."""
    least = [math.nan if any(math.isnan(score) for score in one.scores) else min(one.scores) for one in trials]
    return measure.mean("worst of n", least, measure.clusters(trials), seed)


def failures(trials: Sequence[AnsweredTrial]) -> tuple[Failure, ...]:
    """Trials that are right when clean and wrong under some variant, the largest losses first."""
    found = []
    for trial in trials:
        score = min(trial.scores)
        if trial.scores[0] - score > 0:
            place = trial.scores.index(score)
            found.append(Failure(trial.example.id, trial.trial.variants[place].name, trial.scores[0] - score))
    return tuple(sorted(found, key=lambda failure: -failure.loss)[: measure.WORST])
