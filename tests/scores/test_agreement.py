"""Judges against themselves and against people; accuracies corrected for a judge's errors."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.metrics import cohen_kappa_score

from pfungst.core.stats import Interval
from pfungst.scores.agreement import (
    Agreement,
    agreement,
    cohen_kappa,
    corrected_accuracy,
    corrected_drop,
    proportion,
    rogan_gladen,
)

PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=60)
UNKNOWN = Interval(math.nan, math.nan, math.nan, 0, 0, "")


def judged(called_right: int, right: int, called_wrong: int, wrong: int) -> Agreement:
    """A judge that called so many of the right answers right, and so many of the wrong ones wrong."""
    return Agreement(
        called_right, right - called_right, wrong - called_wrong, called_wrong, UNKNOWN, UNKNOWN,
        proportion(called_right, right), proportion(called_wrong, wrong),
    )  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(PAIRS)
def test_kappa_is_that_of_scikit_learn(pairs: list[tuple[bool, bool]]) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    found = cohen_kappa(first, second, range(len(pairs)))
    if len({*first, *second}) == 1:
        assert math.isnan(found.value) and math.isnan(found.low) and "undefined" in found.how
        return
    assert found.value == pytest.approx(cohen_kappa_score(first, second), abs=1e-12)
    assert -1 <= found.low <= found.value <= found.high <= 1 and found.low < found.high


def test_kappa_by_hand() -> None:
    # 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: agreement 0.7, by chance 0.5 * 0.6 + 0.5 * 0.4 = 0.5.
    pairs = [(True, True)] * 20 + [(True, False)] * 5 + [(False, True)] * 10 + [(False, False)] * 15
    assert cohen_kappa([a for a, _ in pairs], [b for _, b in pairs], range(50)).value == pytest.approx(0.4)


def test_perfect_agreement_is_not_certainty() -> None:
    found = cohen_kappa([True, False] * 10, [True, False] * 10, range(20))
    assert found.value == found.high == 1.0 and 0.5 < found.low < 1.0


def test_several_answers_about_one_image_make_the_interval_wider() -> None:
    first = [True, True, False, False] * 20
    second = [True, True, False, False] * 14 + [False, False, True, True] * 6
    alone = cohen_kappa(first, second, range(80))
    together = cohen_kappa(first, second, [n // 4 for n in range(80)])
    assert together.value == alone.value and together.high - together.low > 1.3 * (alone.high - alone.low)


@pytest.mark.parametrize(("hits", "n"), [(0, 7), (7, 7), (3, 10), (199, 200), (1, 1)])
def test_a_share_has_the_exact_interval_of_clopper_and_pearson(hits: int, n: int) -> None:
    found, oracle = proportion(hits, n), binomtest(hits, n).proportion_ci(0.95, "exact")
    assert (found.low, found.high) == (pytest.approx(oracle.low), pytest.approx(oracle.high))
    one_sided = binomtest(hits, n, alternative="greater").proportion_ci(0.95, "exact")
    assert found.at_least == pytest.approx(one_sided.low)


def test_agreement_counts_what_people_say_and_what_the_judge_calls_it() -> None:
    people = [True] * 10 + [False] * 8
    judge = [True] * 9 + [False] + [False] * 6 + [True] * 2
    found = agreement(judge, people, range(18))
    assert (found.right_called_right, found.right_called_wrong, found.wrong_called_right, found.wrong_called_wrong) == (
        9, 1, 2, 6,
    )  # fmt: skip
    assert (found.sensitivity.value, found.specificity.value, found.n) == (0.9, 0.75, 18)
    assert found.share.value == pytest.approx(15 / 18)
    with pytest.raises(ValueError, match="2 judgements but 1 labels"):
        agreement([True, True], [True], [1])


def test_labels_of_one_image_count_as_fewer() -> None:
    people, judge = [True] * 40 + [False] * 40, ([True] * 4 + [False]) * 8 + ([False] * 4 + [True]) * 8
    alone = agreement(judge, people, range(80))
    # Four labels of each image, all called alike: worth about one.
    ordered = sorted(judge[:40]) + sorted(judge[40:])
    together = agreement(ordered, people, [n // 4 for n in range(80)])
    assert together.sensitivity.value == alone.sensitivity.value == 0.8
    assert alone.worth_right == 1.0 and together.worth_right < 0.3
    assert together.sensitivity.low < alone.sensitivity.low - 0.1
    scores = [1.0] * 60 + [0.0] * 40
    wide, narrow = (corrected_accuracy(scores, range(100), one) for one in (together, alone))
    assert wide.high - wide.low > 1.2 * (narrow.high - narrow.low)


def test_rogan_gladen_by_hand() -> None:
    # Of 100 answers 70 are right: a judge with 0.9 and 0.8 calls 63 + 6 = 69 right.
    assert rogan_gladen(0.69, 0.9, 0.8) == pytest.approx(0.70)
    assert rogan_gladen(0.1, 0.9, 0.8) == 0.0 and rogan_gladen(0.99, 0.9, 0.8) == 1.0
    assert math.isnan(rogan_gladen(0.5, 0.5, 0.5)) and math.isnan(rogan_gladen(0.5, 0.2, 0.3))


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 50), st.integers(1, 50), st.integers(0, 50), st.integers(0, 50), st.lists(st.booleans(), min_size=2)
)
def test_a_corrected_accuracy_is_a_share_inside_its_interval_or_unknown(
    right: int, wrong: int, a: int, b: int, scores: list[bool]
) -> None:
    judge = judged(min(a, right), right, min(b, wrong), wrong)
    found = corrected_accuracy([float(one) for one in scores], range(len(scores)), judge)
    if judge.no_correction or "do not allow" in found.how:
        assert math.isnan(found.value) and math.isnan(found.low) and judge.no_correction in found.how
        return
    assert 0 <= found.low <= found.value <= found.high <= 1 and found.low < found.high
    assert found.low <= found.at_least <= found.value <= found.at_most <= found.high
    expected = rogan_gladen(sum(scores) / len(scores), judge.sensitivity.value, judge.specificity.value)
    assert found.value == pytest.approx(expected)


@settings(max_examples=30, deadline=None)
@given(PAIRS)
def test_a_perfect_judge_changes_no_accuracy_and_no_drop(pairs: list[tuple[bool, bool]]) -> None:
    judge = judged(500, 500, 500, 500)
    clean, disturbed = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    assert corrected_accuracy(clean, range(len(pairs)), judge).value == pytest.approx(np.mean(clean))
    drop = corrected_drop(clean, disturbed, range(len(pairs)), judge)
    assert drop.value == pytest.approx(np.mean(clean) - np.mean(disturbed), abs=1e-12)
    swapped = corrected_drop(disturbed, clean, range(len(pairs)), judge)
    assert swapped.value == pytest.approx(-drop.value, abs=1e-12)


def test_what_the_labels_do_not_allow_is_not_corrected() -> None:
    # Of right answers it calls three in ten right, and here 100 of 100.
    found = corrected_accuracy([1.0] * 100, range(100), judged(30, 100, 100, 100))
    assert math.isnan(found.value) and "do not allow what it said here" in found.how
    # Two of two may be: the interval says how little that means.
    few = corrected_accuracy([1.0] * 2, range(2), judged(30, 100, 100, 100))
    assert few.value == few.high == 1.0 and few.low < 0.6


def test_missing_judgements_are_left_out() -> None:
    judge = judged(90, 100, 80, 100)
    some, nan = [1.0, 0.0, 1.0, 1.0], math.nan
    assert corrected_accuracy([*some, nan], range(5), judge) == corrected_accuracy(some, range(4), judge)
    drop = corrected_drop([1.0, 1.0, nan, 0.0], [0.0, 1.0, 1.0, nan], range(4), judge)
    assert drop.n == 2 and drop.value == pytest.approx(0.5 / 0.7)


@pytest.mark.parametrize(
    ("judge", "why"),
    [
        (judged(50, 100, 50, 100), "add up to 1 or less"),
        (judged(10, 100, 20, 100), "add up to 1 or less"),
        (judged(3, 5, 3, 5), "too few to tell the judge from a coin"),
        (judged(9, 10, 0, 0), "none of the labelled answers is wrong"),
        (judged(0, 0, 9, 10), "none of the labelled answers is right"),
        (judged(90, 100, 90, 100), ""),
    ],
)
def test_where_nothing_can_be_corrected_it_says_why(judge: Agreement, why: str) -> None:
    assert why in judge.no_correction and bool(judge.no_correction) == bool(why)


@pytest.mark.parametrize(
    ("right", "sensitivity", "specificity", "n", "labels"),
    [(0.7, 0.95, 0.85, 200, 60), (0.9, 0.9, 0.8, 100, 150)],
)
def test_the_truth_lies_in_the_corrected_interval_at_least_about_as_often_as_it_says(
    right: float, sensitivity: float, specificity: float, n: int, labels: int
) -> None:
    rng = np.random.default_rng(7)
    tries, hit, hit_drop, drop = 200, 0, 0, 0.25 * right

    def call(truth: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
        return np.where(truth, rng.random(len(truth)) < sensitivity, rng.random(len(truth)) >= specificity)

    for _ in range(tries):
        clean = rng.random(n) < right
        disturbed = clean & (rng.random(n) < 0.75)
        known = rng.random(labels) < right
        called = call(known)
        judge = judged(
            int((known & called).sum()), int(known.sum()), int((~known & ~called).sum()), int((~known).sum())
        )
        if judge.no_correction:
            # The interval is then unknown: everything, which holds the truth.
            hit, hit_drop = hit + 1, hit_drop + 1
            continue
        said = [call(truth).astype(float).tolist() for truth in (clean, disturbed)]
        found = corrected_accuracy(said[0], range(n), judge)
        difference = corrected_drop(*said, range(n), judge)
        hit += found.low <= right <= found.high
        hit_drop += difference.low <= drop <= difference.high
    # Three standard errors of the simulation itself below 95%.
    least = 0.95 - 3 * math.sqrt(0.95 * 0.05 / tries)
    assert hit / tries >= least and hit_drop / tries >= least


def test_uncorrected_the_same_truth_would_be_missed() -> None:
    # What the correction is for: a lenient judge calls 87% right where 60% are.
    rng = np.random.default_rng(0)
    truth = rng.random(1000) < 0.6
    called = np.where(truth, rng.random(1000) < 0.98, rng.random(1000) < 0.7)
    plain = proportion(int(called.sum()), 1000)
    found = corrected_accuracy(called.astype(float).tolist(), range(1000), judged(98, 100, 30, 100))
    assert plain.low > 0.8 and found.low < 0.6 < found.high
