"""Agreement between people, against the package krippendorff and hand-worked cases."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pfungst.scores.reliability import reliability


def drawn(seed: int, people: int, items: int, values: int, missing: float) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, values, items)
    said = np.where(rng.random((people, items)) < 0.7, truth, rng.integers(0, values, (people, items)))
    there = rng.random((people, items)) >= missing
    return [[int(said[p, i]) for p in range(people) if there[p, i]] for i in range(items)]


@pytest.mark.parametrize(
    ("seed", "people", "items", "values", "missing"),
    [(0, 2, 10, 2, 0.0), (1, 3, 40, 3, 0.2), (2, 5, 100, 4, 0.5), (3, 10, 7, 6, 0.3), (4, 3, 30, 2, 0.7)],
)
def test_alpha_is_that_of_the_package(seed: int, people: int, items: int, values: int, missing: float) -> None:
    krippendorff = pytest.importorskip("krippendorff", reason="krippendorff is not installed")
    ratings = drawn(seed, people, items, values, missing)
    counts = np.array([[row.count(value) for value in range(values)] for row in ratings])
    oracle = krippendorff.alpha(value_counts=counts, level_of_measurement="nominal")
    assert reliability(ratings).alpha.value == pytest.approx(oracle, abs=1e-12)


def test_kappa_of_fleiss_own_example() -> None:
    """Fleiss 1971 as it is usually worked by hand: 10 subjects, 14 raters, 5 categories, kappa 0.210."""
    table = [
        [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
    ]  # fmt: skip
    ratings = [[value for value, count in enumerate(row) for _ in range(count)] for row in table]
    assert reliability(ratings).kappa.value == pytest.approx(0.20993, abs=1e-5)


def test_all_agree_is_one_and_one_answer_everywhere_is_unknown() -> None:
    assert reliability([["a", "a"], ["b", "b", "b"]]).alpha.value == 1.0
    assert reliability([["a", "a"], ["b", "b"]]).kappa.value == 1.0
    assert math.isnan(reliability([["a", "a"], ["a", "a"]]).alpha.value)
    assert math.isnan(reliability([["a", "a"], ["a", "a"]]).kappa.value)
    assert math.isnan(reliability([["a"], ["b"]]).alpha.value), "nobody can agree with themselves"


def test_the_interval_holds_the_value_and_shrinks() -> None:
    small, large = (reliability(drawn(5, 3, items, 3, 0.1)).alpha for items in (20, 400))
    for one in (small, large):
        assert one.low < one.value < one.high
    assert large.high - large.low < (small.high - small.low) / 2


def test_kappa_takes_the_most_frequent_number_of_answers() -> None:
    found = reliability([["a", "a", "a"], ["a", "b", "b"], ["b", "b", "b"], ["a", "b"], ["a"]])
    assert (found.kappa_answers, found.kappa.clusters, found.alpha.clusters) == (3, 3, 4)
    assert found.majority.value == pytest.approx((1 + 2 / 3 + 1 + 1 / 2) / 4)


def test_nothing_is_nothing() -> None:
    found = reliability([])
    assert math.isnan(found.alpha.value)
    assert math.isnan(found.kappa.value)
