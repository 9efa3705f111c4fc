"""What every probe counts the same way: answers that stay, change, or cannot be read."""

from __future__ import annotations

import math

import pytest

from pfungst.core import Answer, AnsweredTrial, Example, Query, Trial, Variant
from pfungst.core.files import jsonable
from pfungst.core.flips import alike
from pfungst.probes import measure
from pfungst.report.card import format_finding
from pfungst.report.exports import scale_of

RED, BLUE = Answer("red"), Answer("Blue.")
REFUSED, HEDGED = Answer("I cannot say.", unread=True), Answer("red", unread=True)


def trial(first: Answer, second: Answer, scores: tuple[float, float], number: int = 0) -> AnsweredTrial:
    example = Example(id=f"q{number}", question="What colour?", image_id=f"i{number}", target="red")
    variants = (Variant("clean", Query("What colour?")), Variant("again", Query("What colour?", take=1)))
    return AnsweredTrial(Trial(example.id, variants, "the answer"), example, (first, second), scores)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [(RED, Answer("Red"), 1.0), (RED, BLUE, 0.0), (RED, REFUSED, 0.0), (HEDGED, RED, 0.0), (REFUSED, HEDGED, math.nan)],
)
def test_an_answer_against_an_unread_reply_is_a_change_and_two_unread_ones_are_unknown(
    first: Answer, second: Answer, same: float
) -> None:
    assert alike(first, second) == pytest.approx(same, nan_ok=True)


def test_changes_and_flips_leave_out_the_same_pairs() -> None:
    trials = [
        trial(RED, RED, (1.0, 1.0), 0),
        trial(RED, REFUSED, (1.0, 0.0), 1),
        trial(BLUE, REFUSED, (0.0, 0.0), 2),
        trial(REFUSED, HEDGED, (0.0, 0.0), 3),
        trial(REFUSED, REFUSED, (0.0, 0.0), 4),
    ]
    changed = measure.changed(trials, "clean", "again", 0)
    flips = measure.flips(trials, "clean", "again")
    assert (changed.n, changed.value) == (3, pytest.approx(2 / 3))
    assert (flips.n, flips.right_to_wrong, flips.wrong_to_other_wrong, flips.unchanged) == (3, 1, 1, 1)
    assert measure.drop(trials, "clean", "again", 0).n == 5


def test_a_difference_of_percentages_is_said_in_points():
    lost = measure.difference("drop", [1.0, 1.0, 1.0, 0.0], [1.0, 0.0, 1.0, 0.0], list("abcd"), 0)
    kept = measure.mean("accuracy", [1.0, 0.0, 1.0, 0.0], list("abcd"), 0)
    assert measure.with_interval(lost).startswith("25.0 points [")
    assert format_finding(jsonable(lost)) == measure.with_interval(lost)
    assert format_finding(jsonable(kept)) == measure.with_interval(kept)
    assert scale_of(jsonable(lost)) == "fraction of 1"


@pytest.mark.parametrize(("n", "images"), [(60, 6), (410, 41)])
def test_where_nothing_changed_it_is_said_how_much_might_have(n: int, images: int) -> None:
    clusters = [f"i{at % images}" for at in range(n)]
    still = measure.difference("drop", [1.0, 0.0] * (n // 2), [1.0, 0.0] * (n // 2), clusters, 0)
    # Of so many images none changed: a share of more than p shows none with a probability of less than 5%.
    p = 1 - 0.05 ** (1 / images)
    told = f"0.0 points (0 of {n} scores changed, at most {100 * p:.1f}%; 95%, {images} images)"
    assert still.changed == 0 and measure.with_interval(still) == told
    assert format_finding(jsonable(still)) == told
    moved = measure.difference("drop", [1.0] * n, [0.0] + [1.0] * (n - 1), clusters, 0)
    assert moved.changed == 1 and "changed" not in measure.with_interval(moved)
    back = measure.difference("drop", [1.0, 0.0] * (n // 2), [0.0, 1.0] * (n // 2), ["i"] * n, 0)
    assert back.value == 0 and back.changed == n and "0 of" not in measure.with_interval(back)
