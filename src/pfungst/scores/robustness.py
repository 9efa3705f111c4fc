"""Scores of whole conditions: R_score and consensus."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain

import numpy as np
import numpy.typing as npt

from pfungst.core import PfungstError

TOLERANCE = 0.05
LIMIT = 20.0
"""(t, m) of the papers, in percentage points: Table 4 of Assessing the Robustness of VQA."""


def r_score(clean: float, noisy: float, t: float = TOLERANCE, m: float = LIMIT) -> float:
    """Robustness score in [0, 1] of a player with accuracy `clean`, and `noisy` under noise, both in percent.

    Eq. 7 and 8 of Assessing the Robustness of VQA: with d = |clean - noisy|,
    clamp((sqrt(m) - sqrt(d)) / (sqrt(m) - sqrt(t)), 0, 1). Differences up to the tolerance `t` give 1, those from the
    limit `m` on give 0. A gain counts like a loss. NaN in, NaN out.
    """
    if not 0 <= t < m <= 100:
        raise PfungstError(f"R_score needs 0 <= t < m <= 100 (percentage points), not t = {t} and m = {m}.")
    for name, accuracy in (("clean", clean), ("noisy", noisy)):
        if accuracy < 0 or accuracy > 100:
            raise PfungstError(f"The {name} accuracy is {accuracy}; R_score takes accuracies in percent, 0 to 100.")
    if math.isnan(clean) or math.isnan(noisy):
        return math.nan
    score = (math.sqrt(m) - math.sqrt(abs(clean - noisy))) / (math.sqrt(m) - math.sqrt(t))
    return min(max(score, 0.0), 1.0)


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
