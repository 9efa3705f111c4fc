"""What every probe does the same way: the clean query, accuracy, drop, flips, the worst failures."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pfungst.core import Answer, AnsweredTrial, Example, Failure, Finding, NamedImage, Query
from pfungst.core.stats import Flips, Interval, bootstrap, compare_paired, count_flips
from pfungst.scores import same_answer

WORST = 12
"""Failures shown in a report."""


def clean_query(example: Example) -> Query:
    """The example as it stands in its data set."""
    image = example.image
    if image is None and example.image_id:
        image = NamedImage(example.image_id)
    return Query(example.question, image, example.choices, example.scene)


def cluster(trial: AnsweredTrial) -> str:
    """Questions about one image belong together; a question without image name stands alone."""
    return trial.example.image_id or trial.example.id


def having(trials: Sequence[AnsweredTrial], variant: str) -> list[AnsweredTrial]:
    """The trials that contain this variant."""
    return [one for one in trials if any(v.name == variant for v in one.trial.variants)]


def scores(trials: Sequence[AnsweredTrial], variant: str) -> list[float]:
    return [one.of(variant)[1] for one in trials]


def clusters(trials: Sequence[AnsweredTrial]) -> list[str]:
    return [cluster(one) for one in trials]


def finding(name: str, interval: Interval, condition: str = "", p: float | None = None, test: str = "") -> Finding:
    how = f"{interval.how}; {test}" if test else interval.how
    return Finding(
        name, interval.value, interval.n, interval.low, interval.high, condition, interval.clusters, p, how,
        at_least=interval.at_least, at_most=interval.at_most,
    )  # fmt: skip


def accuracy(trials: Sequence[AnsweredTrial], variant: str, seed: int) -> Finding:
    """Mean score of a variant over the trials that have it."""
    some = having(trials, variant)
    return finding("accuracy", bootstrap(scores(some, variant), clusters(some), seed=seed), variant)


def drop(trials: Sequence[AnsweredTrial], clean: str, disturbed: str, seed: int) -> Finding:
    """Clean minus disturbed score on the same examples, with a paired test."""
    some = having(trials, disturbed)
    paired = compare_paired(scores(some, clean), scores(some, disturbed), clusters(some), seed=seed)
    return finding("drop", paired.difference, disturbed, paired.p, paired.how)


def alike(first: Answer, second: Answer) -> float:
    """1 where two answers say the same, 0 where they do not, NaN where neither reply could be read.

    From an answer to a reply that cannot be read is a change. Whether two unread replies say the same nobody knows:
    such a pair is left out of every count of changes and flips.
    """
    if first.unread and second.unread:
        return math.nan
    return float(not (first.unread or second.unread) and same_answer(first.text, second.text))


def same(trials: Sequence[AnsweredTrial], clean: str, disturbed: str) -> list[float]:
    """Whether both variants got the same answer, by `alike`."""
    return [alike(trial.of(clean)[0], trial.of(disturbed)[0]) for trial in trials]


def flips(trials: Sequence[AnsweredTrial], clean: str, disturbed: str) -> Flips:
    """What became of the answers; pairs of two unread replies are left out."""
    some = having(trials, disturbed)
    pairs = [(one, kept) for one, kept in zip(some, same(some, clean, disturbed), strict=True) if kept == kept]
    known = [one for one, _ in pairs]
    return count_flips(scores(known, clean), scores(known, disturbed), [kept > 0 for _, kept in pairs])


def changed(trials: Sequence[AnsweredTrial], clean: str, disturbed: str, seed: int) -> Finding:
    """Share of questions whose answer changes: needs no truth, and counts one wrong answer for another. Pairs of two
    unread replies are left out."""
    some = having(trials, disturbed)
    different = [1.0 - alike for alike in same(some, clean, disturbed)]
    return finding("answers changed", bootstrap(different, clusters(some), seed=seed), disturbed)


def worst(trials: Sequence[AnsweredTrial], clean: str, disturbed: str, limit: int = WORST) -> tuple[Failure, ...]:
    """The largest losses, ties in the order of the data."""
    losses = [
        Failure(one.example.id, disturbed, one.of(clean)[1] - one.of(disturbed)[1])
        for one in having(trials, disturbed)
        if one.of(clean)[1] > one.of(disturbed)[1]
    ]
    return tuple(sorted(losses, key=lambda failure: -failure.loss)[:limit])


def percent(value: float) -> str:
    return "unknown" if value != value else f"{100 * value:.1f}%"


def with_interval(one: Finding) -> str:
    """`12.3% [10.1, 14.6]`, for verdicts."""
    if one.low != one.low:
        return f"{percent(one.value)} (no interval: fewer than two images)"
    return f"{percent(one.value)} [{100 * one.low:.1f}, {100 * one.high:.1f}]"
