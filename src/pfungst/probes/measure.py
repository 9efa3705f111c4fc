"""What every probe does the same way: the clean query, means, differences, flips, tables, the worst failures.

First what a clean and a disturbed variant take, then what probes take that ask an example in many ways.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations, compress
from operator import attrgetter
from typing import Any, Generic, TypeVar

import numpy as np

from pfungst.core import AnsweredTrial, Example, Failure, Figure, Finding, NamedImage, Query, Series, Table, Trial
from pfungst.core.answered import AnsweredTrials
from pfungst.core.flips import Flips, alike, count_flips
from pfungst.core.stats import Floats, Interval, Labels, compare_paired, holm, interval_of
from pfungst.core.types import POINTS

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)
Level = TypeVar("Level", str, int)

TINY = 1e-12
"""Scores that differ by no more are the same: means are sums in some order."""
WORST = 12
"""Failures shown in a report."""
MEAN = "mean of all"
"""Condition of the findings over all variants."""
Cell = tuple[float, float, float]
"""A score, whether the answer changed, and the score where answers that are the same score the same."""


def clean_query(example: Example) -> Query:
    """The example as it stands in its data set."""
    image = example.image
    if image is None and example.image_id:
        image = NamedImage(example.image_id)
    return Query(example.question, image, example.choices, example.scene)


def cluster(trial: AnsweredTrial) -> str:
    return trial.example.cluster


# Where the trials are too many to hold, the next four read columns; all statistics are made of what they give.


def having(trials: Sequence[AnsweredTrial], variant: str) -> Sequence[AnsweredTrial]:
    """The trials that contain this variant."""
    if isinstance(trials, AnsweredTrials):
        return trials.having(variant)
    return [one for one in trials if any(v.name == variant for v in one.trial.variants)]


def chosen(trials: Sequence[AnsweredTrial], mask: Sequence[bool]) -> Sequence[AnsweredTrial]:
    """The trials for which the mask is true."""
    if isinstance(trials, AnsweredTrials):
        return trials.where(np.array(mask, bool))
    return list(compress(trials, mask))


def scores(trials: Sequence[AnsweredTrial], variant: str) -> Floats:
    if isinstance(trials, AnsweredTrials):
        return trials.scores(variant)
    return np.array([one.of(variant)[1] for one in trials], np.float64)


def clusters(trials: Sequence[AnsweredTrial]) -> Labels:
    """What belongs together: the images' names, or numbers for them."""
    if isinstance(trials, AnsweredTrials):
        return trials.clusters()
    return [cluster(one) for one in trials]


def same(trials: Sequence[AnsweredTrial], clean: str, disturbed: str) -> Floats:
    """Whether both variants got the same answer, by `alike`."""
    if isinstance(trials, AnsweredTrials):
        return trials.alike(clean, disturbed)
    return np.array([alike(trial.of(clean)[0], trial.of(disturbed)[0]) for trial in trials], np.float64)


def by_kind(trials: Sequence[AnsweredTrial], column: str) -> dict[str, Sequence[AnsweredTrial]]:
    """The trials by `answer_type` or `question_type` of their example, in the order in which these come first."""
    if isinstance(trials, AnsweredTrials):
        codes, names = trials.kinds(column)
        present = np.unique(codes, return_index=True)
        return {names[code]: trials.where(codes == code) for code in present[0][np.argsort(present[1])]}
    return dict(grouped(trials, lambda one: str(getattr(one.example, column))))


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """The items by their key, in the order in which these come first."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def finding(
    name: str, interval: Interval, condition: str = "", p: float | None = None, test: str = "", unit: str = "%"
) -> Finding:
    """test: of p, where that is not the interval's own."""
    how = f"{interval.how}; {test}" if test else interval.how
    if p is None and not math.isnan(interval.p):
        p = interval.p
    return Finding(
        name, interval.value, interval.n, interval.low, interval.high, condition, interval.clusters, p, how, unit,
        at_least=interval.at_least, at_most=interval.at_most, effective=interval.effective,
    )  # fmt: skip


def mean(name: str, values: Sequence[float] | Floats, clusters: Labels, seed: int, condition: str = "") -> Finding:
    """The mean of values between 0 and 1; unknown ones are left out."""
    return finding(name, interval_of(values, clusters), condition)


def difference(
    name: str, first: Sequence[float] | Floats, second: Sequence[float] | Floats, clusters: Labels, seed: int,
    condition: str = "", settled: tuple[Sequence[float] | Floats, Sequence[float] | Floats] | None = None,
) -> Finding:  # fmt: skip
    """The mean of first minus second, with a paired test.

    settled: both, where answers that are the same score the same; it tells how much of the difference is formatting.
    """
    lost = np.subtract(first, second)
    found = finding(name, compare_paired(first, second, clusters), condition, unit=POINTS)
    found = replace(found, changed=int((np.abs(lost) > TINY).sum()))
    if settled is None or not found.n:
        return found
    away = np.abs(lost - np.subtract(*settled))
    share = float((away[~np.isnan(away)] > TINY).mean())
    without = difference(f"{name} without formatting", *settled, clusters, seed, condition) if share else None
    return replace(found, formatting=share, without_formatting=without)


def corrected(tested: Sequence[Finding]) -> list[Finding]:
    """The findings, the rows of a table, with p-values corrected for their number beside their own."""
    p_values = holm([math.nan if one.p is None else one.p for one in tested])
    return [replace(one, p_holm=p) for one, p in zip(tested, p_values, strict=True)]


P_COLUMNS = ("p", "p (Holm)")
"""Of a table of tested findings: their own p-values, and those corrected over its rows."""


def p_cells(one: Finding) -> tuple[float | None, float | None]:
    """The cells under `P_COLUMNS`."""
    return one.p, one.p_holm


def table_of(
    title: str, things: Iterable[Item], columns: Mapping[str, Callable[[Item], object]], note: str = ""
) -> Table:
    """A table with a row for each thing. columns: from a heading to what stands below it for a thing."""
    rows = tuple(tuple(cell(thing) for cell in columns.values()) for thing in things)
    return Table(title, tuple(columns), rows, note)


def series(name: str, x: Iterable[Any], found: Sequence[Finding]) -> Series:
    """Findings as a line or a group of bars, with their intervals."""
    low, high = tuple(one.low for one in found), tuple(one.high for one in found)
    return Series(name, tuple(x), tuple(one.value for one in found), low, high)


def accuracy(trials: Sequence[AnsweredTrial], variant: str, seed: int) -> Finding:
    """Mean score of a variant over the trials that have it."""
    some = having(trials, variant)
    return mean("accuracy", scores(some, variant), clusters(some), seed, variant)


def drop(trials: Sequence[AnsweredTrial], clean: str, disturbed: str, seed: int) -> Finding:
    """Clean minus disturbed score on the same examples, with a paired test."""
    some = having(trials, disturbed)
    before, after = scores(some, clean), scores(some, disturbed)
    settled = np.where(same(some, clean, disturbed) == 1.0, before, after)
    return difference("drop", before, after, clusters(some), seed, disturbed, (before, settled))


def settled(trial: AnsweredTrial) -> tuple[float, ...]:
    """The scores of a trial, where an answer that is the same as the clean one, with the same right answer, scores as
    that one does."""
    clean, first, score = trial.trial.variants[0], trial.answers[0], trial.scores[0]
    rows = zip(trial.trial.variants, trial.answers, trial.scores, strict=True)
    return tuple(score if one.target == clean.target and alike(first, answer) == 1.0 else own
                 for one, answer, own in rows)  # fmt: skip


def flips(trials: Sequence[AnsweredTrial], clean: str, disturbed: str) -> Flips:
    """What became of the answers; pairs of two unread replies are left out."""
    some = having(trials, disturbed)
    return count_flips(scores(some, clean), scores(some, disturbed), same(some, clean, disturbed))


def changed(trials: Sequence[AnsweredTrial], clean: str, disturbed: str, seed: int) -> Finding:
    """Share of questions whose answer changes: needs no truth, and counts one wrong answer for another. Pairs of two
    unread replies are left out."""
    some = having(trials, disturbed)
    return mean("answers changed", 1.0 - same(some, clean, disturbed), clusters(some), seed, disturbed)


def worst(trials: Sequence[AnsweredTrial], clean: str, disturbed: str) -> tuple[Failure, ...]:
    """The largest losses, ties in the order of the data."""
    some = having(trials, disturbed)
    losses = scores(some, clean) - scores(some, disturbed)
    lost = np.flatnonzero(losses > 0)
    places = lost[np.argsort(-losses[lost], kind="stable")[:WORST]].tolist()
    ids = some.ids(places) if isinstance(some, AnsweredTrials) else [some[at].example.id for at in places]
    return tuple(Failure(name, disturbed, float(losses[at])) for name, at in zip(ids, places, strict=True))


def percent(value: float) -> str:
    return "unknown" if value != value else f"{100 * value:.1f}%"


def unchanged(one: Finding, what: str = "scores") -> str:
    """What is known where nothing changed: `0 of 400 scores changed, at most 7.0%; 95%, 41 images`."""
    return f"0 of {one.n:,} {what} changed, at most {percent(one.at_most)}; 95%, {one.clusters:,} images"


def with_interval(one: Finding) -> str:
    """`12.3% [10.1, 14.6]`, or in points, for verdicts; where nothing changed, how much might have."""
    value = percent(one.value)
    if one.unit == POINTS:
        value = value.replace("%", " points")
    if one.changed == 0 and one.at_most == one.at_most:
        return f"{value} ({unchanged(one)})"
    if one.low != one.low and one.n:
        return f"{value} (no interval: fewer than two effective images)"
    return f"{value} [{100 * one.low:.1f}, {100 * one.high:.1f}]" if one.n else value


# --- an example asked in many ways: answers gathered under a heading, trial by trial --------------------------------


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
        return mean("accuracy", self.clean, self.clusters, seed, condition)

    def accuracy(self, condition: str, seed: int) -> Finding:
        return mean("accuracy", self.scores, self.clusters, seed, condition)

    def drop(self, condition: str, seed: int) -> Finding:
        settled = (self.clean, self.settled)
        return difference("drop", self.clean, self.scores, self.clusters, seed, condition, settled)

    def changes(self, condition: str, seed: int) -> Finding:
        return mean("answers changed", self.changed, self.clusters, seed, condition)

    def summary(self, trials: Sequence[AnsweredTrial], seed: int) -> tuple[Finding, Finding, Finding, Finding, Finding]:
        """Clean accuracy; accuracy, drop and changes over all variants; worst of n."""
        found = self.accuracy(MEAN, seed), self.drop(MEAN, seed), self.changes(MEAN, seed)
        return accuracy(trials, "clean", seed), *found, worst_of_n(trials, seed)


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
            clean, image, cells = trial.scores[0], cluster(trial), cells_of(trial)
            by_heading = _means(cells, heading)
            for variant, cell in cells:
                variants[variant].add(clean, cell, image)
            for name, cell in by_heading.items():
                headings[name].add(clean, cell, image)
            for place, cell in _means(cells, partial(level, trial)).items():
                levels[place].add(clean, cell, image)
            # every heading counts the same, at however many levels there are variants of it
            everything.add(clean, mean_cell(by_heading.values()), image)
        return cls(dict(variants), dict(headings), dict(levels), everything)


def heading_of(variant: str) -> str:
    """What is done in a variant, at whatever level: `typo 2` is a `typo`."""
    name, _, level = variant.rpartition(" ")
    return name if level.isdigit() else variant


def cells_of(trial: AnsweredTrial) -> list[tuple[str, Cell]]:
    """The variants of a trial but the clean one, by name."""
    changed = (1.0 - alike(trial.answers[0], answer) for answer in trial.answers)
    cells = zip(trial.scores, changed, settled(trial), strict=True)
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
    groups = grouped(cells, lambda named: heading(named[0]))
    return {name: mean_cell(cell for _, cell in some) for name, some in groups.items()}


def lost(trial: AnsweredTrial, heading: Callable[[str], str]) -> float:
    """Clean score minus the mean over headings, each of which counts the same, of the mean score of its variants."""
    return trial.scores[0] - mean_cell(_means(cells_of(trial), heading).values())[0]


@dataclass(frozen=True)
class Effect:
    """What one condition does, beside the clean answers to the same questions."""

    name: str
    before: Finding
    """Clean accuracy."""
    accuracy: Finding
    drop: Finding
    changes: Finding
    n: int


EFFECT: Mapping[str, Callable[[Effect], object]] = {
    "clean": attrgetter("before"),
    "accuracy": attrgetter("accuracy"),
    "drop": attrgetter("drop"),
    "p": attrgetter("drop.p"),
    "p (Holm)": attrgetter("drop.p_holm"),
    "answers changed": attrgetter("changes"),
    "n": attrgetter("n"),
}
"""Columns of a table of effects, see `table_of`."""


def effect_of(name: str, cells: Cells, seed: int, condition: str = "") -> Effect:
    """What one condition does. condition: how the findings call it, where not by its name."""
    called = condition or name
    return Effect(
        name,
        cells.before(name, seed),
        cells.accuracy(called, seed),
        cells.drop(called, seed),
        cells.changes(called, seed),
        len(cells.scores),
    )


def effects_of(cells: Mapping[str, Cells], seed: int) -> list[Effect]:
    """What every condition does, tests corrected for their number."""
    effects = [effect_of(name, some, seed) for name, some in cells.items()]
    drops = corrected([one.drop for one in effects])
    return [replace(one, drop=drop) for one, drop in zip(effects, drops, strict=True)]


def largest_drop(drops: Sequence[Finding]) -> str:
    """A sentence on the largest of several drops, for verdicts; nothing where there is one alone."""
    known = [one for one in drops if not math.isnan(one.value)]
    if len(known) < 2:
        return ""
    most = max(known, key=lambda one: one.value)
    if most.value <= 0:
        return f" Under none of the {len(known)} does accuracy fall."
    sure = "" if most.p_holm is None or math.isnan(most.p_holm) else f" (p = {most.p_holm:.2g} after Holm)"
    return f" The largest drop is that under {most.condition}, {with_interval(most)}{sure}."


def bars(title: str, drops: Sequence[Finding]) -> Figure:
    """The drops, largest first."""
    ordered = sorted(drops, key=lambda one: -one.value if one.value == one.value else math.inf)
    line = series("drop", (one.condition for one in ordered), ordered)
    return Figure(title, "bar", (line,), "", "drop, points", POINTS)


def agreement(trial: AnsweredTrial) -> float:
    """Share of the pairs of variants with the same answer, of those that can be compared."""
    return mean_known(alike(a, b) for a, b in combinations(trial.answers, 2))


def known_right(scores: Sequence[float], rule: Callable[[Iterable[bool]], bool]) -> float:
    """1 where all (or any) are right: a score above 0, as everywhere; NaN where one is unknown."""
    return math.nan if any(map(math.isnan, scores)) else float(rule(score > 0 for score in scores))


def worst_of_n(trials: Sequence[AnsweredTrial], seed: int) -> Finding:
    """Mean over trials of the least score of any variant, the clean one included."""
    least = [math.nan if any(math.isnan(score) for score in one.scores) else min(one.scores) for one in trials]
    return mean("worst of n", least, clusters(trials), seed)


def failures(trials: Sequence[AnsweredTrial]) -> tuple[Failure, ...]:
    """Trials that are right when clean and wrong under some variant, the largest losses first."""
    found = []
    for trial in trials:
        score = min(trial.scores)
        if trial.scores[0] - score > 0:
            place = trial.scores.index(score)
            found.append(Failure(trial.example.id, trial.trial.variants[place].name, trial.scores[0] - score))
    return tuple(sorted(found, key=lambda failure: -failure.loss)[:WORST])


def compared(
    some: Sequence[tuple[AnsweredTrial, Sequence[int]]], title: str, seed: int, heading: Callable[[str], str] = str
) -> tuple[int, Finding, Finding, Finding]:
    """How many disturbed variants, accuracy of the originals, accuracy of the disturbed, drop.

    some: trials, each with the places of those of its variants that count
    heading: of a variant; every heading of a trial counts the same
    """
    groups = clusters([one for one, _ in some])
    disturbed, alike_scored = (
        [_mean_at(row, one.trial, places, heading) for row, (one, places) in zip(rows, some, strict=True)]
        for rows in ([one.scores for one, _ in some], [settled(one) for one, _ in some])
    )
    original = [one.scores[0] for one, _ in some]
    accuracy = mean("accuracy", disturbed, groups, seed, title)
    drop = difference("drop", original, disturbed, groups, seed, title, (original, alike_scored))
    first = mean("accuracy", original, groups, seed, f"originals of {title}")
    return sum(len(row) for _, row in some), first, accuracy, drop


def _mean_at(row: Sequence[float], trial: Trial, places: Sequence[int], heading: Callable[[str], str]) -> float:
    groups = grouped(places, lambda at: heading(trial.variants[at].name)).values()
    return sum(sum(row[at] for at in some) / len(some) for some in groups) / len(groups)
