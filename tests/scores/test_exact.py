"""Exact match, multiple choice, yes/no."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pfungst.core import PfungstError
from pfungst.core.flips import normalise
from pfungst.scores import exact_match, yes_no
from pfungst.scores.metrics import choice_by_scores


@pytest.mark.parametrize(
    ("prediction", "truth"),
    [
        ("Yes.", "yes"),
        ("yes", True),
        (False, "no"),
        ("true", "yes"),
        ("3", 3),
        (3.0, "3"),
        ("three", "3"),
        ("  Night   stand ", "night_stand"),
        ("bottle, vase", "vase,bottle"),
        ("vase, vase", "vase"),
        ("ＣＵＢＥ", "cube"),
        ("", ""),
    ],
)
def test_same_answers_match(prediction: object, truth: object) -> None:
    assert exact_match(prediction, truth) == 1.0
    assert exact_match(truth, prediction) == 1.0


@pytest.mark.parametrize(
    ("prediction", "truth"),
    [
        ("a dog", "dog"),
        ("dogs", "dog"),
        ("", "dog"),
        ("1,000", "1, 0"),
        ("3.5", "3"),
        ("bottle", "bottle, vase"),
        ("0", "no"),
    ],
)
def test_different_answers_do_not(prediction: object, truth: object) -> None:
    assert exact_match(prediction, truth) == 0.0


@given(st.text(max_size=20))
def test_normalising_twice_changes_nothing(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


def test_the_highest_score_chooses() -> None:
    assert choice_by_scores([0.1, 0.9], ["cat", "dog"], "dog") == 1.0
    assert choice_by_scores([2.0, -1.0], ["cat", "dog"], "dog") == 0.0


def test_tied_scores_share_the_point() -> None:
    choices = ["cat", "dog", "cow"]
    assert choice_by_scores([0.5, 0.5, 0.1], choices, "dog") == 0.5
    assert choice_by_scores([0.0, 0.0, 0.0], choices, "dog") == pytest.approx(1 / 3)
    assert choice_by_scores([0.5, 0.5, 0.1], choices, "cow") == 0.0


def test_nan_scores_never_win() -> None:
    assert choice_by_scores([math.nan, 0.1], ["cat", "dog"], "dog") == 1.0
    assert choice_by_scores([math.nan, math.nan], ["cat", "dog"], "dog") == 0.0


def test_scores_without_matching_choices_are_errors() -> None:
    with pytest.raises(PfungstError, match="2 scores for 1 choices"):
        choice_by_scores([0.5, 0.5], ["dog"], "dog")


def test_yes_no_by_hand() -> None:
    truths = ["yes", "yes", "yes", "no", "no", "red"]
    found = yes_no(["Yes.", "no", "Yes, a dog", "yes", "maybe", "yes"], truths)
    assert (found.n, found.unclear, found.skipped) == (5, 1, 1)
    assert found.precision == pytest.approx(2 / 3)
    assert found.recall == pytest.approx(2 / 3)
    assert found.f1 == pytest.approx(2 / 3)
    assert found.yes_ratio == pytest.approx(3 / 5)
    assert found.accuracy == pytest.approx(2 / 5)


def test_a_player_that_always_agrees_has_a_yes_ratio_of_one() -> None:
    found = yes_no(["yes"] * 4, ["yes", "no", "yes", "no"])
    assert (found.yes_ratio, found.recall, found.precision, found.accuracy) == (1.0, 1.0, 0.5, 0.5)


def test_what_is_undefined_is_nan() -> None:
    assert math.isnan(yes_no(["no"], ["no"]).precision)
    assert math.isnan(yes_no([], []).accuracy)


def test_an_answer_that_only_contains_the_word_is_unclear() -> None:
    assert yes_no(["yesterday", "no idea", "I think yes"], ["yes", "no", "yes"]).unclear == 3


def test_unequally_many_predictions_and_truths_are_an_error() -> None:
    with pytest.raises(PfungstError, match="1 predictions, 2 truths"):
        yes_no(["yes"], ["yes", "no"])
