"""The noise probe: ranked basic questions appended to the main question, seven levels of noise.

A Novel Framework for Robustness Analysis; Assessing the Robustness of VQA. The hypothesis: the less similar the
appended questions, the larger the noise, so accuracy should fall from the first partition to the last; R_score (Eq. 8)
says how little it falls at the first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from pfungst.core import (
    AnsweredTrial,
    Dataset,
    Figure,
    Finding,
    Findings,
    Probe,
    Progress,
    Table,
    Trial,
    UsageError,
    Variant,
)
from pfungst.core.stats import compare_paired, holm, interval_of
from pfungst.core.types import POINTS
from pfungst.probes import measure
from pfungst.probes.noise.cache import check_rankable, rank_for, rankers_of
from pfungst.probes.noise.partitions import PARTITIONS, append, partition_names, split
from pfungst.probes.noise.ranking import GAP, LAMBDA, TOP_K
from pfungst.scores.robustness import robustness

SURE = 0.05
"""Of the corrected p-value of a pair of partitions, for its order to be certain."""
KEEPS = "the answer: the main question stands unchanged at the front, and the questions after it ask for nothing new"
TYPES = (("other", "Other"), ("number", "Num"), ("yes/no", "Y/N"))


@dataclass(frozen=True)
class Noise(Probe):
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
    corrected: Finding
    fall: Finding
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
            *_robustness(variants[0], trials),
            *_order(ranker, variants, trials),
            [gap for gap in gaps if gap is not None],
        )

    def findings(self) -> tuple[Finding, ...]:
        shape = (self.robustness, self.corrected, self.fall, self.trend, self.inversions)
        return (*self.levels, *self.drops, *shape)


def _robustness(first: str, trials: Sequence[AnsweredTrial]) -> tuple[Finding, Finding]:
    """R_score as in the papers, and corrected for chance; both with the interval of the first."""
    found = robustness(measure.scores(trials, "clean"), measure.scores(trials, first), measure.clusters(trials))
    note = f"A player that loses nothing would score {found.by_chance:.2f} on these questions, by chance."
    score = replace(measure.finding("R_score", found.score, first, unit=""), note=note)
    how = f"loss less what chance adds to it; {score.how}"
    return score, replace(score, name="R_score corrected", value=found.corrected, how=how, note="")


def _order(ranker: str, variants: Sequence[str], trials: Sequence[AnsweredTrial]) -> tuple[Finding, Finding, Finding]:
    """Change of accuracy per level, rank correlation of level and accuracy, and inversions.

    The last two count pairs of levels, most of which no run can tell apart: the interval has every order of a pair that
    is not certain, so that it holds the order of the true accuracies.
    """
    columns = np.asarray([measure.scores(trials, name) for name in variants])
    columns[:, np.isnan(columns).any(0)] = np.nan
    clusters = measure.clusters(trials)
    places = np.arange(len(columns)) - (len(columns) - 1) / 2
    weights = (
        places / float(places @ places) if len(places) > 1 else np.array([math.nan])
    )  # of one level nothing is known
    most = float(np.abs(weights).sum()) / 2
    fall = interval_of(weights @ columns, clusters, bounds=(-most, most))
    about = f"{ranker}: partition and accuracy"
    found = measure.finding("change per level", fall, about, unit=POINTS)
    pairs = [compare_paired(columns[b], columns[a], clusters) for a, b in combinations(range(len(columns)), 2)]
    certain = np.array(holm([one.p for one in pairs])) < SURE
    values = np.array([one.value for one in pairs])
    signs = np.where(np.abs(values) > measure.TINY, np.sign(values), 0 * values)
    rises, falls = (np.where(certain, signs == sign, False).sum() for sign in (1, -1))
    how = f"order of the {len(pairs)} pairs, each certain where its p is below {SURE} after Holm"

    def counted(name: str, value: float, low: float, high: float, condition: str) -> Finding:
        if math.isnan(fall.low) or not pairs:
            low = high = math.nan
        return replace(
            found, name=name, value=value, low=low, high=high, at_least=low, at_most=high, condition=condition, how=how,
            p=None, unit="",
        )  # fmt: skip

    count, unknown = max(1, len(pairs)), bool(np.isnan(values).any())
    tau = float(signs.mean()) if pairs else math.nan
    risen = math.nan if unknown else float((signs > 0).sum())
    return (
        found,
        counted("rank correlation", tau, 2 * rises / count - 1, 1 - 2 * falls / count, about),
        counted("inversions", risen, float(rises), float(len(pairs) - falls), f"{ranker}: of {len(pairs)} pairs"),
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
        ("ranker", "First", "Last", "R_score", "change per level", "rank correlation", "inversions"),
        tuple((c.ranker, c.levels[0], c.levels[-1], c.robustness, c.fall, c.trend, c.inversions) for c in curves),
        "Rank correlation of partition number and accuracy: -1 where every noisier partition is less accurate.",
    )


def _row(trials: Sequence[AnsweredTrial], variant: str, seed: int, lost: Finding | None) -> tuple[object, ...]:
    cells: list[object] = ["Original" if variant == "clean" else variant]
    kinds = measure.by_kind(trials, "answer_type")
    for kind, _ in TYPES:
        some = kinds.get(kind)
        cells.append(measure.accuracy(some, variant, seed) if some else "–")
    return (*cells, measure.accuracy(trials, variant, seed), lost if lost is not None else "–")


def _figures(clean: Finding, curves: Sequence[_Curve]) -> tuple[Figure, ...]:
    names = partition_names(len(curves[0].levels))
    accuracy = tuple(measure.series(curve.ranker, ("MQ only", *names), (clean, *curve.levels)) for curve in curves)
    decrement = tuple(measure.series(curve.ranker, names, curve.drops) for curve in curves)
    return (
        Figure("Accuracy by noise level", "line", accuracy, "partition", "accuracy"),
        Figure("Accuracy decrement by noise level", "line", decrement, "partition", "decrement, points", POINTS),
    )


def _verdict(probe: Noise, clean: Finding, curve: _Curve) -> str:
    effective = "falls" if curve.fall.high < 0 else "does not clearly fall"
    score, lost = curve.robustness, curve.drops[0]
    ends = "" if math.isnan(score.low) else f" [{score.low:.2f}, {score.high:.2f}]"
    told = (
        f"With the {probe.k // probe.partitions} most similar questions of the pool appended, accuracy goes from "
        f"{measure.percent(clean.value)} to {measure.percent(curve.levels[0].value)}, a drop of "
        f"{measure.with_interval(lost)}; R_score {score.value:.2f}{ends}, {curve.corrected.value:.2f} corrected for "
        f"chance. {score.note}"
    )
    if math.isnan(curve.fall.value):
        return told
    return (
        f"{told} Over the {probe.partitions} levels accuracy {effective} with the noise level "
        f"({measure.with_interval(curve.fall)} per level; rank correlation {curve.trend.value:.2f})."
    )
