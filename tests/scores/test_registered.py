"""Every metric of the package keeps the rules of a metric."""

from __future__ import annotations

import math

import pytest

from pfungst.core import Answer, Example
from pfungst.scores import METRICS

TARGETS = ("red", "yes", "2", "a red cube")


@pytest.mark.parametrize("name", METRICS)
def test_the_target_scores_one_and_nonsense_nothing(name: str) -> None:
    score = METRICS[name]
    for target in ("yes", "no") if name == "yes/no" else TARGETS:
        example = Example("q", "What is it?", answers=(target,) * 10, target=target, choices=(target, "qxzv"))
        assert score(example, Answer(target)) == 1.0
        # WUPS at threshold 0 gives a share to any two words of WordNet; this is none.
        assert score(example, Answer("qxzv")) == 0.0


@pytest.mark.parametrize("name", METRICS)
def test_a_score_is_a_number_from_zero_to_one_and_the_same_each_time(name: str) -> None:
    target = "yes" if name == "yes/no" else "cat"
    example = Example("q", "What?", answers=("cat", "cat", "dog"), target=target, choices=("cat", "dog"))
    for text in ("cat", "dog", "Cat.", "", "cat dog", "a" * 500, "\ud800"):
        first = METRICS[name](example, Answer(text))
        assert 0.0 <= first <= 1.0
        assert METRICS[name](example, Answer(text)) == first


@pytest.mark.parametrize("name", METRICS)
def test_what_is_right_is_unknown_where_nobody_said_it(name: str) -> None:
    assert math.isnan(METRICS[name](Example("q", "What?"), Answer("cat")))
