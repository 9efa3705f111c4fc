"""Selective prediction, calibration and failure prediction, against hand-worked cases and independent formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pfungst.core import PfungstError
from pfungst.scores import (
    augrc,
    best_threshold,
    calibration_error,
    failure_scores,
    risk_coverage,
)

ANSWERS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]), st.sampled_from([0.0, 1.0])), min_size=1, max_size=40
)


def test_the_curve_goes_from_the_surest_answers_to_all() -> None:
    curve = risk_coverage([0.9, 0.2, 0.6, 0.8], [1, 0, 1, 0])
    assert curve.threshold.tolist() == [0.9, 0.8, 0.6, 0.2]
    assert curve.coverage.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert curve.risk.tolist() == pytest.approx([0, 1 / 2, 1 / 3, 1 / 2])


def test_equal_confidences_are_accepted_together() -> None:
    curve = risk_coverage([0.5, 0.5, 0.9], [1, 0, 1])
    assert curve.coverage.tolist() == pytest.approx([1 / 3, 1])
    assert curve.risk.tolist() == pytest.approx([0, 1 / 3])


def test_unknown_scores_and_confidences_are_left_out() -> None:
    assert len(risk_coverage([0.5, math.nan, 0.9], [1, 0, math.nan]).coverage) == 1
    assert math.isnan(augrc([], []))


def _auroc(confidence: np.ndarray, correct: np.ndarray) -> float:
    right, wrong = confidence[correct > 0], confidence[correct == 0]
    pairs = (right[:, None] > wrong[None]) + 0.5 * (right[:, None] == wrong[None])
    return float(pairs.mean()) if pairs.size else 1.0


@given(ANSWERS)
@settings(max_examples=60, deadline=None)
def test_augrc_follows_from_auroc_and_accuracy(answers: list[tuple[float, float]]) -> None:
    confidence, correct = (np.array(one) for one in zip(*answers, strict=True))
    accuracy = correct.mean()
    expected = (1 - _auroc(confidence, correct)) * accuracy * (1 - accuracy) + (1 - accuracy) ** 2 / 2
    assert augrc(confidence, correct) == pytest.approx(expected, abs=1e-12)


@given(ANSWERS, st.sampled_from([0.0, 0.01, 0.05, 0.1, 0.5, 1.0]))
@settings(max_examples=60, deadline=None)
def test_coverage_at_risk_is_the_best_threshold_there_is(answers: list[tuple[float, float]], risk: float) -> None:
    confidence, correct = (np.array(one) for one in zip(*answers, strict=True))
    every = [confidence >= threshold for threshold in np.unique(confidence)]
    allowed = [kept.mean() for kept in every if 1 - correct[kept].mean() <= risk + 1e-12]
    assert risk_coverage(confidence, correct).coverage_at(risk) == pytest.approx(max(allowed, default=0.0))


def test_a_risk_is_a_share() -> None:
    with pytest.raises(PfungstError, match="between 0 and 1"):
        risk_coverage([0.5], [1.0]).coverage_at(5)


def test_calibration_error_is_the_gap_weighted_by_the_bins() -> None:
    # bin [0.2, 0.4): confidences 0.25 and 0.35, one right: |0.5 - 0.3|; bin [0.8, 1]: 0.9 and 1.0, both right: 0.05
    assert calibration_error([0.25, 0.35, 0.9, 1.0], [1, 0, 1, 1], bins=5) == pytest.approx(0.5 * 0.2 + 0.5 * 0.05)
    assert calibration_error([0.7] * 10, [1] * 7 + [0] * 3) == pytest.approx(0.0)
    with pytest.raises(PfungstError, match="probabilities"):
        calibration_error([1.5], [1])


def test_precision_recall_and_f1_of_what_is_believed() -> None:
    found = failure_scores([True, True, False, True], [1.0, 0.0, 0.3, 0.6])
    assert (found.precision, found.recall, found.n) == (pytest.approx(2 / 3), pytest.approx(2 / 3), 4)
    assert found.f1 == pytest.approx(2 / 3)
    assert math.isnan(failure_scores([False], [0.0]).precision)


@given(ANSWERS)
@settings(max_examples=60, deadline=None)
def test_no_threshold_has_a_higher_f1_than_the_best(answers: list[tuple[float, float]]) -> None:
    confidence, correct = (np.array(one) for one in zip(*answers, strict=True))
    best = best_threshold(confidence, correct)

    def f1(threshold: float) -> float:
        value = failure_scores((confidence >= threshold).tolist(), correct.tolist()).f1
        return 0.0 if math.isnan(value) else value

    assert f1(best) == pytest.approx(max(f1(threshold) for threshold in confidence))
