"""How far people agree: Krippendorff's alpha and Fleiss' kappa, for answers that are categories.

With n_uc the number of people who put item u into category c, n_u their sum over c, n_c over u, and N over both
(items with a single answer are left out):

    alpha = 1 - D_o / D_e
    D_o = 1/N sum_u (n_u^2 - sum_c n_uc^2) / (n_u - 1)      D_e = (N^2 - sum_c n_c^2) / (N (N - 1))

(Krippendorff, Computing Krippendorff's alpha-reliability). Fleiss' kappa wants the same number m of answers an item:

    kappa = (P - P_e) / (1 - P_e)     P = mean_u (sum_c n_uc^2 - m) / (m (m - 1))     P_e = sum_c (n_c / N)^2

The intervals are over people and items (`pfungst.scores.people`). Where everybody always gives the same answer neither
is defined: NaN.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from pfungst.core.stats import Floats, Interval, ratio
from pfungst.scores.people import over_people

Said = tuple[Hashable, Hashable]
"""A person, and the category."""


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


def reliability(
    ratings: Sequence[Sequence[Hashable]], people: Sequence[Sequence[Hashable]] | None = None
) -> Reliability:
    """Agreement about items.

    ratings: the answers to each item, by whomever, in any number.
    people: who gave each of them. Without it every answer is another person's, and the intervals are over items alone.
    """
    if people is None:
        people = [[(item, at) for at in range(len(row))] for item, row in enumerate(ratings)]
    items = [list(zip(who, row, strict=True)) for who, row in zip(people, ratings, strict=True)]
    several = [said for said in items if len(said) >= 2]
    sizes = Counter(map(len, several))
    most = max(sizes, key=lambda size: (sizes[size], size), default=0)
    values = list(dict.fromkeys(value for said in several for _, value in said))

    def interval(
        some: Sequence[Sequence[Said]],
        part: Callable[[list[int]], Sequence[float]],
        statistic: Callable[[Floats], Floats],
        least: float,
    ) -> Interval:
        counted = partial(_counted, part, values)
        return over_people(some, counted, lambda one: one[0], statistic=statistic, bounds=(least, 1.0))

    same = [said for said in several if len(said) == most]
    return Reliability(
        interval(several, _alpha_part, _alpha, -1.0), interval(same, _kappa_part, _kappa, -1.0), most,
        interval(several, lambda counts: (max(counts) / sum(counts), 1), ratio, 0.0),
    )  # fmt: skip


def _counted(
    part: Callable[[list[int]], Sequence[float]], values: Sequence[Hashable], said: Sequence[Said]
) -> Sequence[float]:
    """What an item adds, from how many people put it into each category; nothing from a single answer."""
    counts = Counter(value for _, value in said)
    return part([counts[value] for value in values]) if len(said) > 1 else ()


def _alpha_part(counts: list[int]) -> Sequence[float]:
    size = sum(counts)
    return (size**2 - sum(count**2 for count in counts)) / (size - 1), *counts


def _alpha(sums: Floats) -> Floats:
    apart, counts = sums[:, 0], sums[:, 1:]
    total = counts.sum(1)
    return _one_minus(apart * (total - 1), total**2 - (counts**2).sum(1))


def _kappa_part(counts: list[int]) -> Sequence[float]:
    size = sum(counts)
    return (sum(count**2 for count in counts) - size) / (size * (size - 1)), 1.0, *counts


def _kappa(sums: Floats) -> Floats:
    agreed, items, counts = sums[:, 0], sums[:, 1], sums[:, 2:]
    total = counts.sum(1)
    return _one_minus((items - agreed) * total**2, (total**2 - (counts**2).sum(1)) * items)


def _one_minus(observed: Floats, expected: Floats) -> Floats:
    """1 - observed / expected disagreement; NaN where none can be expected."""
    result: Floats = np.full(len(observed), math.nan)
    known = expected > 1e-9
    result[known] = 1 - observed[known] / expected[known]
    return result
