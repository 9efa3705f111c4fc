"""How far people agree: Krippendorff's alpha and Fleiss' kappa, for answers that are categories.

With n_uc the number of people who put item u into category c, n_u their sum over c, n_c over u, and N over both
(items with a single answer are left out):

    alpha = 1 - D_o / D_e
    D_o = 1/N sum_u (n_u^2 - sum_c n_uc^2) / (n_u - 1)      D_e = (N^2 - sum_c n_c^2) / (N (N - 1))

(Krippendorff, Computing Krippendorff's alpha-reliability). Fleiss' kappa wants the same number m of answers an item:

    kappa = (P - P_e) / (1 - P_e)     P = mean_u (sum_c n_uc^2 - m) / (m (m - 1))     P_e = sum_c (n_c / N)^2

Intervals are percentiles of a bootstrap over items. Where everybody always gives the same answer neither is
defined: NaN.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pfungst.core.stats import BOOTSTRAP_DRAWS, Floats, Interval


@dataclass(frozen=True, slots=True)
class Reliability:
    """How far people agree about items."""

    alpha: Interval
    kappa: Interval
    """Of the items with the most frequent number of answers, at least two."""
    kappa_answers: int
    """That number."""
    majority: Interval
    """Share of an item's answers that are its most frequent one, the mean over items with two or more."""


def reliability(ratings: Sequence[Sequence[Hashable]], *, seed: int = 0) -> Reliability:
    """Agreement about items; `ratings` are the answers to each item, by whomever, in any number."""
    counts = count_answers(ratings)
    totals = counts.sum(1)
    several = counts[totals >= 2]
    sizes = Counter(int(n) for n in several.sum(1))
    most = max(sizes, key=lambda n: (sizes[n], n)) if sizes else 0
    majority = (several.max(1) / several.sum(1)) if len(several) else np.zeros(0)
    return Reliability(
        _interval(several, _alphas, seed, (-1.0, 1.0)),
        _interval(several[several.sum(1) == most], _kappas, seed, (-1.0, 1.0)),
        most,
        _interval(
            majority[:, None], lambda values, weights: (weights @ values)[:, 0] / weights.sum(1), seed, (0.0, 1.0)
        ),
    )


def count_answers(ratings: Sequence[Sequence[Hashable]]) -> Floats:
    """(items, categories): how many people put an item into a category."""
    places = {one: at for at, one in enumerate(dict.fromkeys(one for row in ratings for one in row))}
    counts = np.zeros((len(ratings), len(places)))
    for number, row in enumerate(ratings):
        for one in row:
            counts[number, places[one]] += 1
    return counts


def _alphas(counts: Floats, weights: Floats) -> Floats:
    """Alpha of every draw: weights (draws, items) say how often an item was drawn."""
    sizes = counts.sum(1)
    apart = (sizes**2 - (counts**2).sum(1)) / (sizes - 1)
    total = weights @ sizes
    observed = (weights @ apart) / total
    expected = (total**2 - ((weights @ counts) ** 2).sum(1)) / (total * (total - 1))
    return _ratio(observed, expected)


def _kappas(counts: Floats, weights: Floats) -> Floats:
    size = counts[0].sum()
    agreed = ((counts**2).sum(1) - size) / (size * (size - 1))
    drawn = weights.sum(1)
    shares = (weights @ counts) / (drawn * size)[:, None]
    by_chance = (shares**2).sum(1)
    return _ratio(1 - (weights @ agreed) / drawn, 1 - by_chance)


def _ratio(observed: Floats, expected: Floats) -> Floats:
    """1 - observed / expected disagreement; NaN where none can be expected."""
    known = expected > 1e-12
    result: Floats = np.full(len(observed), math.nan)
    result[known] = 1 - observed[known] / expected[known]
    return result


def _interval(
    values: Floats, statistic: Callable[[Floats, Floats], Floats], seed: int, bounds: tuple[float, float]
) -> Interval:
    """The statistic of all items, and percentiles of it over items drawn again."""
    items = len(values)
    how = f"bootstrap over items, {BOOTSTRAP_DRAWS} draws"
    n = int(values.sum()) if items and values.shape[1] > 1 else items
    if not items:
        return Interval(math.nan, math.nan, math.nan, 0, 0, how)
    value = float(statistic(values, np.ones((1, items)))[0])
    if items < 2 or math.isnan(value):
        return Interval(value, math.nan, math.nan, n, items, how)
    rng = np.random.default_rng([seed, 17])
    drawn: npt.NDArray[np.int64] = rng.multinomial(items, np.full(items, 1 / items), BOOTSTRAP_DRAWS)
    found = statistic(values, drawn.astype(np.float64))
    found = found[~np.isnan(found)]
    if not len(found):
        return Interval(value, math.nan, math.nan, n, items, how)
    low, high = np.clip(np.quantile(found, [0.025, 0.975]), *bounds)
    return Interval(value, float(low), float(high), n, items, how)
