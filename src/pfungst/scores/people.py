"""What people say about items, with an interval over both: other people, and other items.

The interval is a jackknife: the statistic t without each person in turn, each group of items, and each person's answers
to each group. With W people, G groups and C of the last,

    V(W) = (W - 1) / W sum_w (t_w - mean t_w)^2     V = V(W) + V(G) - V(C), at least V(W) and V(G)

(the two-way variance of Cameron, Gelbach and Miller 2011). The t distribution has Satterthwaite's degrees of freedom,
from the effective numbers of people and groups, (sum of answers)^2 / sum of squared answers. The ends are those of
Wilson's interval, which stays between the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
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
