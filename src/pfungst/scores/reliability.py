"""What people say about items: how far they agree, and intervals over both, other people and other items.

Krippendorff's alpha and Fleiss' kappa are for answers that are categories. With n_uc the number of people who put item
u into category c, n_u their sum over c, n_c over u, and N over both (items with a single answer are left out):

    alpha = 1 - D_o / D_e
    D_o = 1/N sum_u (n_u^2 - sum_c n_uc^2) / (n_u - 1)      D_e = (N^2 - sum_c n_c^2) / (N (N - 1))

(Krippendorff, Computing Krippendorff's alpha-reliability). Fleiss' kappa wants the same number m of answers an item:

    kappa = (P - P_e) / (1 - P_e)     P = mean_u (sum_c n_uc^2 - m) / (m (m - 1))     P_e = sum_c (n_c / N)^2

Where everybody always gives the same answer neither is defined: NaN.

The interval is a jackknife: the statistic t without each person in turn, each group of items, and each person's answers
to each group. With W people, G groups and C of the last,

    V(W) = (W - 1) / W sum_w (t_w - mean t_w)^2     V = V(W) + V(G) - V(C), at least V(W) and V(G)

(the two-way variance of Cameron, Gelbach and Miller 2011). The t distribution has Satterthwaite's degrees of freedom,
from the effective numbers of people and groups, (sum of answers)^2 / sum of squared answers. The ends are those of
Wilson's interval, which stays between the bounds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from pfungst.core.stats import Floats, Interval, effective_clusters, left_out, ratio

Said = TypeVar("Said")
FEWEST = 5
"""People below whom nothing can be said about other people."""


def too_few(people: int) -> str:
    """That there is no interval over people, in a sentence; empty where there is one."""
    told = f"No interval over people can be given: {people} took part, and below {FEWEST} nothing is known of others."
    return told if 0 < people < FEWEST else ""


def over_people(
    items: Sequence[Sequence[Said]],
    part: Callable[[Sequence[Said]], Sequence[float]],
    person: Callable[[Said], Hashable],
    group: Callable[[Said], Hashable] | None = None,
    *,
    statistic: Callable[[Floats], Floats] = ratio,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Interval:
    """A statistic of sums over items.

    items: the answers to each item, by as many people.
    part: what an item adds to the sums, from its answers, if anything; the statistic takes sums (draws, columns) to
        values.
    person, group: of an answer: who gave it, and what the item belongs to (an image). By default every item is its own.
    """
    items = [said for said in items if said]
    n, nan = sum(map(len, items)), math.nan
    if not n:
        return Interval(nan, nan, nan, 0, 0, "nothing is known")
    whole = [part(said) for said in items]
    without = [part([*said[:at], *said[at + 1 :]]) for said in items for at in range(len(said))]
    nothing = [0.0] * max(map(len, whole))
    parts, changes = (np.array([row or nothing for row in rows], np.float64) for rows in (whole, without))
    places = np.repeat(np.arange(len(items)), [len(said) for said in items])
    changes -= parts[places]
    people = _numbers([person(one) for said in items for one in said])
    own = _numbers([at if group is None else group(said[0]) for at, said in enumerate(items)])
    cells = _numbers(list(zip(people.tolist(), own[places].tolist(), strict=True)))
    total = parts.sum(0)
    value = float(statistic(total[None])[0])
    workers, groups = int(people.max()) + 1, int(own.max()) + 1
    unknown = Interval(value, nan, nan, n, groups, too_few(workers) or "no interval: one item says nothing of others")
    if math.isnan(value) or workers < FEWEST or groups < 2:
        return unknown
    left = [statistic(total + _sums(*one)) for one in ((changes, people), (-parts, own), (changes, cells))]
    sizes = [effective_clusters(np.bincount(codes)) for codes in (people, own[places])]
    found = left_out(value, left, sizes, bounds)
    return replace(found, n=n, clusters=groups, how=f"jackknife over {workers} people and {groups} items, {found.how}")


def _numbers(labels: Sequence[Hashable]) -> npt.NDArray[np.intp]:
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(label, len(numbers)) for label in labels], np.intp)


def _sums(values: Floats, codes: npt.NDArray[np.intp]) -> Floats:
    return np.stack([np.bincount(codes, weights=column) for column in values.T], axis=1)


Rating = tuple[Hashable, Hashable]
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
        some: Sequence[Sequence[Rating]],
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
    part: Callable[[list[int]], Sequence[float]], values: Sequence[Hashable], said: Sequence[Rating]
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
