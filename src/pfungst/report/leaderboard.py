"""Many runs on the same questions: a table with one column a probe, every pair tested, and ranks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from pfungst.core import Finding, PfungstError, Progress
from pfungst.core.stats import Floats, Interval, compare_paired, holm, interval_of
from pfungst.core.types import no_progress
from pfungst.logs.records import condition_of
from pfungst.probes import measure
from pfungst.report.card import join_words
from pfungst.report.pairing import Compared, cluster, left_out, read_runs, shared_ids

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Pair:
    """Two runs on one column: the first minus the second."""

    first: int
    second: int
    difference: Interval
    p: float
    """Of the difference, by its interval."""
    p_holm: float
    """After Holm's correction over all pairs of the column."""

    @property
    def differs(self) -> bool:
        return self.p_holm < SIGNIFICANT


@dataclass(frozen=True)
class Column:
    """What the runs score under one condition, on the same examples."""

    name: str
    """`clean`, the probe, or the probe and its condition: always, where that takes the evidence away."""
    probe: str
    variants: tuple[str, ...]
    """The variants whose mean score it is."""
    role: str
    """What the disturbance does, one of `core.types.ROLES`. Where it removes what the answer depends on, a low score is
    as it should be."""
    scores: tuple[Interval, ...]
    """Of each run."""
    starts: tuple[Interval, ...]
    """The same run's clean score on the same examples; none in the clean column."""
    drops: tuple[Finding, ...]
    """From there to `scores`; none in the clean column."""
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
        return self.role != "removes" and self.ties_with_best(at)


@dataclass(frozen=True)
class Leaderboard:
    """The runs, best clean score first, and what they score."""

    runs: tuple[Compared, ...]
    columns: tuple[Column, ...]
    controls: tuple[Column, ...] = ()
    """The same questions once more: no condition of their own, but what every drop is read against."""
    notes: tuple[str, ...] = ()
    """What has to be said with these scores."""


@dataclass(frozen=True)
class _Wanted:
    """What a column is made of."""

    name: str
    probe: str
    role: str
    clean: str
    """The variant that a drop starts from; empty for the clean column."""
    variants: tuple[str, ...]


def leaderboard(paths: Sequence[str | Path], *, label: str = "", progress: Progress = no_progress) -> Leaderboard:
    """Compare two runs or more over the probes and examples that all have. label: as in `compare`."""
    runs, shared = read_runs(paths, label)
    wanted = _wanted(runs, shared)
    if not wanted:
        told = "; ".join(f"{run.path} has {', '.join(run.rows(shared[0]))}" for run in runs)
        raise PfungstError(f"The runs have no condition of the probe {shared[0]} in common: {told}.")
    order = _by_clean_score(runs, wanted[0])
    runs = [runs[at] for at in order]
    found = []
    for done, one in enumerate(wanted):
        progress("comparing", done, len(wanted))
        if (column := _column(runs, one)) is not None:
            found.append(column)
    progress("comparing", len(wanted), len(wanted))
    columns = [one for one in found if one.role != "control"]
    if not columns:
        raise PfungstError("The runs have no example with a known right answer in common.")
    controls = tuple(one for one in found if one.role == "control")
    return Leaderboard(
        tuple(runs), tuple(columns), controls, notes(runs, [(one.probe, *one.variants) for one in columns])
    )


def notes(runs: Sequence[Compared], shown: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Which questions are left out, and what the runs' findings say with their accuracies.

    shown: probe and condition, the clean one first.
    """
    some = left_out(runs, *shown[0][:2])
    told = (
        f"{run.name}: {row.note}"
        for run in runs
        for probe, about in run.findings.items()
        for row in about.rows
        if row.note and row.name == "accuracy" and (probe, row.condition) in shown
    )
    return (*([some] if some else []), *told)


def _wanted(runs: Sequence[Compared], shared: Sequence[str]) -> list[_Wanted]:
    """A probe's column is what its headline is about: the variant its findings name, or the mean of all that are not
    clean. Conditions that somebody else made are columns of their own, and so is what asks the same once more."""
    findings = runs[0].findings
    base = next((probe for probe in shared if probe in findings and findings[probe].role == "control"), shared[0])
    found: list[_Wanted] = []
    for probe in shared:
        names = [name for name in runs[0].rows(probe) if all(name in run.rows(probe) for run in runs)]
        about = findings.get(probe)
        if not names or about is None:
            continue
        first, *rest = names
        if probe == base:
            found.insert(0, _Wanted("clean", probe, "clean", "", (first,)))
        clean = about.clean.condition if about.clean is not None and about.clean.condition in names else first
        again = [name for name in rest if runs[0].is_control(probe, name)]
        rest = [name for name in rest if name not in again]
        if probe == "conditions":
            for condition in dict.fromkeys(map(condition_of, names[1:])):
                takes = tuple(name for name in names[1:] if condition_of(name) == condition)
                role = "control" if takes[0] in again else about.role
                found.append(_Wanted(condition, probe, role, first, takes))
            continue
        if again:
            name = probe if about.role == "control" else f"{probe}, {join_words(again)}"
            found.append(_Wanted(name, probe, "control", first, tuple(again)))
        headline = about.disturbed.condition if about.disturbed is not None else ""
        if rest:
            variants = (headline,) if headline in rest else tuple(rest)
            name = f"{probe}, {join_words(variants)}" if about.role == "removes" else probe
            found.append(_Wanted(name, probe, about.role, clean, variants))
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


def _by_clean_score(runs: Sequence[Compared], clean: _Wanted) -> list[int]:
    _, _, values = column_scores(runs, clean.probe, clean.variants)
    means = [float(np.nanmean(row)) if np.isfinite(row).any() else -1.0 for row in values]
    return sorted(range(len(runs)), key=lambda at: -means[at])


def _column(runs: Sequence[Compared], wanted: _Wanted) -> Column | None:
    ids, clusters, values = column_scores(runs, wanted.probe, wanted.variants)
    starts = np.array([_starts(run.rows(wanted.probe), wanted, ids) for run in runs]) if wanted.clean else values
    known = np.flatnonzero(~(np.isnan(values) | np.isnan(starts)).any(axis=0)).tolist()
    if not known:
        return None
    values, starts, clusters = values[:, known], starts[:, known], [clusters[at] for at in known]
    twos = list(combinations(range(len(runs)), 2))
    lost = [compare_paired(values[first], values[second], clusters) for first, second in twos]
    corrected = holm([one.p for one in lost])
    pairs = [Pair(*two, one, one.p, p) for two, one, p in zip(twos, lost, corrected, strict=True)]
    before, drops = [], []
    if wanted.clean:
        before = [interval_of(row, clusters) for row in starts]
        drops = [
            measure.difference("drop", *both, clusters, 0, wanted.name) for both in zip(starts, values, strict=True)
        ]
    ranks, friedman = _ranks(values, clusters)
    return Column(
        wanted.name, wanted.probe, wanted.variants, wanted.role,
        tuple(interval_of(row, clusters) for row in values), tuple(before), tuple(drops),
        tuple(pairs), ranks, friedman, groups_of(ranks, pairs),
    )  # fmt: skip


def _starts(rows: Mapping[str, Mapping[str, Any]], wanted: _Wanted, ids: Sequence[str]) -> list[float]:
    """What a drop starts from, for each of these examples: its clean variant, or the first of its trial."""
    clean = rows[wanted.clean]
    own = {key: row["clean_score"] for variant in wanted.variants for key, row in rows[variant].items()}
    return [clean[key]["score"] if key in clean else own[key] for key in ids]


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
