"""Whether the order of players depends on the harness: the probe protocol, run by run against run by run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pfungst.core.stats import Floats, Interval, holm, interval_of
from pfungst.report.leaderboard import SIGNIFICANT, column_scores
from pfungst.report.pairing import Compared

PROBE = "protocol"


@dataclass(frozen=True)
class HarnessPair:
    """Two runs under every harness that both were asked by: the first minus the second."""

    first: str
    second: str
    difference: Interval
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
        interval_of(differences.mean(0), clusters, bounds=(-1.0, 1.0)),
        float(means.min()),
        float(means.max()),
        int((means > 1e-12).sum()),
        int((means < -1e-12).sum()),
        int(((means > 0) & sure).sum()),
        int(((means < 0) & sure).sum()),
        len(means),
    )
