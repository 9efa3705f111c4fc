"""Does a player know when it is wrong? Selective prediction, calibration, and failure prediction.

A player that may keep silent answers only where its confidence is at least some threshold. Coverage is the share it
answers, risk the share of those that is wrong. Answers of equal confidence are accepted together: no order among them
is made up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pfungst.core import PfungstError
from pfungst.core.stats import Floats

RISKS = (0.01, 0.05, 0.1)
"""At which risks coverage is told."""
BINS = 15


@dataclass(frozen=True)
class RiskCoverage:
    """The risk-coverage curve, one point a distinct confidence, from the surest answers to all."""

    threshold: Floats
    coverage: Floats
    """Share of the questions with at least this confidence."""
    risk: Floats
    """Mean loss (1 - score) of those."""

    @property
    def augrc(self) -> float:
        """Area under the generalised risk-coverage curve (Traub et al. 2024): coverage * risk over coverage.

        Lower is better; the mean risk of silent failures. Equals (1 - AUROC) a (1 - a) + (1 - a)^2 / 2 for right/wrong
        scores with accuracy a.
        """
        x = np.concatenate([[0.0], self.coverage])
        y = np.concatenate([[0.0], self.coverage * self.risk])
        return float(((x[1:] - x[:-1]) * (y[1:] + y[:-1]) / 2).sum()) if len(self.coverage) else math.nan

    def coverage_at(self, risk: float) -> float:
        """The largest coverage whose risk is not above `risk`; 0 where there is none."""
        if not 0 <= risk <= 1:
            raise PfungstError(f"A risk is a share between 0 and 1, not {risk}.")
        if not len(self.coverage):
            return math.nan
        allowed = self.coverage[self.risk <= risk + 1e-12]
        return float(allowed.max()) if len(allowed) else 0.0


def risk_coverage(confidence: Sequence[float] | Floats, correct: Sequence[float] | Floats) -> RiskCoverage:
    """The curve of answers with a confidence and a score in [0, 1] each; NaN in either is left out."""
    sure, right, last = _surest_first(confidence, correct)
    accepted = last + 1.0
    return RiskCoverage(sure[last], accepted / max(1, len(sure)), np.cumsum(1.0 - right)[last] / accepted)


def augrc(confidence: Sequence[float] | Floats, correct: Sequence[float] | Floats) -> float:
    """Area under the generalised risk-coverage curve; see `RiskCoverage.augrc`."""
    return risk_coverage(confidence, correct).augrc


def calibration_error(
    confidence: Sequence[float] | Floats, correct: Sequence[float] | Floats, bins: int = BINS
) -> float:
    """Expected calibration error: sum over bins of (share of the answers) * |mean score - mean confidence|.

    Bins are equally wide over [0, 1].
    """
    sure, right = _pairs(confidence, correct)
    if not len(sure):
        return math.nan
    if bins < 1:
        raise PfungstError(f"Calibration needs at least one bin, not {bins}.")
    if sure.min() < 0 or sure.max() > 1:
        raise PfungstError("Calibration needs confidences that are probabilities, between 0 and 1.")
    place = np.minimum((sure * bins).astype(np.int64), bins - 1)
    gap = np.bincount(place, weights=right - sure)
    return float(np.abs(gap).sum() / len(sure))


@dataclass(frozen=True)
class FailureScores:
    """How well "this answer is right" was told, as in Table 4 of Cycle-Consistency for Robust VQA."""

    precision: float
    recall: float
    f1: float
    n: int


def failure_scores(believed: Sequence[bool], correct: Sequence[float]) -> FailureScores:
    """Precision, recall and F1 of answers `believed` to be right; right is a score above 0, as in the paper's CS(k)."""
    said, true = np.asarray(believed, bool), np.asarray(correct, np.float64) > 0
    if said.shape != true.shape:
        raise PfungstError(f"{len(said)} predictions but {len(true)} answers.")
    hits = int((said & true).sum())
    precision = hits / int(said.sum()) if said.any() else math.nan
    recall = hits / int(true.sum()) if true.any() else math.nan
    both = int(said.sum()) + int(true.sum())
    return FailureScores(precision, recall, 2 * hits / both if both else math.nan, len(said))


def best_threshold(confidence: Sequence[float] | Floats, correct: Sequence[float] | Floats) -> float:
    """The confidence from which on answers are best believed: the highest F1; of equals the highest threshold.

    Choose it on other data than it is judged on.
    """
    sure, right, last = _surest_first(confidence, correct)
    if not len(sure):
        return math.nan
    true = right > 0
    f1 = 2 * np.cumsum(true)[last] / (last + 1 + max(1, int(true.sum())))
    return float(sure[last[int(f1.argmax())]])


def _surest_first(
    confidence: Sequence[float] | Floats, correct: Sequence[float] | Floats
) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    """Confidences and scores, the surest answers first, and the place of the last answer of each confidence."""
    sure, right = _pairs(confidence, correct)
    order = np.argsort(-sure, kind="stable")
    sure, right = sure[order], right[order]
    last = np.flatnonzero(np.append(sure[1:] != sure[:-1], True)) if len(sure) else np.zeros(0, np.int64)
    return sure, right, last


def _pairs(confidence: Sequence[float] | Floats, correct: Sequence[float] | Floats) -> tuple[Floats, Floats]:
    sure, right = np.asarray(confidence, np.float64), np.asarray(correct, np.float64)
    if sure.shape != right.shape or sure.ndim != 1:
        raise PfungstError(f"There must be one confidence per answer: {sure.shape} confidences, {right.shape} scores.")
    known = ~(np.isnan(sure) | np.isnan(right))
    sure, right = sure[known], right[known]
    if len(right) and (right.min() < 0 or right.max() > 1):
        raise PfungstError("Scores of answers lie between 0 and 1.")
    return sure, right
