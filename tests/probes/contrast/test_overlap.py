"""Intervals for pairs that share images."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pfungst.core.stats import interval_of
from pfungst.probes.contrast.overlap import Units


def ring(count: int) -> list[list[str]]:
    """Pairs of neighbours: every image is in two pairs, and all pairs are linked."""
    return [[str(i), str((i + 1) % count)] for i in range(count)]


def test_the_variance_counts_every_two_pairs_that_share_an_image() -> None:
    rng = np.random.default_rng(0)
    images = ring(12)
    values = rng.random(12)
    units = Units.of(images)
    assert units.dyadic
    found = units.mean(values.tolist())
    residuals = values - values.mean()
    total = sum(residuals[g] * residuals[h] for g in range(12) for h in range(12) if set(images[g]) & set(images[h]))
    total = max(total, float(residuals @ residuals))
    error = math.sqrt(12 / 10 * total) / 12
    assert (found.high - found.low) / 2 == pytest.approx(2.570582 * error)  # t, 5 degrees of freedom
    assert found.value == pytest.approx(values.mean()) and (found.clusters, found.n) == (12, 12)


def test_pairs_that_share_nothing_are_clusters_as_everywhere() -> None:
    units = Units.of([[f"{i}a", f"{i}b"] for i in range(40)])
    values = np.random.default_rng(0).random(40).tolist()
    assert not units.dyadic
    assert units.mean(values) == interval_of(values, range(40))


def test_units_without_a_difference_have_no_interval_of_width_zero() -> None:
    found = Units.of(ring(20)).mean([1.0] * 20)
    assert found.value == found.high == 1.0 and 0.5 < found.low < 1.0
    assert math.isnan(Units.of(ring(20)).mean([math.nan] * 20).value)


def test_intervals_cover_the_truth_where_images_are_shared() -> None:
    """Each value is the sum of what its two images bring and noise; all pairs are linked."""
    rng = np.random.default_rng(1)
    covered, tests = 0, 0
    for _ in range(200):
        effect = rng.normal(size=40)
        pairs = [rng.choice(40, 2, replace=False) for _ in range(80)]
        values = [0.05 * (effect[i] + effect[j]) + 0.05 * rng.normal() for i, j in pairs]
        units = Units.of([[str(i), str(j)] for i, j in pairs])
        found = units.mean(values, (-1.0, 1.0))
        covered += found.low <= 0 <= found.high
        lost = units.difference(values, [0.0] * len(values))
        tests += lost.p < 0.05
        assert (lost.p < 0.05) == (lost.low > 0 or lost.high < 0)
    assert covered / 200 >= 0.92 and tests / 200 <= 0.08
