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
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Labels = Sequence[Any] | npt.NDArray[np.integer[Any]]
"""What says which scores belong together: names, or numbers."""
TAILS = (0.025, 0.975, 0.05, 0.95)
"""Of the ends of an interval, and of its one-sided bounds."""
Ends = tuple[float, ...]
"""`low`, `high`, `at_least`, `at_most`."""
_z = NormalDist().inv_cdf


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
    n = columns.shape[1]
    columns = np.vstack([columns, np.ones(n)])
    parts: Floats = np.stack([np.bincount(codes, weights=one, minlength=groups) for one in columns], axis=1)
    if statistic is not None:
        return jackknife(parts[:, :-1], parts[:, -1], statistic, bounds=bounds)
    bounds = float(columns[0].min(initial=bounds[0])), float(columns[0].max(initial=bounds[1]))
    found = jackknife(parts, parts[:, -1], ratio, bounds=bounds)
    if math.isnan(found.low):
        return found
    own = found.low, found.high, found.at_least, found.at_most
    low, high, at_least, at_most = _tightest(own, exact(columns[0], found.effective, bounds))
    p = _two_sided(found.p / 2, _exact_tail(found.value, found.effective, bounds))
    return replace(found, low=low, high=high, at_least=at_least, at_most=at_most, p=p)


def jackknife(
    parts: Floats, sizes: Floats, statistic: Callable[[Floats], Floats], *, bounds: tuple[float, float] = (0.0, 1.0)
) -> Interval:
    """A statistic of sums with its interval; parts: what each cluster adds to them, (clusters, columns), from as many
    examples as `sizes` says."""
    parts, sizes = parts[sizes > 0], sizes[sizes > 0]
    whole, n, groups, nan = parts.sum(0), int(sizes.sum()), len(parts), math.nan
    if not n:
        return Interval(nan, nan, nan, 0, 0, "nothing is known")
    value, effective = float(statistic(whole[None])[0]), effective_clusters(sizes)
    if effective < 2 - 1e-9 or math.isnan(value):
        few = "one cluster" if groups < 2 else f"one cluster has most of the examples, {effective:.1f} effective"
        return Interval(value, nan, nan, n, groups, f"no interval: {few}", effective=effective)
    found = left_out(value, [statistic(whole - parts)], [effective], bounds)
    return replace(found, n=n, clusters=groups, how=f"jackknife over {groups} clusters, {found.how}")


def over_runs(
    scores: Sequence[Floats] | Floats, clusters: Labels, *, bounds: tuple[float, float] = (0.0, 1.0)
) -> Interval:
    """The mean of scores, (runs, examples), over other runs and other clusters. An example that is unknown in one run
    is left out of all."""
    scores = np.asarray(scores, np.float64)
    whole = interval_of(scores.mean(0), clusters, bounds=bounds)
    if len(scores) == 1 or math.isnan(whole.low):
        return whole
    known = ~np.isnan(scores).any(0)
    _, codes, groups = _known(np.where(known, 0.0, np.nan), clusters)
    sizes = np.bincount(codes)
    sums = np.stack([np.bincount(codes, weights=row) for row in scores[:, known]])
    n, runs, total = len(codes), len(scores), sums.sum()
    without = [
        (total - sums.sum(1)) / (n * (runs - 1)),
        (total - sums.sum(0)) / ((n - sizes) * runs),
        ((total - sums) / (n * runs - sizes)).ravel(),
    ]
    found = left_out(whole.value, without, [float(runs), whole.effective], bounds)
    how = f"{found.how}, over {runs} runs and {groups} clusters"
    return replace(found, n=n, clusters=groups, how=how, effective=whole.effective)


def left_out(
    value: float, without: Sequence[Floats], effective: Sequence[float], bounds: tuple[float, float]
) -> Interval:
    """The interval of a statistic from its values without each cluster.

    Where examples are clustered in two ways: without each cluster of the one, of the other, and without each cell of
    both. The first two variances add up, less the third (Cameron, Gelbach and Miller 2011); the degrees of freedom are
    Satterthwaite's.
    """
    spreads, nan, fewest = [_spread(some) for some in without], math.nan, min(effective)
    variances = [one for one, _ in spreads]
    if any(map(math.isnan, variances)):
        how = "no interval: the value is unknown without any one of the clusters"
        return Interval(value, nan, nan, 0, 0, how, effective=fewest)
    variance = max(sum(variances[:2]) - sum(variances[2:]), *variances[:2])
    if variance <= 1e-24:
        found, how, tail = exact(value, fewest, bounds), "exact, all alike", _exact_tail(value, fewest, bounds)
    else:
        freedoms = [max(0.5, min(size - 1, sure)) for size, (_, sure) in zip(effective, spreads, strict=False)]
        freedom = 1 / sum((one / variance) ** 2 / own for one, own in zip(variances, freedoms, strict=False))
        found, how = ends(value, math.sqrt(variance), freedom, bounds), f"t, {freedom:.1f} degrees of freedom"
        tail = _t_tail(value, math.sqrt(variance), freedom, bounds)
    low, high, at_least, at_most = found
    return Interval(value, low, high, 0, 0, how, at_least, at_most, fewest, _two_sided(tail))


def _spread(without: Floats) -> tuple[float, float]:
    """The variance of a statistic by the jackknife, and the degrees of freedom that skewness leaves; from the known
    ones where it is unknown without some cluster."""
    known = without[~np.isnan(without)]
    if len(known) < 2:
        return math.nan, math.nan
    away = known - known.mean()
    square = float(away @ away)
    uneven = float((away**3).sum()) ** 2 / max(square**3, 1e-300)
    return (len(known) - 1) / len(known) * square, 1 / max(uneven, 1e-12)


def effective_clusters(sizes: Floats | npt.NDArray[np.intp]) -> float:
    """How many clusters of equal size tell as much as clusters of these sizes."""
    return float(sizes.sum()) ** 2 / float((sizes.astype(np.float64) ** 2).sum())


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


def _two_sided(*tails: float) -> float:
    """The p-value of the least tail that is known."""
    return min((min(1.0, 2 * tail) for tail in tails if not math.isnan(tail)), default=math.nan)


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


def resampled(
    statistic: Callable[[npt.NDArray[np.intp]], Sequence[float]], clusters: Labels, *, seed: int, draws: int
) -> list[Interval]:
    """Several numbers at once with their intervals, where they are no smooth functions of sums: percentiles over
    clusters drawn with replacement.

    statistic: from the places of examples to the numbers.
    """
    _, codes, groups = _known(np.zeros(len(clusters)), clusters)
    values, n, nan = statistic(np.arange(len(codes))), len(codes), math.nan
    effective = effective_clusters(np.bincount(codes)) if n else 0.0
    if effective < 2 - 1e-9:
        return [Interval(one, nan, nan, n, groups, "no interval: one cluster", effective=effective) for one in values]
    rng, rows = (
        np.random.default_rng(seed),
        np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1]),
    )
    drawn = [statistic(np.concatenate([rows[at] for at in rng.integers(0, groups, groups)])) for _ in range(draws)]
    how, found = f"cluster bootstrap, {draws} draws", percentiles(np.asarray(drawn)).T.tolist()
    return [
        Interval(one, low, high, n, groups, how, at_least, at_most, effective)
        if high > low
        else Interval(one, nan, nan, n, groups, "no interval: all draws are alike", effective=effective)
        for one, (low, high, at_least, at_most) in zip(values, found, strict=True)
    ]


def percentiles(drawn: Floats) -> Floats:
    """The ends that numbers drawn (draws, ...) give, (4, ...)."""
    return np.asarray(np.quantile(drawn, TAILS, axis=0))


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
