"""Intervals over people and items: how often they hold the truth, and what few people can show."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from pfungst.core.stats import Interval
from pfungst.scores.reliability import FEWEST, over_people, reliability

Said = tuple[int, float]


def mean(items: Sequence[Sequence[Said]]) -> Interval:
    return over_people(items, lambda said: (sum(right for _, right in said), len(said)), lambda one: one[0])


def answers(rng: np.random.Generator, people: int, items: int, apart: float, each: int = 3) -> list[list[Said]]:
    """Items that three people answer; how good people are, and how easy items, differs by `apart`."""
    skill, ease = rng.normal(0, apart, people), rng.normal(0.8, 0.5, items)
    return [
        [(int(who), float(rng.random() < 1 / (1 + math.exp(-skill[who] - here)))) for who in some]
        for here in ease
        for some in [rng.choice(people, each, replace=False)]
    ]


@pytest.mark.parametrize(("people", "items", "apart"), [(6, 30, 1.0), (12, 40, 1.0), (10, 50, 0.0)])
def test_the_interval_holds_the_truth_over_other_people_and_other_items(people: int, items: int, apart: float) -> None:
    rng = np.random.default_rng(people)
    truth = float(np.mean(1 / (1 + np.exp(-rng.normal(0, apart, 10**6) - rng.normal(0.8, 0.5, 10**6)))))
    found = [mean(answers(rng, people, items, apart)) for _ in range(150)]
    assert np.mean([one.low <= truth <= one.high for one in found]) >= 0.93
    assert np.mean([one.high - one.low for one in found]) < 0.45, "wide enough is no merit without a limit"


def test_other_items_do_not_make_up_for_few_people() -> None:
    rng = np.random.default_rng(0)
    few, many = (mean(answers(rng, people, 300, 1.5)) for people in (6, 60))
    assert few.high - few.low > 2 * (many.high - many.low)


def test_below_five_people_there_is_no_interval_and_it_is_said() -> None:
    rng = np.random.default_rng(1)
    for people in range(2, FEWEST):
        found = mean(answers(rng, people, 15, 1.0, each=2))
        assert math.isnan(found.low) and math.isnan(found.high) and not math.isnan(found.value)
        assert found.how.startswith(f"No interval over people can be given: {people} took part")
    assert not math.isnan(mean(answers(rng, FEWEST, 15, 1.0, each=2)).low)


def test_two_people_who_never_agree_have_no_interval_of_kappa() -> None:
    found = reliability([["a", "b"], ["b", "a"]] * 4, [["ann", "bob"]] * 8)
    assert found.kappa.value == pytest.approx(-1) and math.isnan(found.kappa.low)
    several = reliability([["a", "b"], ["b", "a"]] * 4, [[n, n + 8] for n in range(8)])
    assert several.kappa.low == pytest.approx(-1) and several.kappa.high > -0.9, "eight pairs are not all pairs"


def test_all_right_is_a_bound_by_the_people_and_not_by_the_answers() -> None:
    found = mean([[(person, 1.0) for person in range(6)] for _ in range(100)])
    assert (found.value, found.high) == (1.0, 1.0) and found.low == pytest.approx(0.025 ** (1 / 6))
