"""The overall picture of several runs: what each scores under every condition, and who dominates whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pfungst.core import PfungstError, UsageError
from pfungst.core.stats import Interval
from pfungst.report.card import join_words
from pfungst.report.leaderboard import Leaderboard, column_scores
from pfungst.scores.profile import MARGIN, Axis, Standing, standings, undominated


@dataclass(frozen=True)
class Profile:
    """Runs over conditions. There is no sum of them: what a condition is worth depends on what a player is for."""

    runs: tuple[str, ...]
    conditions: tuple[str, ...]
    """Clean, and every disturbance that keeps the answer. Where the evidence is taken away a high score is no merit."""
    scores: tuple[tuple[Interval, ...], ...]
    """(runs, conditions)."""
    margin: float
    standings: tuple[Standing, ...]
    undominated: tuple[str, ...]

    def sentences(self) -> list[str]:
        """Who dominates whom, and what speaks for and against each of a pair where nobody does."""
        found = [self._dominance(one) for one in self.standings if one.dominates]
        settled = {frozenset((one.first, one.second)) for one in self.standings if one.dominates}
        for one in self.standings:
            if one.first < one.second and frozenset((one.first, one.second)) not in settled:
                found.append(self._open(one, self._standing(one.second, one.first)))
        return found

    def _dominance(self, one: Standing) -> str:
        told = f"{self.runs[one.first]} dominates {self.runs[one.second]}: better under {join_words(one.better)}"
        rest = len(self.conditions) - len(one.better)
        return f"{told}, worse by {100 * self.margin:g} points under none of the others." if rest else f"{told}."

    def _open(self, one: Standing, other: Standing) -> str:
        first, second = self.runs[one.first], self.runs[one.second]
        leads = [
            f"{name} is better under {join_words(side.better)}"
            for name, side in ((first, one), (second, other))
            if side.better
        ]
        told = f"Neither of {first} and {second} dominates"
        if len(leads) == 2:
            return f"{told}: {leads[0]}, {leads[1]}."
        if leads:
            side = one if one.better else other
            return (
                f"{told}: {leads[0]}, but may be worse by {100 * self.margin:g} points under {join_words(side.unsure)}."
            )
        return f"{told}: no difference is significant."

    def _standing(self, first: int, second: int) -> Standing:
        return next(one for one in self.standings if (one.first, one.second) == (first, second))


def profile(board: Leaderboard, *, margin: float = MARGIN, seed: int = 0) -> Profile:
    """The profile of the runs of a leaderboard, over the conditions that should not lower a score."""
    if not 0 < margin < 1:
        raise UsageError(f"The margin must be between 0 and 1, such as 0.02 for 2 points, but is {margin:g}.")
    columns = [one for one in board.columns if one.role in ("clean", "keeps")]
    if not columns:
        raise PfungstError("The runs share no condition that keeps the answers: there is nothing to profile.")
    axes = []
    for column in columns:
        _, clusters, values = column_scores(board.runs, column.probe, column.variants)
        known = np.flatnonzero(~np.isnan(values).any(axis=0))
        axes.append(Axis(column.name, [clusters[at] for at in known], values[:, known]))
    found = tuple(standings(axes, margin=margin, seed=seed))
    names = tuple(run.name for run in board.runs)
    return Profile(
        names,
        tuple(axis.name for axis in axes),
        tuple(tuple(column.scores[at] for column in columns) for at in range(len(names))),
        margin,
        found,
        tuple(names[at] for at in undominated(found)),
    )
