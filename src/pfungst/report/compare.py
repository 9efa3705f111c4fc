"""Runs on the same questions, paired and tested.

Two of them variant by variant (`compare`); two or more as a table with one column a probe, every pair tested, and ranks
(`leaderboard`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from pfungst.core import Answer, Finding, Findings, PfungstError, Progress, Run
from pfungst.core.files import file_name
from pfungst.core.flips import Flips, alike, count_flips, same_answer
from pfungst.core.spec import labelled
from pfungst.core.stats import Floats, Interval, holm, interval_of
from pfungst.core.types import no_progress
from pfungst.logs.records import condition_of
from pfungst.probes import measure
from pfungst.report.card import join_words
from pfungst.scores.matchers import MATCHERS

COLUMNS = (
    "trial", "place", "role", "example_id", "image_id", "cluster", "variant", "level", "question", "answer", "unread",
    "score", "clean_score", "target",
)  # fmt: skip


@dataclass(frozen=True)
class Compared:
    """A run that is compared with others."""

    run: Run
    name: str
    """Of its player; with the folder's where several runs are of one player."""
    _kept: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def path(self) -> Path:
        return self.run.path

    @property
    def probes(self) -> list[str]:
        return self.run.probes

    @cached_property
    def findings(self) -> Mapping[str, Findings]:
        return {one.probe: one for one in self.run.findings}

    def rows(self, probe: str) -> dict[str, dict[str, Any]]:
        """variant -> key -> row, of a probe; an unknown score is NaN. The key is the example's id, with a + more for
        each further trial of the example."""
        if probe not in self._kept:
            found: dict[str, dict[str, Any]] = {}
            keys: dict[int, str] = {}
            taken: set[str] = set()
            for row in self.run.table(probe, COLUMNS).to_pylist():
                if (key := keys.get(row["trial"])) is None:
                    key = row["example_id"]
                    while key in taken:
                        key += " +"
                    keys[row["trial"]] = key
                    taken.add(key)
                row.update({name: math.nan if row[name] is None else row[name] for name in ("score", "clean_score")})
                found.setdefault(row["variant"], {})[key] = row
            self._kept[probe] = found
        return self._kept[probe]

    def is_control(self, probe: str, variant: str) -> bool:
        """Whether a variant asks once more what another one asked."""
        return bool(next(iter(self.rows(probe)[variant].values()))["role"] == "control")

    def asks_again(self, probe: str, variant: str) -> bool:
        """Whether a variant asks the clean question once more; options in another order are another question."""
        if not self.is_control(probe, variant):
            return False
        clean, *rest = next(self.run.trials([("variant", "=", variant)], limit=1, probes=[probe]))
        row = next(one for one in rest if one["variant"] == variant)
        return all(row[name] == clean[name] for name in ("question", "choices"))


def read_runs(paths: Sequence[str | Path], label: str = "") -> tuple[list[Compared], list[str]]:
    """The runs, and the probes that all of them have. PfungstError where they cannot be compared.

    label: of a second reading that `pfungst.rescore` wrote; a run that was itself judged so needs none.
    Runs of exams must be on the same data set. Imported runs bring their questions with them, each its own: there the
    questions are told by their ids, and those with the same right answer are compared.
    """
    folders = [Path(path) for path in paths]
    if len(folders) < 2:
        raise PfungstError("Name two or more runs to compare.")
    for folder, count in Counter(folder.resolve() for folder in folders).items():
        if count > 1:
            raise PfungstError(f"{folder} is named {count} times: compare it with other runs.")
    found = [Run.open(folder) for folder in folders]
    names = [run.config["player"]["name"] for run in found]
    named = [
        name if names.count(name) == 1 else f"{name} ({folder.name})"
        for name, folder in zip(names, folders, strict=True)
    ]
    if len(set(named)) < len(named):
        named = [f"{name} ({folder})" for name, folder in zip(names, folders, strict=True)]
    runs = [Compared(_reading(run, label), name) for run, name in zip(found, named, strict=True)]
    first = runs[0]
    for other in runs[1:]:
        _check(first, other, label)
    shared = [probe for probe in first.probes if all(probe in other.probes for other in runs[1:])]
    if not shared:
        raise PfungstError(f"{' and '.join(str(folder) for folder in folders)} have no probe in common.")
    return runs, shared


def _reading(run: Run, label: str) -> Run:
    """The reading that is wanted, which may be the run's own."""
    if not label:
        return run
    if labelled(run.path / "trials", label).is_dir():
        return replace(run, label=label)
    metric, matcher = (file_name(name) for name in (run.config["data"]["metric"], run.config.get("matcher") or ""))
    if label in (metric, matcher, f"{metric}-{matcher}"):
        return run
    raise PfungstError(
        f"{run.path} has no reading {label!r}. Make it: `pfungst rescore {run.path} --metric METRIC`, or --matcher "
        "MATCHER."
    )


def _check(first: Compared, other: Compared, label: str) -> None:
    ours, theirs = first.run.config["data"], other.run.config["data"]
    if ours["metric"] != theirs["metric"] and (not label or label in MATCHERS.names()):
        metric = ours["metric"]
        raise PfungstError(
            f"The runs were scored by different metrics ({metric}, {theirs['metric']}). Judge both by one: `pfungst "
            f"rescore {other.path} --metric {metric}`, then compare with --label {file_name(metric)}."
        )
    imported = "logs" in first.run.config or "logs" in other.run.config
    if ours["fingerprint"] != theirs["fingerprint"] and not imported:
        raise PfungstError(
            f"The runs are on different data sets ({_described(ours)}; {_described(theirs)}): only answers to the same "
            "questions can be compared."
        )


def matchers_differ(runs: Sequence[Compared]) -> str:
    """That replies were read in different ways, in a sentence; empty where they were not, or need no reading."""
    named = dict.fromkeys(run.run.config.get("matcher") or "" for run in runs if run.run.label not in MATCHERS.names())
    names = [name for name in named if name]
    if len(names) < 2:
        return ""
    return (
        f"The replies were read by different matchers ({', '.join(names)}), which alone can make a difference. Read "
        f"all by one: `pfungst rescore RUN --matcher {names[0]}`, then compare with --label {names[0]}."
    )


def _described(data: Mapping[str, Any]) -> str:
    return f"{data.get('spec') or data['name']}, fingerprint {data['fingerprint'][:8]}"


def shared_ids(runs: Sequence[Compared], probe: str, variant: str) -> list[str]:
    """The examples that all runs have in a variant, with the same right answer. PfungstError where most of those with
    the same id have another one: then they are other questions."""
    rows = [run.rows(probe).get(variant, {}) for run in runs]
    both = [key for key in rows[0] if all(key in other for other in rows[1:])]
    ids = [key for key in both if _same([one[key]["target"] for one in rows])]
    if 2 * len(ids) < len(both):
        raise PfungstError(
            f"{runs[0].path} and the other runs are on different data sets: of {len(both):,} questions with the same "
            f"id {len(both) - len(ids):,} have another right answer."
        )
    return ids


def left_out(runs: Sequence[Compared], probe: str, variant: str) -> str:
    """How many questions are not compared, and why, in a sentence; empty where all are."""
    rows = [run.rows(probe).get(variant, {}) for run in runs]
    every, common = set().union(*rows), set(rows[0]).intersection(*rows[1:])
    compared = len(shared_ids(runs, probe, variant))
    why = [
        *([f"{len(every) - len(common):,} are not in all runs"] if len(common) < len(every) else []),
        *([f"{len(common) - compared:,} have another right answer in one of them"] if compared < len(common) else []),
    ]
    return f"{compared:,} of {len(every):,} questions are compared: {join_words(why)}." if why else ""


def cluster(rows: Sequence[Mapping[str, Any]]) -> str:
    """What one example belongs to, by the first run that names its image: not every log does."""
    return str(next((row["cluster"] for row in rows if row["image_id"]), rows[0]["cluster"]))


def _same(targets: Iterable[str | None]) -> bool:
    known = [target for target in targets if target is not None]
    return all(target == known[0] or same_answer(target, known[0]) for target in known[1:])


SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Pair:
    """Two runs on one column: the first minus the second."""

    first: int
    second: int
    difference: Finding
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
    scores: tuple[Interval | Finding, ...]
    """Of each run."""
    starts: tuple[Interval | Finding, ...]
    """The same run's clean score on the same examples; none in the clean column."""
    drops: tuple[Finding | None, ...]
    """From there to `scores`; none in the clean column."""
    pairs: tuple[Pair, ...]
    """None where the headline of the probe is no mean over its answers: there every run's own is shown."""
    ranks: tuple[float, ...]
    """Mean rank over images, 1 for the best; equals share theirs."""
    friedman: float
    """p-value of the Friedman test that the runs rank alike; NaN for two runs."""
    groups: tuple[tuple[int, ...], ...]
    """Runs of which no two differ significantly, by rank; the bars of a critical-difference diagram."""

    @property
    def n(self) -> str:
        """Over how many examples the scores are."""
        return ", ".join(f"{count:,}" for count in dict.fromkeys(one.n for one in self.scores))

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
        return bool(self.pairs) and self.role != "removes" and self.ties_with_best(at)


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
    headline: bool = False
    """Whether it is the headline of its probe, which stands in the findings."""


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
        paired = not one.headline or all(_is_headline(run, one) for run in runs)
        if (column := _column(runs, one) if paired else _own_headlines(runs, one)) is not None:
            found.append(column)
    progress("comparing", len(wanted), len(wanted))
    columns = [one for one in found if one.role != "control"]
    if not columns:
        raise PfungstError("The runs have no example with a known right answer in common.")
    controls = tuple(one for one in found if one.role == "control")
    said = [*notes(runs, [(one.probe, *one.variants) for one in columns])]
    if apart := [one.name for one in found if not one.pairs]:
        said.append(
            f"{'; '.join(apart)}: the headline of each run, as in its report, with its own interval. It is no mean "
            "over the answers that are compared here, so no paired difference is computed."
        )
    return Leaderboard(tuple(runs), tuple(columns), controls, tuple(said))


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
        if probe == "conditions":
            again = [name for name in rest if runs[0].is_control(probe, name)]
            for condition in dict.fromkeys(map(condition_of, names[1:])):
                takes = tuple(name for name in names[1:] if condition_of(name) == condition)
                role = "control" if takes[0] in again else about.role
                found.append(_Wanted(condition, probe, role, first, takes))
            continue
        again = [name for name in rest if runs[0].asks_again(probe, name)]
        rest = [name for name in rest if name not in again]
        measured = any(run.findings[probe].disturbed is not None for run in runs if probe in run.findings)
        is_control = about.role == "control"
        if again and (measured or not is_control):  # a record that was read twice is no control
            name = probe if is_control else f"{probe}, {join_words(again)}"
            found.append(_Wanted(name, probe, "control", first, tuple(again), is_control))
        headline = about.disturbed.condition if about.disturbed is not None else ""
        if rest:
            variants = (headline,) if headline in rest else tuple(rest)
            name = f"{probe}, {join_words(variants)}" if about.role == "removes" else probe
            found.append(_Wanted(name, probe, about.role, clean, variants, measured))
    return found


def column_scores(runs: Sequence[Compared], probe: str, variants: Sequence[str]) -> tuple[list[str], list[str], Floats]:
    """Examples, their clusters, and (runs, examples) scores: the mean over those variants that all runs have, of which
    the levels of one disturbance count as one, as in the headline of its probe."""
    ids: dict[str, list[str]] = {}
    for variant in variants:
        for key in shared_ids(runs, probe, variant):
            ids.setdefault(key, []).append(variant)
    rows = [run.rows(probe) for run in runs]
    values = np.array(
        [[_mean_score(row, key, having) for key, having in ids.items()] for row in rows], np.float64
    ).reshape(len(runs), len(ids))
    clusters = [cluster([row[having[0]][key] for row in rows]) for key, having in ids.items()]
    return list(ids), clusters, values


def _mean_score(rows: Mapping[str, Mapping[str, Any]], key: str, variants: Sequence[str]) -> float:
    headings: dict[str, list[float]] = {}
    for variant in variants:
        row = rows[variant][key]
        heading = variant if row["level"] is None else measure.heading_of(variant)
        headings.setdefault(heading, []).append(row["score"])
    return float(np.mean([np.mean(scores) for scores in headings.values()]))


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
    lost = [measure.difference("difference", values[first], values[second], clusters, 0) for first, second in twos]
    tests = [math.nan if one.p is None else one.p for one in lost]
    tested = zip(twos, lost, tests, holm(tests), strict=True)
    pairs = [Pair(*two, one, p, p_holm) for two, one, p, p_holm in tested]
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


def _is_headline(run: Compared, wanted: _Wanted) -> bool:
    """Whether the mean over the variants is what the findings of the run say, and so is what is lost to it."""
    ids, _, values = column_scores([run], wanted.probe, wanted.variants)
    about = run.findings.get(wanted.probe)
    if not ids or about is None or about.disturbed is None or about.drop is None:
        return False
    lost = np.array(_starts(run.rows(wanted.probe), wanted, ids)) - values[0]
    pairs = ((values[0], about.disturbed), (lost, about.drop))
    return all(_mean_is(some[~np.isnan(some)], finding) for some, finding in pairs)


def _mean_is(values: Floats, finding: Finding) -> bool:
    if not len(values):
        return math.isnan(finding.value)
    return len(values) == finding.n and math.isclose(float(values.mean()), finding.value, abs_tol=1e-9)


def _own_headlines(runs: Sequence[Compared], wanted: _Wanted) -> Column:
    """The headline of each run as its findings have it: how it comes about from the answers only its probe knows."""
    unknown = Finding("accuracy", math.nan, 0)
    found = [run.findings[wanted.probe] for run in runs if wanted.probe in run.findings]
    scores = tuple(one.disturbed or unknown for one in found)
    what = scores[0].name
    name = wanted.name if what == "accuracy" else f"{wanted.probe}, {what}"
    starts, drops = tuple(one.clean or unknown for one in found), tuple(one.drop for one in found)
    return Column(name, wanted.probe, (), wanted.role, scores, starts, drops, (), (), math.nan, ())


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


@dataclass(frozen=True, slots=True)
class Comparison:
    """One variant of one probe, answered by two players."""

    probe: str
    variant: str
    first: Interval
    second: Interval
    difference: Finding
    """First minus second, on the same examples."""
    p: float
    """Of the difference, by its interval."""
    p_holm: float
    """After Holm's correction over all rows of the table."""
    flips: Flips
    """From first to second."""


def compare(first: str | Path, second: str | Path, *, label: str = "") -> list[Comparison]:
    """Compare two runs over the probes, variants and examples that both have.

    label: of a second reading that `pfungst.rescore` wrote, in both runs or in the one that was not judged so at first.
    """
    runs, shared = read_runs([first, second], label)
    rows: list[Comparison] = []
    for probe in shared:
        # The clean answers are the same in every probe: one row, one test.
        rows += _compare_probe(probe, runs, skip="clean" if rows else "")
    if not rows:
        raise PfungstError(f"{first} and {second} have no example in common: are they runs on the same data set?")
    return [replace(row, p_holm=p) for row, p in zip(rows, holm([row.p for row in rows]), strict=True)]


def _repeats(rows: Mapping[str, Mapping[str, Any]], variant: str, ids: Sequence[str]) -> bool:
    """Whether the player said the same when it was asked again: that is the clean row once more, not another test."""
    clean = rows.get("clean", {})
    return variant != "clean" and all(
        key in clean and all(rows[variant][key][part] == clean[key][part] for part in ("answer", "score"))
        for key in ids
    )


def _compare_probe(probe: str, runs: Sequence[Compared], skip: str) -> list[Comparison]:
    first, second = (run.rows(probe) for run in runs)
    rows = []
    for variant in first:
        ids = shared_ids(runs, probe, variant)
        if not ids or variant == skip:
            continue
        if runs[0].is_control(probe, variant) and all(_repeats(one, variant, ids) for one in (first, second)):
            continue
        a, b = [first[variant][key] for key in ids], [second[variant][key] for key in ids]
        clusters = [cluster(both) for both in zip(a, b, strict=True)]
        scores = ([row["score"] for row in a], [row["score"] for row in b])
        said = ([Answer(row["answer"], unread=row["unread"]) for row in some] for some in (a, b))
        difference = measure.difference("difference", *scores, clusters, 0)
        p = math.nan if difference.p is None else difference.p
        rows.append(
            Comparison(
                probe,
                variant,
                interval_of(scores[0], clusters),
                interval_of(scores[1], clusters),
                difference,
                p,
                p,
                count_flips(*scores, list(map(alike, *said))),
            )
        )
    return rows
