"""Scores of whole conditions: R_score and consensus.

R_score has a cusp where nothing is lost, so chance only lowers it: answers that change at random move the measured
accuracy, up or down, and both count as a loss. A player that loses nothing, with 10% of its answers changing, scores
about 0.8 on 300 questions. So `robustness` gives it with an interval by inversion, the R_scores of all losses in the
interval of the loss; corrected, from the square of the loss less what chance adds to it; and beside both what chance
alone makes of a player that loses nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from pfungst.core import PfungstError
from pfungst.core.stats import Floats, Interval, Labels, interval_of, standard_error

TOLERANCE = 0.05
LIMIT = 20.0
"""(t, m) of the papers, in percentage points: Table 4 of Assessing the Robustness of VQA."""


def r_score(clean: float, noisy: float, t: float = TOLERANCE, m: float = LIMIT) -> float:
    """Robustness score in [0, 1] of a player with accuracy `clean`, and `noisy` under noise, both in percent.

    Eq. 7 and 8 of Assessing the Robustness of VQA: with d = |clean - noisy|,
    clamp((sqrt(m) - sqrt(d)) / (sqrt(m) - sqrt(t)), 0, 1). Differences up to the tolerance `t` give 1, those from the
    limit `m` on give 0. A gain counts like a loss. NaN in, NaN out. Shares of 1 are refused.
    """
    if not 0 <= t < m <= 100:
        raise PfungstError(f"R_score needs 0 <= t < m <= 100 (percentage points), not t = {t} and m = {m}.")
    for name, accuracy in (("clean", clean), ("noisy", noisy)):
        if accuracy < 0 or accuracy > 100:
            raise PfungstError(f"The {name} accuracy is {accuracy}; R_score takes accuracies in percent, 0 to 100.")
    if math.isnan(clean) or math.isnan(noisy):
        return math.nan
    if 0 < max(clean, noisy) <= 1:
        raise PfungstError(
            f"R_score takes accuracies in percent, such as 60 for 0.6; {clean} and {noisy} look like shares of 1. "
            "Multiply them by 100."
        )
    score = (math.sqrt(m) - math.sqrt(abs(clean - noisy))) / (math.sqrt(m) - math.sqrt(t))
    return min(max(score, 0.0), 1.0)


@dataclass(frozen=True, slots=True)
class Robustness:
    """An R_score and what it is worth."""

    score: Interval
    """Of the papers, biased towards 0. Its bounds are honest."""
    corrected: float
    """Of the loss less what chance adds to its square; still low where little is lost, but half as much."""
    by_chance: float
    """What the same chance makes of a player that loses nothing, on average."""


def robustness(clean: Floats, noisy: Floats, clusters: Labels) -> Robustness:
    """R_score of scores from 0 to 1 on the same examples; those unknown in one of the conditions are left out."""
    lost = interval_of(clean - noisy, clusters, bounds=(-1.0, 1.0))
    error = standard_error(clean - noisy, clusters)
    ends = [abs(end) for end in (lost.low, lost.high)]
    nearest = 0.0 if lost.low <= 0 <= lost.high else min(ends)
    # Where nothing is lost, a gain and a loss both speak for a low score: at_most needs the interval's two sides.
    score = replace(
        lost,
        value=_of_loss(lost.value),
        low=_of_loss(max(ends)),
        high=_of_loss(nearest),
        at_least=_of_loss(max(abs(lost.at_least), abs(lost.at_most))),
        at_most=_of_loss(nearest),
        how=f"inversion of the interval of the loss ({lost.how})",
        p=math.nan,
    )
    corrected = _of_loss(math.sqrt(max(0.0, lost.value**2 - error**2)))
    quantiles = (np.arange(500) + 0.5) / 1000
    by_chance = float(np.mean([_of_loss(error * NormalDist().inv_cdf(one)) for one in quantiles.tolist()]))
    return Robustness(score, corrected, by_chance)


def _of_loss(loss: float) -> float:
    return r_score(100.0, 100 - min(100 * abs(loss), 100.0))


@dataclass(frozen=True, slots=True)
class Consensus:
    """A consensus score and what it rests on."""

    score: float
    """CS(k), a fraction; NaN if no group is large enough."""
    groups: int
    """Groups in the average: those with at least k members."""
    too_small: int
    """Groups left out because they have fewer than k members."""


def consensus(correct: Sequence[Sequence[bool]] | npt.NDArray[np.bool_], k: int) -> float:
    """Consensus score CS(k) in [0, 1]: Eq. 2 and 3 of Cycle-Consistency for Robust VQA, averaged over groups.

    `correct` is a sequence of groups, each a sequence of booleans, one a rephrasing (the original included). CS(k) of a
    group of n with c correct is the share of its subsets of size k that are correct throughout, C(c, k) / C(n, k),
    summed in exact arithmetic and rounded once. Scores are taken too: as in the paper, any VQA accuracy above 0 is
    correct.

    A group with fewer than k members has no subset of size k: it is left out of the average. `consensus_of` also tells
    how many were. If none is left the result is NaN.
    """
    return consensus_of(correct, k).score


def consensus_of(correct: Sequence[Sequence[bool]] | npt.NDArray[np.bool_], k: int) -> Consensus:
    """`consensus` with the number of groups it averages, and of those too small to count."""
    if k < 1 or k != int(k):
        raise PfungstError(f"CS(k) is defined for whole k from 1 on, not for k = {k}.")
    k = int(k)
    kinds = _kinds(correct)
    groups = sum(count for (n, _), count in kinds.items() if n >= k)
    total = sum(
        (Fraction(math.comb(c, k) * count, math.comb(n, k)) for (n, c), count in kinds.items() if n >= k), Fraction(0)
    )
    return Consensus(float(total / groups) if groups else math.nan, groups, sum(kinds.values()) - groups)


def _kinds(correct: Sequence[Sequence[bool]] | npt.NDArray[np.bool_]) -> dict[tuple[int, int], int]:
    """(members, correct members) -> how many groups are of that kind."""
    try:
        sizes = np.fromiter(map(len, correct), np.int64, len(correct))
        right = _flat(correct, int(sizes.sum()))
    except (TypeError, ValueError) as error:
        raise PfungstError(
            "consensus takes a sequence of groups, each a sequence of true and false, "
            f"such as [[True, True, False], [False, True]]; this is something else ({error})."
        ) from error
    ends = np.cumsum(sizes)
    up_to = np.concatenate([[0], np.cumsum(right)])
    base = int(sizes.max(initial=0)) + 1
    kinds, counts = np.unique(sizes * base + up_to[ends] - up_to[ends - sizes], return_counts=True)
    return {divmod(kind, base): count for kind, count in zip(kinds.tolist(), counts.tolist())}


def _flat(correct: Sequence[Sequence[bool]] | npt.NDArray[np.bool_], members: int) -> npt.NDArray[np.bool_]:
    """All groups one after the other."""
    try:
        # Booleans are bytes: ten times as fast as through numbers, but anything else must take the other way.
        packed = b"".join(map(bytes, correct))
    except (TypeError, ValueError):
        packed = b""
    if len(packed) == members:
        return np.frombuffer(packed, np.uint8) > 0
    scores = np.fromiter(chain.from_iterable(correct), np.float64, members)
    if np.isnan(scores).any():
        raise PfungstError("consensus met a NaN: leave out questions whose right answer is unknown.")
    return scores > 0
