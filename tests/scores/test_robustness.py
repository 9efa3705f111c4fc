"""R_score against the papers' tables, consensus against brute force."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pfungst.core import PfungstError
from pfungst.scores import consensus, consensus_of, r_score
from pfungst.scores.robustness import robustness

# Model: All accuracy, Original-dev and First-dev (Tables 2 of both papers), printed difference, printed R_score1
# (Table 1 of 000_6aeb5023d9830f50.txt, Table 4 of 002_fb7e146b8b7661da.txt).
PRINTED = {
    "LSTM Q+I": (58.02, 44.47, 13.55, 0.19),
    "HieCoAtt (Alt,VGG19)": (60.48, 54.63, 5.85, 0.48),
    "HieCoAtt (Alt,Resnet200)": (61.81, 55.22, 6.59, 0.45),
    "MUTAN without Attention": (60.16, 49.96, 10.20, 0.30),
    "MUTAN with Attention": (65.98, 56.85, 9.13, 0.34),
    "MLB with Attention": (65.79, 57.12, 8.67, 0.36),
}


@pytest.mark.parametrize("model", PRINTED)
def test_r_score_1_follows_from_the_accuracy_tables_to_the_printed_digit(model: str) -> None:
    clean, noisy, difference, printed = PRINTED[model]
    assert round(clean - noisy, 2) == difference
    assert round(r_score(clean, noisy), 2) == printed


def test_r_score_is_one_up_to_the_tolerance_and_zero_from_the_limit_on() -> None:
    assert r_score(60.0, 60.0) == r_score(60.0, 59.96) == 1.0
    assert r_score(60.0, 40.0) == r_score(60.0, 10.0) == 0.0


def test_r_score_by_hand() -> None:
    assert r_score(50.0, 46.0, t=1.0, m=9.0) == pytest.approx((3 - 2) / (3 - 1))


def test_a_gain_counts_like_a_loss() -> None:
    assert r_score(50.0, 55.0) == r_score(55.0, 50.0)


@given(st.floats(1, 100, exclude_min=True), st.floats(0, 100), st.floats(0, 100))
def test_a_larger_difference_never_scores_higher(clean: float, one: float, other: float) -> None:
    nearer, farther = sorted((one, other), key=lambda noisy: abs(clean - noisy))
    assert 0.0 <= r_score(clean, farther) <= r_score(clean, nearer) <= 1.0


@pytest.mark.parametrize(("clean", "noisy"), [(0.6, 0.5), (1.0, 0.0), (0.0, 0.4), (1, 1)])
def test_r_score_refuses_shares_of_one_and_says_percent(clean: float, noisy: float) -> None:
    """0.6 and 0.5 would lose a tenth of a point, and score 0.98."""
    with pytest.raises(PfungstError, match="in percent, such as 60 for 0.6"):
        r_score(clean, noisy)
    assert r_score(100 * clean, 100 * noisy) <= 1.0
    assert r_score(0.0, 0.0) == r_score(1.0, 1.04) == 1.0


def test_r_score_of_the_unknown_is_unknown() -> None:
    assert math.isnan(r_score(math.nan, 50.0))


@pytest.mark.parametrize(("t", "m"), [(20.0, 20.0), (-1.0, 20.0), (0.05, 101.0)])
def test_bad_parameters_are_an_error(t: float, m: float) -> None:
    with pytest.raises(PfungstError, match="0 <= t < m <= 100"):
        r_score(50.0, 40.0, t, m)


def test_accuracies_outside_percent_are_an_error() -> None:
    with pytest.raises(PfungstError, match="in percent"):
        r_score(150.0, 40.0)


def brute_force(correct: list[list[bool]], k: int) -> Fraction:
    """Eq. 2 and 3 as they stand: all subsets of size k of every group that has any."""
    shares = []
    for group in correct:
        subsets = list(combinations(group, k))
        if subsets:
            shares.append(Fraction(sum(all(subset) for subset in subsets), len(subsets)))
    return sum(shares, Fraction(0)) / len(shares)


HAND = [[True, True, True, False], [True, True, False, False], [True] * 4, [False] * 4]


@pytest.mark.parametrize(
    ("k", "score"),
    [
        (1, (3 / 4 + 2 / 4 + 1 + 0) / 4),
        (2, (3 / 6 + 1 / 6 + 1 + 0) / 4),
        (3, (1 / 4 + 0 + 1 + 0) / 4),
        (4, (0 + 0 + 1 + 0) / 4),
    ],
)
def test_consensus_by_hand(k: int, score: float) -> None:
    assert consensus(HAND, k) == pytest.approx(score)
    assert consensus(HAND, k) == float(brute_force(HAND, k))


@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=7), min_size=1, max_size=8), st.integers(1, 7))
def test_consensus_equals_brute_force_exactly(correct: list[list[bool]], k: int) -> None:
    if max(map(len, correct)) < k:
        assert math.isnan(consensus(correct, k))
    else:
        assert consensus(correct, k) == float(brute_force(correct, k))


def test_large_groups_are_exact() -> None:
    group = [True] * 600 + [False] * 400
    assert consensus([group], 500) == float(Fraction(math.comb(600, 500), math.comb(1000, 500)))


def test_groups_smaller_than_k_are_left_out_and_counted() -> None:
    found = consensus_of([[True, True], [True], [], [True, False, True]], 2)
    assert (found.groups, found.too_small) == (2, 2)
    assert found.score == pytest.approx((1 + 1 / 3) / 2)


def test_no_group_large_enough_gives_nan() -> None:
    assert math.isnan(consensus([[True]], 2))
    assert math.isnan(consensus([], 1))


def test_arrays_and_scores_are_taken_too() -> None:
    assert consensus(np.array(HAND), 2) == consensus(HAND, 2)
    scores = [[0.3 if one else 0.0 for one in group] for group in HAND]
    assert consensus(scores, 2) == consensus(HAND, 2)  # type: ignore[arg-type]


def test_larger_subsets_never_score_higher() -> None:
    scores = [consensus(HAND, k) for k in range(1, 5)]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("k", [0, -1, 1.5])
def test_k_must_be_a_whole_number_from_one_on(k: float) -> None:
    with pytest.raises(PfungstError, match="whole k from 1 on"):
        consensus(HAND, k)  # type: ignore[arg-type]


@pytest.mark.parametrize("correct", [[True, False], ["yes", "no"], 3, [[object()]]])
def test_anything_but_groups_of_booleans_is_an_error(correct: object) -> None:
    with pytest.raises(PfungstError, match="sequence of groups"):
        consensus(correct, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("unknown", [math.nan, None])
def test_an_unknown_correctness_is_an_error(unknown: float | None) -> None:
    with pytest.raises(PfungstError, match="NaN"):
        consensus([[unknown, True]], 1)  # type: ignore[list-item]


def test_k_may_be_a_whole_number_of_any_kind() -> None:
    assert consensus(HAND, np.int64(2)) == consensus(HAND, 2.0) == consensus(HAND, 2)  # type: ignore[arg-type]


@pytest.mark.parametrize(("n", "loss"), [(300, 0.0), (1000, 0.0), (1000, 0.01), (300, 0.1)])
def test_the_interval_of_r_score_holds_it_and_a_gate_passes_no_more_often_than_it_says(n: int, loss: float) -> None:
    """A tenth of the answers change at random; percentiles held a true R_score of 1 in 87 and 64 of 100 runs."""
    rng, truth = np.random.default_rng(n), r_score(100, 100 - 100 * loss)
    found = []
    for _ in range(200):
        fate = rng.choice(["lost", "won", "right", "wrong"], n, p=[0.05 + loss, 0.05, 0.6 - loss, 0.3])
        clean, noisy = (np.isin(fate, some).astype(float) for some in (["lost", "right"], ["won", "right"]))
        found.append(robustness(clean, noisy, np.arange(n) // 2))
    assert np.mean([one.score.low <= truth + 1e-9 and truth <= one.score.high + 1e-9 for one in found]) >= 0.93
    assert np.mean([one.score.at_least <= truth + 1e-9 for one in found]) >= 0.93
    if loss == 0:
        by_paper, corrected = (
            np.mean([value(one) for one in found]) for value in (lambda one: one.score.value, lambda one: one.corrected)
        )
        assert by_paper < 0.9 and corrected - by_paper > 0.4 * (1 - by_paper), "half of the bias is gone"
        assert np.mean([one.by_chance for one in found]) == pytest.approx(by_paper, abs=0.03)


def test_without_an_answer_that_changed_r_score_is_1_and_its_bound_is_what_the_images_allow() -> None:
    found = robustness(np.ones(60), np.ones(60), np.arange(60))
    assert found.score.value == found.corrected == found.by_chance == found.score.high == 1
    assert found.score.at_least == pytest.approx(r_score(100, 100 * 0.05 ** (1 / 60)))
    alone = robustness(np.ones(3), np.zeros(3), ["same"] * 3)
    assert alone.score.value == 0 and math.isnan(alone.score.low) and math.isnan(alone.by_chance)
