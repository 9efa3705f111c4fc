"""Honest statistics for scores that come in clusters.

Questions about one image are not independent, so every interval is built over clusters, an image by default.
`interval_of` a mean, or a smooth function of sums, computes it without each cluster in turn, t_g, and

    se^2 = (G - 1) / G * sum_g (t_g - mean t)^2        G clusters

goes with Student's t. Its degrees of freedom are the lesser of two numbers. Clusters of unequal size count as
(sum n_g)^2 / sum n_g^2 equal ones, the effective clusters; less one. And where the spread hangs on a few clusters on
one side, as where nearly all answers are right, it is known no better than from 1 / skewness^2 of them. The ends are
those of Wilson's interval, which stays within what is possible.

No mean is less certain than if every effective cluster were one answer, right or wrong. So the exact interval for that
many answers (Clopper and Pearson) is never exceeded; it alone remains where no cluster differs from the others. With
fewer than two effective clusters nothing is known about the spread between clusters: the interval is NaN, never 0.

A difference is tested by its own interval: the p-value is the level at which an end of the interval comes to lie at 0.
So 0 lies outside the 95% interval exactly where p is below 0.05.

Of very many clusters most look alike: the same sum of scores over the same number. What a bootstrap draws then is how
many of each look, by one multinomial, which has the same distribution as drawing the clusters one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Labels = Sequence[Any] | npt.NDArray[np.integer[Any]]
"""What says which scores belong together: names, or numbers."""
BOOTSTRAP_DRAWS = 2000
MANY_CLUSTERS = 100_000
"""From here on clusters are drawn by their looks, where there are few enough of these."""
TAILS = (0.025, 0.975, 0.05, 0.95)
"""Of the ends of an interval, and of its one-sided bounds."""
Ends = tuple[float, ...]
"""`low`, `high`, `at_least`, `at_most`."""
_z = NormalDist().inv_cdf
_CHUNK = 4_000_000  # random integers held at once
_PIECE = 1 << 18  # clusters looked at together
_LOOKS = 50  # clusters of one look, on average, that make it worth while


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its 95% interval and its one-sided 95% bounds."""

    value: float
    low: float
    high: float
    n: int
    clusters: int
    how: str
    at_least: float = math.nan
    at_most: float = math.nan
    effective: float = math.nan
    """Clusters of equal size that would tell as much."""
    p: float = math.nan
    """Two-sided p-value of 0, where that lies within the bounds: the level at which the interval ends there."""


def _known(scores: Sequence[float] | Floats, clusters: Labels) -> tuple[Floats, npt.NDArray[np.intp], int]:
    """Scores without NaN, their clusters as numbers 0..G-1 in the order in which they come first, and G."""
    values = np.asarray(scores, dtype=np.float64)
    if len(values) != len(clusters):
        raise ValueError(f"{len(values)} scores but {len(clusters)} cluster labels")
    known = ~np.isnan(values)
    if isinstance(clusters, np.ndarray):
        if not known.all():
            values, clusters = values[known], clusters[known]
        codes = _in_order(clusters)
        return values, codes, int(codes.max(initial=-1)) + 1
    labels: dict[Any, int] = {}
    numbers = [labels.setdefault(label, len(labels)) for label, keep in zip(clusters, known, strict=True) if keep]
    return values[known], np.asarray(numbers, dtype=np.intp), len(labels)


def _in_order(numbers: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Labels that are numbers already, renumbered in the order in which they come first."""
    highest = np.maximum.accumulate(numbers) if len(numbers) else numbers
    if len(numbers) and numbers[0] == 0 and bool((np.diff(highest) <= 1).all()) and numbers.min() >= 0:
        return numbers.astype(np.intp, copy=False)
    _, first, codes = np.unique(numbers, return_index=True, return_inverse=True)
    order = np.empty(len(first), np.intp)
    order[np.argsort(first)] = np.arange(len(first))
    return order[codes]


def ratio(sums: Floats) -> Floats:
    """The first column over the second: a mean, of sums and counts."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(sums[:, 0] / sums[:, 1])


def interval_of(
    scores: Sequence[float] | Sequence[Sequence[float]] | Floats,
    clusters: Labels,
    statistic: Callable[[Floats], Floats] | None = None,
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Interval:
    """The mean of scores, or a statistic of the sums of several columns of them, with its interval.

    scores: one an example, or (columns, examples). An example that is unknown (NaN) in one column is left out.
    statistic: from sums, (times, columns), to values, (times,).
    bounds: least and largest value possible.
    """
    columns = np.atleast_2d(np.asarray(scores, np.float64))
    unknown = np.isnan(columns).any(0)
    _, codes, groups = _known(np.where(unknown, np.nan, 0.0), clusters)
    columns = columns[:, ~unknown]
    n, nan = columns.shape[1], math.nan
    if not n:
        return Interval(nan, nan, nan, 0, 0, "nothing is known")
    effective = effective_clusters(codes)
    means = columns[0] if statistic is None else None
    if means is not None:
        bounds = min(bounds[0], float(means.min())), max(bounds[1], float(means.max()))
        columns = np.vstack([columns, np.ones(n)])
    function, whole = statistic or ratio, columns.sum(1)
    value = float(function(whole[None])[0])
    if effective < 2 - 1e-9 or math.isnan(value):
        few = "one cluster" if groups < 2 else f"one cluster has most of the examples, {effective:.1f} effective"
        return Interval(value, nan, nan, n, groups, f"no interval: {few}", effective=effective)
    without = function(whole - np.stack([np.bincount(codes, weights=one, minlength=groups) for one in columns], axis=1))
    away = without - without.mean()
    spread = float(away @ away)
    error = math.sqrt((groups - 1) / groups * spread)
    exactly = value if means is None else means
    tail = _exact_tail(value, effective, bounds)
    if error <= 1e-12:
        found, how = [exact(exactly, effective, bounds)], "exact, all clusters alike"
    else:
        skewed = float((away**3).sum()) ** 2 / spread**3
        freedom = min(effective - 1, 1 / max(skewed, 1e-12))
        found, how = [ends(value, error, freedom, bounds)], f"cluster t, {freedom:.1f} degrees of freedom"
        by_t = _t_tail(value, error, freedom, bounds)
        tail = by_t if means is None else min(tail, by_t)
        if means is not None:
            found.append(exact(means, effective, bounds))
    low, high, at_least, at_most = _tightest(*found)
    return Interval(value, low, high, n, groups, how, at_least, at_most, effective, min(1.0, 2 * tail))


def effective_clusters(codes: npt.NDArray[np.intp]) -> float:
    """How many clusters of equal size tell as much as these, numbered from 0."""
    sizes = np.bincount(codes).astype(np.float64)
    return float(sizes.sum() ** 2 / (sizes**2).sum())


def ends(value: float, error: float, freedom: float, bounds: tuple[float, float]) -> Ends:
    """Of Wilson's interval with a standard error and Student's t; the plain ones where a bound is infinite."""
    from scipy.special import stdtrit

    least, most = bounds
    room = (value - least) * (most - value)
    if room <= 0:
        return (value,) * len(TAILS)
    found = []
    for tail in TAILS:
        far = float(stdtrit(freedom, tail)) * error
        square = far**2 / room
        if not math.isfinite(room):
            found.append(value + far)
            continue
        half = math.sqrt(far**2 + square**2 * (most - least) ** 2 / 4)
        found.append((value + square * (least + most) / 2 + math.copysign(half, far)) / (1 + square))
    return tuple(found)


def exact(scores: float | Floats, effective: float, bounds: tuple[float, float]) -> Ends:
    """Of the mean if every effective cluster were one answer at a bound: as wide as any scores allow.

    What is lost and what is won are such means, too, and limit a difference.
    """
    least, most = bounds
    if not math.isfinite(most - least):
        return (-math.inf, math.inf) * 2
    share = (float(np.mean(scores)) - least) / (most - least)
    found = tuple(least + (most - least) * end for end in _clopper_pearson(share, effective))
    if not least < 0 < most:
        return found
    lost, won = (
        _clopper_pearson(float(np.mean(np.clip(np.divide(scores, bound), 0, None))), effective) for bound in bounds
    )
    return _tightest(found, (least * lost[1], most * won[1], least * lost[3], most * won[3]))


def _t_tail(value: float, error: float, freedom: float, bounds: tuple[float, float]) -> float:
    """The tail at which an end of `ends` is 0; NaN where 0 is not within the bounds."""
    from scipy.special import stdtr

    least, most = bounds
    if not least < 0 < most:
        return math.nan
    infinite = not math.isfinite(most - least)
    room = 1.0 if infinite else (value - least) * (most - value) / (-least * most)
    return float(stdtr(freedom, -abs(value) * math.sqrt(room) / error))


def _exact_tail(value: float, effective: float, bounds: tuple[float, float]) -> float:
    """The tail at which an end of `exact` is 0; NaN where 0 is not within the bounds."""
    from scipy.special import betainc

    least, most = bounds
    if not least < 0 < most or not math.isfinite(most - least):
        return math.nan
    share, none = (value - least) / (most - least), -least / (most - least)
    if value < 0:
        share, none = 1 - share, 1 - none
    return float(betainc(share * effective, (1 - share) * effective + 1, none))


def _tightest(*found: Ends) -> Ends:
    return tuple(pick(some) for pick, some in zip((max, min, max, min), zip(*found, strict=True), strict=True))


def _clopper_pearson(share: float, n: float) -> Ends:
    from scipy.special import betaincinv

    hits, misses = share * n, (1 - share) * n
    return tuple(
        (float(betaincinv(hits, misses + 1, tail)) if hits > 1e-9 else 0.0)
        if tail < 0.5
        else (float(betaincinv(hits + 1, misses, tail)) if misses > 1e-9 else 1.0)
        for tail in TAILS
    )


def bootstrap_means(
    columns: Sequence[Sequence[float]] | Floats,
    clusters: Labels,
    *,
    seed: int = 0,
    draws: int = BOOTSTRAP_DRAWS,
) -> Floats:
    """Resampled means of several conditions on the same examples, (draws, conditions), for intervals of functions of
    means. An example that is unknown in one condition is left out of all. NaN with fewer than two clusters."""
    values = np.asarray(columns, dtype=np.float64)
    known = ~np.isnan(values).any(0)
    _, codes, groups = _known(np.where(known, 0.0, np.nan), clusters)
    if not known.all():
        values = values[:, known]
    if groups < 2:
        return np.full((draws, len(values)), np.nan)
    if groups == len(codes):  # one score a cluster, and the clusters as they come
        sums, counts = values, np.ones(groups)
    else:
        sums = np.stack([np.bincount(codes, weights=column, minlength=groups) for column in values])
        counts = np.bincount(codes, minlength=groups).astype(np.float64)
    rng = np.random.default_rng(seed)
    means = np.empty((draws, len(values)))
    if (looks := _looks([*sums, counts])) is not None:
        kinds, many = looks
        step = max(1, _CHUNK // len(many))
        for start in range(0, draws, step):
            drawn = rng.multinomial(groups, many / groups, size=min(step, draws - start))
            means[start : start + len(drawn)] = drawn @ kinds[:-1].T / (drawn @ kinds[-1])[:, None]
        return means
    step = max(1, _CHUNK // groups)
    for start in range(0, draws, step):
        chosen = rng.integers(0, groups, size=(min(step, draws - start), groups))
        total = counts[chosen].sum(1)
        for number, column in enumerate(sums):
            means[start : start + len(chosen), number] = column[chosen].sum(1) / total
    return means


def _looks(clusters: Sequence[Floats]) -> tuple[Floats, npt.NDArray[np.int64]] | None:
    """The different looks of clusters, (numbers, looks), and how many clusters have each; None where that does not pay.

    clusters: what a look consists of, each (clusters,)
    """
    groups = len(clusters[0])
    if groups < MANY_CLUSTERS:
        return None
    kinds, codes = np.zeros((0, 1)), np.zeros(groups, np.int64)
    for row in clusters:
        own = _different(row)
        if len(own) * _LOOKS > groups:
            return None
        codes *= len(own)
        _place(row, own, codes, add=True)
        present = _different(codes)
        if len(present) * _LOOKS > groups:
            return None
        kinds = np.vstack([kinds[:, present // len(own)], own[present % len(own)]])
        _place(codes, present, codes)
    return kinds, np.bincount(codes)


def _different(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The different values, sorted; piece by piece, for few of them stand in many places."""
    pieces = [np.unique(values[start : start + _PIECE]) for start in range(0, len(values), _PIECE)]
    return np.unique(np.concatenate(pieces))


def _place(values: npt.NDArray[Any], among: npt.NDArray[Any], out: npt.NDArray[np.int64], add: bool = False) -> None:
    """Write to `out`, or add to it, where each value stands among the sorted ones."""
    for start in range(0, len(values), _PIECE):
        piece = slice(start, start + _PIECE)
        out[piece] = np.searchsorted(among, values[piece]) + (out[piece] if add else 0)


def standard_error(scores: Sequence[float] | Floats, clusters: Labels) -> float:
    """Clustered standard error of the mean, sqrt(G / (G - 1) sum_g (sum_{i in g} (s_i - mean))^2) / n; NaN with fewer
    than two clusters."""
    values, codes, groups = _known(scores, clusters)
    if groups < 2:
        return math.nan
    residuals = np.bincount(codes, weights=values - values.mean(), minlength=groups)
    return float(math.sqrt(groups / (groups - 1) * float(residuals @ residuals)) / len(values))


def compare_paired(first: Sequence[float] | Floats, second: Sequence[float] | Floats, clusters: Labels) -> Interval:
    """Mean of first minus second on the same examples, scores between 0 and 1, with its interval and p-value."""
    return interval_of(np.subtract(first, second), clusters, bounds=(-1.0, 1.0))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction of a family of p-values; NaN stays NaN and does not count."""
    known = sorted((p, index) for index, p in enumerate(p_values) if not math.isnan(p))
    corrected = [math.nan] * len(p_values)
    running = 0.0
    for rank, (p, index) in enumerate(known):
        running = max(running, min(1.0, (len(known) - rank) * p))
        corrected[index] = running
    return corrected


def minimum_detectable_effect(
    sd: float, n: int, *, alpha: float = 0.05, power: float = 0.8, design_effect: float = 1.0
) -> float:
    """Smallest mean (difference) that n examples show with the given power in a two-sided test.

    sd: standard deviation of one score, or of one paired difference. design_effect: variance inflation by clusters,
    see `design_effect`.
    """
    if n < 1:
        return math.nan
    return (_z(1 - alpha / 2) + _z(power)) * sd * math.sqrt(design_effect / n)


def design_effect(scores: Sequence[float] | Floats, clusters: Labels) -> float:
    """How many times larger the variance of the mean is than if all scores were independent; NaN if unknown."""
    values, codes, _ = _known(scores, clusters)
    if len(values) < 2 or float(values.std()) == 0.0:
        return math.nan
    independent = float(values.var(ddof=1)) / len(values)
    return standard_error(values, codes) ** 2 / independent
