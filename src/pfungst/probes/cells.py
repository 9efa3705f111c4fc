"""Answers gathered under a heading, trial by trial: for probes that ask an example in many ways."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from pfungst.core import AnsweredTrial, Failure, Finding
from pfungst.core.stats import bootstrap, compare_paired, holm
from pfungst.probes import measure

Cell = tuple[float, float]
"""A score, and whether the answer changed."""


@dataclass
class Cells:
    """One row a trial: the clean score, the mean score under this heading, how often the answer changed."""

    clean: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    changed: list[float] = field(default_factory=list)
    clusters: list[str] = field(default_factory=list)

    def add(self, clean: float, cell: Cell, cluster: str) -> None:
        self.clean.append(clean)
        self.scores.append(cell[0])
        self.changed.append(cell[1])
        self.clusters.append(cluster)

    def before(self, condition: str, seed: int) -> Finding:
        """Clean accuracy on the same trials."""
        return measure.finding("accuracy", bootstrap(self.clean, self.clusters, seed=seed), condition)

    def accuracy(self, condition: str, seed: int) -> Finding:
        return measure.finding("accuracy", bootstrap(self.scores, self.clusters, seed=seed), condition)

    def drop(self, condition: str, seed: int) -> Finding:
        paired = compare_paired(self.clean, self.scores, self.clusters, seed=seed)
        return measure.finding("drop", paired.difference, condition, paired.p, paired.how)

    def changes(self, condition: str, seed: int) -> Finding:
        return measure.finding("answers changed", bootstrap(self.changed, self.clusters, seed=seed), condition)


def cells_of(trial: AnsweredTrial) -> list[tuple[str, Cell]]:
    """The variants of a trial but the clean one, by name."""
    rows = zip(trial.trial.variants[1:], trial.answers[1:], trial.scores[1:], strict=True)
    return [(one.name, (score, 1.0 - measure.alike(trial.answers[0], answer))) for one, answer, score in rows]


def mean_cell(some: Sequence[Cell]) -> Cell:
    """Mean score, unknown where one is; mean change over the pairs that can be compared."""
    changes = [change for _, change in some if not math.isnan(change)]
    return sum(score for score, _ in some) / len(some), sum(changes) / len(changes) if changes else math.nan


def lost(trial: AnsweredTrial, heading: Callable[[str], str]) -> float:
    """Clean score minus the mean over headings, each of which counts the same, of the mean score of its variants."""
    some: dict[str, list[Cell]] = {}
    for variant, cell in cells_of(trial):
        some.setdefault(heading(variant), []).append(cell)
    return trial.scores[0] - mean_cell([mean_cell(cells) for cells in some.values()])[0]


def drops_of(cells: Sequence[tuple[str, Cells]], seed: int) -> list[Finding]:
    """The drop under every heading, tests corrected for their number."""
    drops = [some.drop(name, seed) for name, some in cells]
    corrected = holm([math.nan if one.p is None else one.p for one in drops])
    return [replace(one, p=p, how=f"{one.how}, Holm") for one, p in zip(drops, corrected, strict=True)]


def largest_told(drops: Sequence[Finding]) -> str:
    """A sentence on the largest of several drops, for verdicts; nothing where there is one alone."""
    known = [one for one in drops if not math.isnan(one.value)]
    if len(known) < 2:
        return ""
    most = max(known, key=lambda one: one.value)
    sure = "" if most.p is None else f" (p = {most.p:.2g} after Holm)"
    return f" The largest drop is that under {most.condition}, {measure.with_interval(most)}{sure}."


def worst_of_n(trials: Sequence[AnsweredTrial], seed: int) -> Finding:
    """Mean over trials of the least score of any variant, the clean one included."""
    least = [math.nan if any(math.isnan(score) for score in one.scores) else min(one.scores) for one in trials]
    return measure.finding("worst of n", bootstrap(least, measure.clusters(trials), seed=seed))


def failures(trials: Sequence[AnsweredTrial]) -> tuple[Failure, ...]:
    """Trials that are right when clean and wrong under some variant, the largest losses first."""
    found = []
    for trial in trials:
        score = min(trial.scores)
        if trial.scores[0] - score > 0:
            place = trial.scores.index(score)
            found.append(Failure(trial.example.id, trial.trial.variants[place].name, trial.scores[0] - score))
    return tuple(sorted(found, key=lambda failure: -failure.loss)[: measure.WORST])
