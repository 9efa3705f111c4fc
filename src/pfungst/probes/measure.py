"""What every probe does the same way: the clean query, accuracy, drop, flips, the worst failures."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pfungst.core import Answer, AnsweredTrial, Example, Failure, Finding, NamedImage, Query
from pfungst.core.answered import AnsweredTrials
from pfungst.core.stats import Flips, Floats, Interval, Labels, bootstrap, compare_paired, count_flips
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
        return trials.alike(clean, disturbed, same_answer)
    return np.array([alike(trial.of(clean)[0], trial.of(disturbed)[0]) for trial in trials], np.float64)


def by_kind(trials: Sequence[AnsweredTrial], column: str) -> dict[str, Sequence[AnsweredTrial]]:
    """The trials by `answer_type` or `question_type` of their example, in the order in which these come first."""
    if isinstance(trials, AnsweredTrials):
        codes, names = trials.kinds(column)
        present = np.unique(codes, return_index=True)
        return {names[code]: trials.where(codes == code) for code in present[0][np.argsort(present[1])]}
    groups: dict[str, list[AnsweredTrial]] = {}
    for one in trials:
        groups.setdefault(getattr(one.example, column), []).append(one)
    return dict(groups)


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


def flips(trials: Sequence[AnsweredTrial], clean: str, disturbed: str) -> Flips:
    """What became of the answers; pairs of two unread replies are left out."""
    some = having(trials, disturbed)
    kept = same(some, clean, disturbed)
    known = ~np.isnan(kept)
    return count_flips(scores(some, clean)[known], scores(some, disturbed)[known], kept[known] > 0)


def changed(trials: Sequence[AnsweredTrial], clean: str, disturbed: str, seed: int) -> Finding:
    """Share of questions whose answer changes: needs no truth, and counts one wrong answer for another. Pairs of two
    unread replies are left out."""
    some = having(trials, disturbed)
    different = 1.0 - same(some, clean, disturbed)
    return finding("answers changed", bootstrap(different, clusters(some), seed=seed), disturbed)


def worst(trials: Sequence[AnsweredTrial], clean: str, disturbed: str, limit: int = WORST) -> tuple[Failure, ...]:
    """The largest losses, ties in the order of the data."""
    some = having(trials, disturbed)
    losses = scores(some, clean) - scores(some, disturbed)
    lost = np.flatnonzero(losses > 0)
    places = lost[np.argsort(-losses[lost], kind="stable")[:limit]].tolist()
    ids = some.ids(places) if isinstance(some, AnsweredTrials) else [some[at].example.id for at in places]
    return tuple(Failure(name, disturbed, float(losses[at])) for name, at in zip(ids, places, strict=True))


def percent(value: float) -> str:
    return "unknown" if value != value else f"{100 * value:.1f}%"


def with_interval(one: Finding) -> str:
    """`12.3% [10.1, 14.6]`, for verdicts."""
    if one.low != one.low:
        return f"{percent(one.value)} (no interval: fewer than two images)"
    return f"{percent(one.value)} [{100 * one.low:.1f}, {100 * one.high:.1f}]"
