"""Honest statistics for scores that come in clusters.

Questions about one image are not independent, so every interval is built over clusters (an image by default). Two
intervals are offered: the cluster bootstrap (percentiles of resampled means) and the clustered normal formula

    se^2 = G / (G - 1) * sum_g ( sum_{i in g} (s_i - mean) )^2 / n^2        G clusters, n scores

With one cluster nothing is known about the spread between clusters: the interval is NaN, never 0. Where all G
clusters have one mean c the bootstrap collapses, and an exact bound takes its place: if a share p of all clusters had
another mean, none of G would show it with probability (1 - p)^G, so p is at most 1 - (alpha / 2)^(1 / G), and the mean
of scores between a and b lies between c - p (c - a) and c + p (b - c).

Of very many clusters most look alike: the same sum of scores over the same number. What is drawn then is how many of
each look, by one multinomial, which has the same distribution as drawing the clusters one by one. Likewise the signs of
all clusters with the same sum are flipped by one binomial.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Labels = Sequence[Any] | npt.NDArray[np.integer[Any]]
"""What says which scores belong together: names, or numbers."""
BOOTSTRAP_DRAWS = 2000
PERMUTATION_DRAWS = 10_000
MANY_CLUSTERS = 100_000
"""From here on clusters are drawn by their looks, where there are few enough of these."""
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


@dataclass(frozen=True, slots=True)
class Paired:
    """Two conditions on the same examples: mean of first minus second, interval and test."""

    difference: Interval
    p: float
    how: str


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


def bootstrap(
    scores: Sequence[float] | Floats,
    clusters: Labels,
    *,
    seed: int = 0,
    draws: int = BOOTSTRAP_DRAWS,
    level: float = 0.95,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Interval:
    """Mean and percentile interval of the cluster bootstrap. Unknown (NaN) scores are left out.

    bounds: least and largest score possible; they matter where all clusters agree, see above.
    """
    values, codes, groups = _known(scores, clusters)
    n = len(values)
    how = f"cluster bootstrap, {draws} draws"
    if n == 0:
        return Interval(math.nan, math.nan, math.nan, 0, 0, how)
    mean = float(values.mean())
    if groups < 2:
        return Interval(mean, math.nan, math.nan, n, groups, f"{how}: one cluster, no interval")
    means = bootstrap_means(values[None, :], codes, seed=seed, draws=draws)[:, 0]
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    if high - low <= 1e-12:
        return _all_alike(mean, n, groups, level, (min(bounds[0], mean), max(bounds[1], mean)))
    at_least, at_most = np.quantile(means, [1 - level, level])
    return Interval(mean, float(low), float(high), n, groups, how, float(at_least), float(at_most))


def _all_alike(mean: float, n: int, groups: int, level: float, bounds: tuple[float, float]) -> Interval:
    """The interval where no cluster differs from the others."""
    two, one = (1.0 - alpha ** (1.0 / groups) for alpha in ((1 - level) / 2, 1 - level))
    below, above = mean - bounds[0], bounds[1] - mean
    return Interval(
        mean, mean - two * below, mean + two * above, n, groups, f"exact bound: all {groups} clusters alike",
        mean - one * below, mean + one * above,
    )  # fmt: skip


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


def clustered_normal(scores: Sequence[float] | Floats, clusters: Labels, *, level: float = 0.95) -> Interval:
    """Mean and normal interval with the clustered standard error given at the top of this module."""
    values, codes, groups = _known(scores, clusters)
    n = len(values)
    how = "clustered normal, G/(G-1)"
    if n == 0:
        return Interval(math.nan, math.nan, math.nan, 0, 0, how)
    mean = float(values.mean())
    error = standard_error(values, codes)
    half, side = _z((1 + level) / 2) * error, _z(level) * error
    return Interval(mean, mean - half, mean + half, n, groups, how, mean - side, mean + side)


def standard_error(scores: Sequence[float] | Floats, clusters: Labels) -> float:
    """Clustered standard error of the mean; NaN with fewer than two clusters."""
    values, codes, groups = _known(scores, clusters)
    if groups < 2:
        return math.nan
    residuals = np.bincount(codes, weights=values - values.mean(), minlength=groups)
    return float(math.sqrt(groups / (groups - 1) * float(residuals @ residuals)) / len(values))


def compare_paired(
    first: Sequence[float] | Floats,
    second: Sequence[float] | Floats,
    clusters: Labels,
    *,
    seed: int = 0,
    draws: int = PERMUTATION_DRAWS,
) -> Paired:
    """Mean of first minus second on the same examples.

    Right/wrong scores (all 0 or 1), one example per cluster: exact McNemar test. Otherwise a permutation test that
    swaps the two conditions for whole clusters (all 2^G swaps where G <= 13, else `draws` random ones). The interval
    is the cluster bootstrap of the differences.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    difference = bootstrap(a - b, clusters, seed=seed, bounds=(-1.0, 1.0))
    known = ~np.isnan(a - b)
    binary = bool(np.isin(a[known], (0.0, 1.0)).all() and np.isin(b[known], (0.0, 1.0)).all())
    if binary and difference.n == difference.clusters:
        return Paired(difference, mcnemar(a[known] > 0, b[known] > 0), "exact McNemar")
    return Paired(difference, permutation(a - b, clusters, seed=seed, draws=draws), "cluster permutation")


def mcnemar(first: Sequence[bool] | npt.NDArray[np.bool_], second: Sequence[bool] | npt.NDArray[np.bool_]) -> float:
    """Exact two-sided McNemar test: p-value that right/wrong differs by chance only. Assumes independent examples."""
    from scipy.stats import binom

    a, b = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    lost, won = int((a & ~b).sum()), int((~a & b).sum())
    if lost + won == 0:
        return 1.0
    return min(1.0, 2.0 * float(binom.cdf(min(lost, won), lost + won, 0.5)))


def permutation(
    differences: Sequence[float] | Floats,
    clusters: Labels,
    *,
    seed: int = 0,
    draws: int = PERMUTATION_DRAWS,
) -> float:
    """Two-sided p-value of a mean difference of zero, by flipping the sign of whole clusters. NaN without data."""
    values, codes, groups = _known(differences, clusters)
    if len(values) == 0:
        return math.nan
    sums = np.bincount(codes, weights=values, minlength=groups)
    observed = abs(float(sums.sum()))
    # A swap that ties with what was seen must count, whatever the order of the additions.
    bar = observed - 1e-12 * max(1.0, float(np.abs(sums).sum()))
    if groups <= 13:
        signs = 1.0 - 2.0 * ((np.arange(2**groups)[:, None] >> np.arange(groups)) & 1)
        return float((np.abs(signs @ sums) >= bar).mean())
    rng = np.random.default_rng(seed)
    hits = 0
    if (looks := _looks([np.abs(sums)])) is not None:
        kinds, many = looks
        step = max(1, _CHUNK // len(many))
        for start in range(0, draws, step):
            kept = rng.binomial(many, 0.5, size=(min(step, draws - start), len(many)))
            hits += int((np.abs((2.0 * kept - many) @ kinds[0]) >= bar).sum())
        return (hits + 1) / (draws + 1)
    step = max(1, _CHUNK // groups)
    for start in range(0, draws, step):
        flips = rng.integers(0, 2, size=(min(step, draws - start), groups), dtype=np.int8)
        hits += int((np.abs((1.0 - 2.0 * flips) @ sums) >= bar).sum())
    return (hits + 1) / (draws + 1)


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
