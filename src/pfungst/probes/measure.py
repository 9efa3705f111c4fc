"""What every probe does the same way: the clean query, means, differences, flips, figures, the worst failures."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from pfungst.core import AnsweredTrial, Example, Failure, Finding, NamedImage, Query, Series
from pfungst.core.answered import AnsweredTrials
from pfungst.core.flips import Flips, alike, count_flips
from pfungst.core.stats import Floats, Interval, Labels, compare_paired, holm, interval_of
from pfungst.core.types import POINTS

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)

TINY = 1e-12
"""Scores that differ by no more are the same: means are sums in some order."""
WORST = 12
"""Failures shown in a report."""


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
