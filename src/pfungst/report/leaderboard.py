"""Many runs on the same questions: a table with one column a probe, every pair tested, and ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from pfungst.core import PfungstError, Progress
from pfungst.core.stats import Floats, Interval, bootstrap, compare_paired, holm
from pfungst.core.types import no_progress
from pfungst.report.answers import removing_probes
from pfungst.report.findings import read_findings
from pfungst.report.pairing import Compared, cluster, read_runs, shared_ids

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Pair:
    """Two runs on one column: the first minus the second."""

    first: int
    second: int
    difference: Interval
    p: float
    """After Holm's correction over all pairs of the column."""
    test: str

    @property
    def differs(self) -> bool:
        return self.p < SIGNIFICANT


@dataclass(frozen=True)
class Column:
    """What the runs score under one condition, on the same examples."""

    name: str
    """`clean`, the probe, or the probe and its condition."""
    probe: str
    variants: tuple[str, ...]
    """The variants whose mean score it is."""
    removes: bool
    """Whether the evidence is taken away: there a low score is as it should be."""
    scores: tuple[Interval, ...]
    """Of each run."""
    drops: tuple[Interval | None, ...]
    """From the same run's clean score on the same examples; None in the clean column."""
    pairs: tuple[Pair, ...]
    ranks: tuple[float, ...]
    """Mean rank over images, 1 for the best; equals share theirs."""
    friedman: float
    """p-value of the Friedman test that the runs rank alike; NaN for two runs."""
    groups: tuple[tuple[int, ...], ...]
    """Runs of which no two differ significantly, by rank; the bars of a critical-difference diagram."""

    @property
    def best(self) -> int:
        return max(range(len(self.scores)), key=lambda at: self.scores[at].value)

    def pair(self, first: int, second: int) -> Pair:
        return next(one for one in self.pairs if {one.first, one.second} == {first, second})

    def ties_with_best(self, at: int) -> bool:
        """Whether this run is the best one, or not significantly worse."""
        return at == self.best or not self.pair(at, self.best).differs

    def marks(self, at: int) -> bool:
        """Whether a table marks this run; where the evidence is taken away a high score is no merit."""
        return not self.removes and self.ties_with_best(at)


@dataclass(frozen=True)
class Leaderboard:
    """The runs, best clean score first, and what they score."""

    runs: tuple[Compared, ...]
    columns: tuple[Column, ...]


def leaderboard(
    paths: Sequence[str | Path], *, seed: int = 0, label: str = "", progress: Progress = no_progress
) -> Leaderboard:
    """Compare two runs or more over the probes and examples that all have. label: as in `compare`."""
    runs, shared = read_runs(paths, label)
    removing = removing_probes(runs[0].path, shared, runs[0].label)
    wanted = _wanted(runs, shared)
    if not wanted:
        told = "; ".join(f"{run.path} has {', '.join(run.rows(shared[0]))}" for run in runs)
        raise PfungstError(f"The runs have no condition of the probe {shared[0]} in common: {told}.")
    order = _by_clean_score(runs, wanted[0])
    runs = [runs[at] for at in order]
    columns = []
    for done, (name, probe, clean, variants) in enumerate(wanted):
        progress("comparing", done, len(wanted))
        found = _column(runs, name, probe, clean, variants, probe in removing, seed)
        if found is not None:
            columns.append(found)
    progress("comparing", len(wanted), len(wanted))
    if not columns:
        raise PfungstError("The runs have no example with a known right answer in common.")
    return Leaderboard(tuple(runs), tuple(columns))


def _wanted(runs: Sequence[Compared], shared: Sequence[str]) -> list[tuple[str, str, str, tuple[str, ...]]]:
    """Name, probe, clean variant and variants of each column.

    A probe's column is what its headline is about: the variant its findings name, or the mean of all that are not
    clean. Conditions that somebody else made are columns of their own.
    """
    findings = {one["probe"]: one for one in read_findings(runs[0].path, runs[0].label)}
    base = "control" if "control" in shared else shared[0]
    found: list[tuple[str, str, str, tuple[str, ...]]] = []
    for probe in shared:
        names = [name for name in runs[0].rows(probe) if all(name in run.rows(probe) for run in runs)]
        if not names:
            continue
        first = names[0]
        if probe == base:
            found.insert(0, ("clean", probe, "", (first,)))
        about = findings.get(probe, {})
        clean = (about.get("clean") or {}).get("condition")
        clean = clean if clean in names else first
        headline = (about.get("disturbed") or {}).get("condition")
        rest = tuple(name for name in names if name != first)
        if probe == "conditions":
            found += [(name, probe, first, (name,)) for name in rest]
        elif headline in rest:
            found.append((probe, probe, clean, (headline,)))
        elif rest:
            found.append((probe, probe, clean, rest))
    return found


def column_scores(runs: Sequence[Compared], probe: str, variants: Sequence[str]) -> tuple[list[str], list[str], Floats]:
    """Examples, their clusters, and (runs, examples) scores: the mean over those variants that all runs have."""
    ids: dict[str, list[str]] = {}
    for variant in variants:
        for key in shared_ids(runs, probe, variant):
            ids.setdefault(key, []).append(variant)
    rows = [run.rows(probe) for run in runs]
    values = np.array(
        [[np.mean([row[variant][key]["score"] for variant in having]) for key, having in ids.items()] for row in rows],
        np.float64,
    ).reshape(len(runs), len(ids))
    clusters = [cluster([row[having[0]][key] for row in rows]) for key, having in ids.items()]
    return list(ids), clusters, values


def _by_clean_score(runs: Sequence[Compared], clean: tuple[str, str, str, tuple[str, ...]]) -> list[int]:
    _, _, values = column_scores(runs, clean[1], clean[3])
    means = [float(np.nanmean(row)) if np.isfinite(row).any() else -1.0 for row in values]
    return sorted(range(len(runs)), key=lambda at: -means[at])


def _column(
    runs: Sequence[Compared], name: str, probe: str, clean: str, variants: tuple[str, ...], removes: bool, seed: int
) -> Column | None:
    ids, clusters, values = column_scores(runs, probe, variants)
    known = np.flatnonzero(~np.isnan(values).any(axis=0)).tolist()
    if not known:
        return None
    values, clusters, ids = values[:, known], [clusters[at] for at in known], [ids[at] for at in known]
    pairs = []
    for first, second in combinations(range(len(runs)), 2):
        paired = compare_paired(values[first], values[second], clusters, seed=seed)
        pairs.append(Pair(first, second, paired.difference, paired.p, f"{paired.how}, Holm"))
    corrected = holm([pair.p for pair in pairs])
    pairs = [Pair(one.first, one.second, one.difference, p, one.test) for one, p in zip(pairs, corrected, strict=True)]
    drops: list[Interval | None] = [None] * len(runs)
    if clean:
        for at, run in enumerate(runs):
            before = run.rows(probe)[clean]
            start = np.array([before[key]["score"] if key in before else math.nan for key in ids])
            drops[at] = bootstrap(start - values[at], clusters, seed=seed, bounds=(-1.0, 1.0))
    ranks, friedman = _ranks(values, clusters)
    return Column(
        name, probe, variants, removes, tuple(bootstrap(row, clusters, seed=seed) for row in values), tuple(drops),
        tuple(pairs), ranks, friedman, groups_of(ranks, pairs),
    )  # fmt: skip


def _ranks(values: Floats, clusters: Sequence[str]) -> tuple[tuple[float, ...], float]:
    """Mean ranks over images, whose questions count as one, and the p-value of the Friedman test."""
    from scipy.stats import friedmanchisquare, rankdata

    _, codes = np.unique(np.asarray(clusters), return_inverse=True)
    sums = np.stack([np.bincount(codes, weights=row) for row in values])
    means = sums / np.bincount(codes)
    # Means that are equal but for rounding share their rank.
    ranks = rankdata(-np.round(means, 9), axis=0).mean(1)
    p = math.nan
    if len(values) > 2 and means.shape[1] > 1:
        p = 1.0 if np.ptp(means, axis=0).max() == 0 else float(friedmanchisquare(*np.round(means, 9)).pvalue)
    return tuple(float(rank) for rank in ranks), p


def groups_of(ranks: Sequence[float], pairs: Sequence[Pair]) -> tuple[tuple[int, ...], ...]:
    """The longest stretches of neighbours in rank of which no two differ significantly."""
    order = sorted(range(len(ranks)), key=lambda at: ranks[at])
    differs = {frozenset((pair.first, pair.second)) for pair in pairs if pair.differs}
    found: list[tuple[int, ...]] = []
    reached = 0
    for start in range(len(order)):
        end = start + 1
        while end < len(order) and all(frozenset((order[end], one)) not in differs for one in order[start:end]):
            end += 1
        if end - start > 1 and end > reached:
            found.append(tuple(order[start:end]))
        reached = max(reached, end)
    return tuple(found)
