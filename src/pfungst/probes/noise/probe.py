"""The noise probe: ranked basic questions appended to the main question, seven levels of noise.

A Novel Framework for Robustness Analysis; Assessing the Robustness of VQA. The hypothesis: the less similar the
appended questions, the larger the noise, so accuracy should fall from the first partition to the last; R_score (Eq. 8)
says how little it falls at the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pfungst.core import (
    AnsweredTrial,
    Dataset,
    Figure,
    Finding,
    Findings,
    Progress,
    Table,
    Trial,
    UsageError,
    Variant,
)
from pfungst.core.stats import Floats, bootstrap_means
from pfungst.core.types import POINTS
from pfungst.probes import measure
from pfungst.probes.noise.cache import check_rankable, rank_for, rankers_of
from pfungst.probes.noise.partitions import PARTITIONS, append, partition_names, split
from pfungst.probes.noise.ranking import GAP, LAMBDA, TOP_K
from pfungst.scores import r_score

KEEPS = "the answer: the main question stands unchanged at the front, and the questions after it ask for nothing new"
TYPES = (("other", "Other"), ("number", "Num"), ("yes/no", "Y/N"))


@dataclass(frozen=True)
class Noise:
    """Basic questions appended to the question, 7 partitions of 3: accuracy per noise level, R_score."""

    ranker: str = "lasso"
    """lasso, cosine, bleu1 .. bleu4, rouge, cider, meteor, or a third party's; several with + to compare them."""
    encoder: str = ""
    """Encoder of `lasso` and `cosine`; empty for the embedded default."""
    pool: str = ""
    """Data set (or text file, one question per line) whose questions are ranked; empty: the whole examined data set."""
    pool_type: str = "all"
    """`all` (GBQD) or `yes/no` (YNBQD)."""
    pool_limit: int = 0
    """Only the first N questions of the pool; 0: all. A limit on the exam does not make the pool smaller."""
    ranked: str = ""
    """A basic question dataset written by `pfungst rank`, to use instead of ranking."""
    k: int = TOP_K
    partitions: int = PARTITIONS
    words: int = 0
    """Cut the question after this many words (26 in the papers); 0: never."""
    lam: float = LAMBDA
    tol: float = GAP
    keep_main_questions: bool = False
    """Leave a main question in its own pool: no preprocessing, as in Table 8 of the journal paper."""
    name: str = "noise"

    def check_data(self, data: Dataset) -> None:
        if self.partitions < 1 or self.k < self.partitions:
            raise UsageError(f"{self.k} basic questions cannot make {self.partitions} partitions.")
        check_rankable(self, data)

    def prepare(self, data: Dataset, seed: int, progress: Progress) -> None:
        """Rank the pool."""
        rank_for(self, data, progress)

    def trials(self, data: Dataset, seed: int) -> Iterator[Trial]:
        self.check_data(data)
        rankings = rank_for(self, data)
        for number, example in enumerate(data.originals):
            query = measure.clean_query(example)
            variants = [Variant("clean", query)]
            notes: dict[str, object] = {}
            for ranker, rows in zip(self._rankers(), rankings, strict=True):
                notes[ranker] = {"scores": rows[number].scores, "gap": rows[number].gap}
                parts = split(rows[number].questions, self.partitions)
                for level, (name, basic) in enumerate(zip(self._variants(ranker), parts, strict=True), 1):
                    noisy = replace(query, question=append(example.question, basic, self.words))
                    variants.append(Variant(name, noisy, level=level))
            yield Trial(example.id, tuple(variants), KEEPS, notes)

    def findings(self, trials: Sequence[AnsweredTrial], seed: int) -> Findings:
        clean = measure.accuracy(trials, "clean", seed)
        curves = [_Curve.of(ranker, self._variants(ranker), trials, seed) for ranker in self._rankers()]
        # Holm over all partitions of all rankers: one family.
        family = iter(measure.corrected([one for curve in curves for one in curve.drops]))
        curves = [replace(curve, drops=[next(family) for _ in curve.drops]) for curve in curves]
        first = curves[0]
        tables = [_partition_table(curve, trials, self.pool_type, seed) for curve in curves]
        if len(curves) > 1:
            tables.append(_ranker_table(curves))
        return Findings(
            self.name,
            (clean, *(one for curve in curves for one in curve.findings())),
            _verdict(self, clean, first), clean, first.levels[0], first.drops[0],
            tuple(tables), _figures(clean, curves), measure.worst(trials, "clean", first.variants[0]),
        )  # fmt: skip

    def _rankers(self) -> list[str]:
        # A ranking that was given is one ranking, whoever made it.
        return rankers_of(self)[:1] if self.ranked else rankers_of(self)

    def _variants(self, ranker: str) -> list[str]:
        prefix = f"{ranker} " if len(self._rankers()) > 1 else ""
        return [prefix + name for name in partition_names(self.partitions)]


@dataclass(frozen=True)
class _Curve:
    """Accuracy over the noise levels of one ranker."""

    ranker: str
    variants: list[str]
    levels: list[Finding]
    drops: list[Finding]
    robustness: Finding
    trend: Finding
    inversions: Finding
    gaps: list[float]

    @classmethod
    def of(cls, ranker: str, variants: list[str], trials: Sequence[AnsweredTrial], seed: int) -> _Curve:
        gaps = [(one.trial.notes.get(ranker) or {}).get("gap") for one in trials]
        return cls(
            ranker,
            variants,
            [measure.accuracy(trials, name, seed) for name in variants],
            [measure.drop(trials, "clean", name, seed) for name in variants],
            *_shape(ranker, variants, trials, seed),
            [gap for gap in gaps if gap is not None],
        )

    def findings(self) -> tuple[Finding, ...]:
        return (*self.levels, *self.drops, self.robustness, self.trend, self.inversions)


def _shape(
    ranker: str, variants: Sequence[str], trials: Sequence[AnsweredTrial], seed: int
) -> tuple[Finding, Finding, Finding]:
    """R_score, rank correlation of partition and accuracy, and inversions, with intervals by cluster bootstrap."""
    columns = np.asarray([measure.scores(trials, name) for name in ("clean", *variants)])
    known = ~np.isnan(columns).any(0)
    groups = len({cluster for cluster, keep in zip(measure.clusters(trials), known, strict=True) if keep})
    means = columns[:, known].mean(1) if known.any() else np.full(len(columns), np.nan)
    draws = bootstrap_means(columns, measure.clusters(trials), seed=seed)

    def interval(name: str, statistic: Callable[[Floats], float], what: str) -> Finding:
        resampled = np.asarray([statistic(row) for row in draws])
        unknown = bool(np.isnan(resampled).any())
        low, at_least, at_most, high = (
            (float("nan"),) * 4 if unknown else map(float, np.quantile(resampled, [0.025, 0.05, 0.95, 0.975]))
        )
        value = statistic(means)
        n = int(known.sum())
        return Finding(name, value, n, low, high, what, groups, None, "cluster bootstrap", "", at_least, at_most)

    pairs = len(variants) * (len(variants) - 1) // 2
    return (
        interval("R_score", lambda row: _robustness(row[0], row[1]), variants[0]),
        interval("rank correlation", lambda row: _kendall(row[1:]), f"{ranker}: partition and accuracy"),
        interval("inversions", lambda row: _inversions(row[1:]), f"{ranker}: of {pairs} pairs"),
    )


def _partition_table(curve: _Curve, trials: Sequence[AnsweredTrial], pool_type: str, seed: int) -> Table:
    note = "Layout of the papers' Table 2. The ranking is effective if accuracy falls from the first to the last row."
    if curve.gaps:
        note += f" Certified duality gap: median {np.median(curve.gaps):.1e}, largest {max(curve.gaps):.1e}."
    rows = [_row(trials, name, seed, lost) for name, lost in zip(curve.variants, curve.drops, strict=True)]
    return Table(
        f"Accuracy by partition ({curve.ranker}, pool: {pool_type})",
        ("partition", *(label for _, label in TYPES), "All", "diff (All)"),
        (*rows, _row(trials, "clean", seed, None)),
        note,
    )


def _ranker_table(curves: Sequence[_Curve]) -> Table:
    return Table(
        "Which ranking is effective?",
        ("ranker", "First", "Last", "R_score", "rank correlation", "inversions"),
        tuple((c.ranker, c.levels[0], c.levels[-1], c.robustness, c.trend, c.inversions) for c in curves),
        "Rank correlation of partition number and accuracy: -1 where every noisier partition is less accurate.",
    )


def _row(trials: Sequence[AnsweredTrial], variant: str, seed: int, lost: Finding | None) -> tuple[object, ...]:
    cells: list[object] = ["Original" if variant == "clean" else variant]
    kinds = measure.by_kind(trials, "answer_type")
    for kind, _ in TYPES:
        some = kinds.get(kind)
        cells.append(measure.accuracy(some, variant, seed) if some else "–")
    return (*cells, measure.accuracy(trials, variant, seed), lost if lost is not None else "–")


def _robustness(clean: float, noisy: float) -> float:
    # A mean of ones may come out a rounding error above 1, which R_score would refuse.
    return r_score(min(100.0, 100 * clean), min(100.0, 100 * noisy))


def _pairs(accuracies: Floats) -> Floats:
    first, second = np.triu_indices(len(accuracies), 1)
    return np.asarray(np.sign(accuracies[second] - accuracies[first]))


def _inversions(accuracies: Floats) -> float:
    """Pairs of partitions in which the noisier one is more accurate."""
    return float("nan") if np.isnan(accuracies).any() else float((_pairs(accuracies) > 0).sum())


def _kendall(accuracies: Floats) -> float:
    """Kendall's tau-a of partition number and accuracy: -1 for a perfectly effective ranking."""
    if np.isnan(accuracies).any() or len(accuracies) < 2:
        return float("nan")
    return float(_pairs(accuracies).mean())


def _figures(clean: Finding, curves: Sequence[_Curve]) -> tuple[Figure, ...]:
    names = partition_names(len(curves[0].levels))
    accuracy = tuple(measure.series(curve.ranker, ("MQ only", *names), (clean, *curve.levels)) for curve in curves)
    decrement = tuple(measure.series(curve.ranker, names, curve.drops) for curve in curves)
    return (
        Figure("Accuracy by noise level", "line", accuracy, "partition", "accuracy"),
        Figure("Accuracy decrement by noise level", "line", decrement, "partition", "decrement, points", POINTS),
    )


def _verdict(probe: Noise, clean: Finding, curve: _Curve) -> str:
    trend = curve.trend
    if trend.high < 0:
        effective = "falls with the noise level"
    else:
        effective = "does not clearly fall with the noise level"
    return (
        f"With the {probe.k // probe.partitions} most similar questions of the pool appended, accuracy goes from "
        f"{measure.percent(clean.value)} to {measure.percent(curve.levels[0].value)}, a drop of "
        f"{measure.with_interval(curve.drops[0])}; R_score {curve.robustness.value:.2f}. Over the {probe.partitions} "
        f"levels accuracy {effective} (rank correlation {trend.value:.2f})."
    )
