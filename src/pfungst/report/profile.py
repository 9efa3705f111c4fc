"""The overall picture of several runs: who dominates whom everywhere, and who leads under how many harnesses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pfungst.core import Finding, PfungstError, UsageError
from pfungst.core.stats import Floats, Interval, holm, interval_of
from pfungst.probes import measure
from pfungst.report.card import join_words
from pfungst.report.compare import SIGNIFICANT, Compared, Leaderboard, column_scores
from pfungst.scores.profile import MARGIN, Axis, Standing, standings, undominated


@dataclass(frozen=True)
class Profile:
    """Runs over conditions. There is no sum of them: what a condition is worth depends on what a player is for."""

    runs: tuple[str, ...]
    conditions: tuple[str, ...]
    """Clean, and every disturbance that keeps the answer. Where the evidence is taken away a high score is no merit."""
    scores: tuple[tuple[Interval | Finding, ...], ...]
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
    columns = [one for one in board.columns if one.role in ("clean", "keeps") and one.pairs]
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


PROBE = "protocol"


@dataclass(frozen=True)
class HarnessPair:
    """Two runs under every harness that both were asked by: the first minus the second."""

    first: str
    second: str
    difference: Finding
    """Of the means over all harnesses."""
    least: float
    most: float
    """The difference under the harness that favours the second run most, and the first."""
    ahead: int
    """Harnesses under which the first has the higher score."""
    behind: int
    surely_ahead: int
    """Of these, significantly, after Holm's correction over the harnesses."""
    surely_behind: int
    harnesses: int

    @property
    def sentence(self) -> str:
        if self.ahead and self.behind:
            sure = min(self.surely_ahead, self.surely_behind) > 0
            how = "significantly both ways" if sure else "not significantly both ways"
            return (
                f"{self.first} is ahead of {self.second} under {self.ahead} of {self.harnesses} harnesses and behind "
                f"under {self.behind}, {how}: by {100 * self.least:+.1f} to {100 * self.most:+.1f} points."
            )
        if not self.ahead and not self.behind:
            return f"{self.first} and {self.second} score the same under all {self.harnesses} harnesses."
        leads, other = (self.first, self.second) if self.ahead else (self.second, self.first)
        least, most = sorted((abs(self.least), abs(self.most)))
        ties = self.harnesses - self.ahead - self.behind
        behind = f"behind {other} under none" if not ties else f"level with {other} under {ties}"
        return (
            f"{leads} is {behind} of {self.harnesses} harnesses: ahead by {100 * least:.1f} to {100 * most:.1f} points."
        )


def harness_pairs(runs: Sequence[Compared]) -> list[HarnessPair]:
    """Every pair of runs; none where the runs do not all have the probe protocol, with harnesses in common."""
    if not all(PROBE in run.probes for run in runs):
        return []
    names = [name for name in runs[0].rows(PROBE) if all(name in run.rows(PROBE) for run in runs)][1:]
    if not names:
        return []
    ids, clusters, _ = column_scores(runs, PROBE, names[:1])
    rows = [run.rows(PROBE) for run in runs]
    scores = np.array([[[row[name][key]["score"] for key in ids] for name in names] for row in rows], np.float64)
    known = np.flatnonzero(~np.isnan(scores).any(axis=(0, 1))).tolist()
    if not known:
        return []
    scores, clusters = scores[:, :, known], [clusters[at] for at in known]
    return [
        _pair(runs[first].name, runs[second].name, scores[first] - scores[second], clusters)
        for first, second in combinations(range(len(runs)), 2)
    ]


def _pair(first: str, second: str, differences: Floats, clusters: Sequence[str]) -> HarnessPair:
    """differences: (harnesses, questions)."""
    means = differences.mean(1)
    p_values = holm([interval_of(row, clusters, bounds=(-1.0, 1.0)).p for row in differences])
    sure = np.array(p_values) < SIGNIFICANT
    return HarnessPair(
        first,
        second,
        measure.difference("difference", differences.mean(0), np.zeros(differences.shape[1]), clusters, 0),
        float(means.min()),
        float(means.max()),
        int((means > 1e-12).sum()),
        int((means < -1e-12).sum()),
        int(((means > 0) & sure).sum()),
        int(((means < 0) & sure).sum()),
        len(means),
    )
