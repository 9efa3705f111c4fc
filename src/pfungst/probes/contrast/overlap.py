"""Intervals for pairs that share images.

A pair of images is no independent unit where an image is in several pairs. Pairs that are linked by shared images form
one cluster; but where every image is in a few pairs, as in VQA v2, almost all of them are linked, and no clusters are
left. There the variance of the mean takes every two pairs into account that share an image (Aronow, Samii and Assenova:
Cluster-Robust Variance Estimation for Dyadic Data):

    se^2 = G / (G - 2) * sum over g, h that share an image of (s_g - mean) (s_h - mean) / n^2        G images, n pairs

with quantiles of the t distribution for G / 2 - 1 degrees of freedom, which few images need.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pfungst.core.stats import Interval, interval_of

LINKED = 0.5
"""With fewer clusters than this share of the images that pairs begin with, clusters are no use."""


_HOW = "pairs that share an image counted together"


@dataclass(frozen=True)
class Units:
    """What is averaged: one value a unit, each with its images."""

    images: Sequence[Sequence[str]]
    clusters: Sequence[str]
    """The units that are linked by shared images, one name each."""

    @classmethod
    def of(cls, images: Sequence[Sequence[str]]) -> Units:
        return cls(images, _linked(images))

    def pick(self, places: Sequence[int]) -> Units:
        """Some of the units, once or several times each."""
        return Units([self.images[at] for at in places], [self.clusters[at] for at in places])

    @property
    def dyadic(self) -> bool:
        """Whether clusters are too few to go by."""
        return len(set(self.clusters)) < LINKED * len({images[0] for images in self.images})

    def mean(self, values: Sequence[float], bounds: tuple[float, float] = (0.0, 1.0)) -> Interval:
        """Mean and interval; unknown (NaN) values are left out."""
        known = [at for at, value in enumerate(values) if not math.isnan(value)]
        if not self.dyadic or not known:
            return interval_of(values, self.clusters, bounds=bounds)
        some, numbers = self.pick(known), np.array([values[at] for at in known])
        if float(np.ptp(numbers)) <= 1e-12:
            alone = some.pick(_disjoint(some.images))
            found = interval_of([float(numbers[0])] * len(alone.images), range(len(alone.images)), bounds=bounds)
            return replace(found, n=len(known))
        mean, error, count = float(numbers.mean()), *_error(numbers, some.images)
        t = _t(count)
        two, one = (float(t.ppf(share)) * error for share in (0.975, 0.95))
        low, high = (max(bounds[0], mean - two), min(bounds[1], mean + two))
        at_least, at_most = max(bounds[0], mean - one), min(bounds[1], mean + one)
        p = 2 * float(t.cdf(-abs(mean) / error)) if error > 0 else float(mean == 0)
        p = p if bounds[0] < 0 else math.nan
        return Interval(mean, low, high, len(known), count, f"t interval, {_HOW}", at_least, at_most, p=p)

    def difference(self, first: Sequence[float], second: Sequence[float]) -> Interval:
        """Mean of first minus second, with its interval and p-value."""
        return self.mean(np.subtract(first, second).tolist(), (-1.0, 1.0))


def _t(images: int) -> Any:
    from scipy.stats import t

    return t(max(1, images // 2 - 1))


def _error(values: np.ndarray, images: Sequence[Sequence[str]]) -> tuple[float, int]:
    """Standard error of the mean, and the number of images."""
    from scipy import sparse

    numbers: dict[str, int] = {}
    rows, columns = [], []
    for row, of in enumerate(images):
        for image in set(of):
            rows.append(row)
            columns.append(numbers.setdefault(image, len(numbers)))
    shows = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(values), len(numbers)))
    shared = shows @ shows.T
    shared.data[:] = 1.0
    residuals = values - values.mean()
    # in small samples the sum may come out below that of independent pairs, or even negative
    total = max(float(residuals @ (shared @ residuals)), float(residuals @ residuals))
    count = len(numbers)
    return math.sqrt(count / max(1, count - 2) * total) / len(values), count


def _linked(images: Sequence[Sequence[str]]) -> list[str]:
    """One name for all units that are linked by shared images."""
    parents: dict[str, str] = {}

    def root(image: str) -> str:
        while parents.setdefault(image, image) != image:
            parents[image] = parents[parents[image]]
            image = parents[image]
        return image

    for first, *others in images:
        for other in others:
            parents[root(other)] = root(first)
    return [root(of[0]) for of in images]


def _disjoint(images: Sequence[Sequence[str]]) -> list[int]:
    """Units that share no image, the first of those that do."""
    seen: set[str] = set()
    kept = []
    for at, of in enumerate(images):
        if seen.isdisjoint(of):
            kept.append(at)
            seen.update(of)
    return kept
