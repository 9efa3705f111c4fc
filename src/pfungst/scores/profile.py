"""Who is at least as good as whom everywhere: no single score, but dominance over a profile of conditions.

Player A dominates player B where A is at least as good as B under every condition and better under one, surely:

- *at least as good*: that A is worse by `margin` or more is refuted under every condition where A is not better. Each
  refutation is a bet on the paired differences, image by image (`core.anytime`), valid for any number of images and any
  dependence within one. All conditions must pass, so none needs a correction for the others (an intersection-union
  test).
- *better*: the paired test of the two players is significant under some condition, after Holm's correction over all
  conditions and pairs of players.

Each half gets half of the 5%; the first is split over all ordered pairs of players. A table of any number of players
has a wrong dominance in it with probability 5% at most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np

from pfungst.core.anytime import ConfidenceSequence
from pfungst.core.stats import Floats, compare_paired, holm

MARGIN = 0.02
"""By how much a player may be worse and still count as at least as good. Equality cannot be shown, this can."""
ALPHA = 0.05


@dataclass(frozen=True)
class Axis:
    """Scores of all players under one condition, on the same examples."""

    name: str
    clusters: Sequence[str]
    """Image of each example."""
    scores: Floats
    """(players, examples), known ones only."""


@dataclass(frozen=True)
class Standing:
    """One player against another."""

    first: int
    second: int
    better: tuple[str, ...]
    """Conditions under which the first is significantly better."""
    unsure: tuple[str, ...]
    """Conditions under which the first may be worse by the margin or more, or is."""

    @property
    def dominates(self) -> bool:
        return bool(self.better) and not self.unsure


def standings(axes: Sequence[Axis], *, margin: float = MARGIN, seed: int = 0) -> list[Standing]:
    """Every player against every other, in both directions."""
    players = range(len(axes[0].scores))
    pairs = list(combinations(players, 2))
    tested = [compare_paired(axis.scores[a], axis.scores[b], axis.clusters) for a, b in pairs for axis in axes]
    corrected = holm([one.p for one in tested])
    better: dict[tuple[int, int], list[str]] = {}
    for at, (one, p) in enumerate(zip(tested, corrected, strict=True)):
        if p <= ALPHA / 2:
            a, b = pairs[at // len(axes)]
            winner = (a, b) if one.value > 0 else (b, a)
            better.setdefault(winner, []).append(axes[at % len(axes)].name)
    bar = ALPHA / 2 / (2 * len(pairs))
    found = []
    for first, second in permutations(players, 2):
        ahead = tuple(better.get((first, second), ()))
        refuted = {
            axis.name
            for axis in axes
            if worse_by(axis.scores[first] - axis.scores[second], axis.clusters, margin, seed) <= bar
        }
        # Who is surely better is surely not worse.
        unsure = tuple(axis.name for axis in axes if axis.name not in refuted and axis.name not in ahead)
        found.append(Standing(first, second, ahead, unsure))
    return found


def worse_by(differences: Floats, clusters: Sequence[str], margin: float, seed: int = 0) -> float:
    """p-value of the claim that differences between -1 and 1 have a mean of -margin or less."""
    if not len(differences):
        return math.nan
    places: dict[str, int] = {}
    codes = np.asarray([places.setdefault(cluster, len(places)) for cluster in clusters])
    order = np.random.default_rng(seed).permutation(len(places))
    sums, sizes = np.bincount(codes, weights=differences)[order], np.bincount(codes)[order]
    bets = ConfidenceSequence.of(sums.tolist(), sizes.tolist(), largest=float(sizes.max()), aim=margin)
    return min(1.0, math.exp(-float(bets.log_capital(-margin)[-1])))


def undominated(standings: Sequence[Standing]) -> tuple[int, ...]:
    """The players that no other dominates."""
    players = dict.fromkeys(one.first for one in standings)
    beaten = {one.second for one in standings if one.dominates}
    return tuple(player for player in players if player not in beaten)
