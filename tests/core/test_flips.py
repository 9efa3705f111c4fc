"""What became of an answer: one rule, held against the rule in words."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pfungst.core import Answer
from pfungst.core.flips import (
    CHANGED,
    FLIPS,
    KEPT_WITHOUT,
    LESS_RIGHT,
    RIGHT_WRONG,
    SAME,
    STILL_RIGHT,
    STILL_WRONG,
    UNREAD,
    WRONG_RIGHT,
    WRONG_WRONG,
    alike,
    count_flips,
    flip_codes,
)

NAN = math.nan


@pytest.mark.parametrize(
    ("before", "after", "same", "flip"),
    [
        (1, 0, 0, RIGHT_WRONG),
        (1, 0.3, 0, LESS_RIGHT),
        (1, 0.3, 1, LESS_RIGHT),
        (0.3, 1, 0, STILL_RIGHT),
        (0, 1, 0, WRONG_RIGHT),
        (0, 0, 0, WRONG_WRONG),
        (0, 0, 1, STILL_WRONG),
        (NAN, 1, 0, CHANGED),
        (1, NAN, 1, SAME),
        (0, 0, NAN, UNREAD),
        (NAN, NAN, NAN, UNREAD),
    ],
)
def test_a_flip_is_named_by_scores_and_answers(before, after, same, flip):
    assert FLIPS[flip_codes([before], [after], [same])[0]] == flip


def test_where_the_evidence_is_taken_away_it_is_suspicious_to_stay_right():
    codes = flip_codes([1, 1, 0], [1, 0, 0], [1, 0, 1], True)
    assert [FLIPS[code] for code in codes] == [KEPT_WITHOUT, RIGHT_WRONG, STILL_WRONG]


def test_two_unread_replies_are_not_compared_and_one_is_a_change():
    unread, read = Answer("mumble", unread=True), Answer("red")
    assert math.isnan(alike(unread, Answer("mutter", unread=True)))
    assert alike(unread, read) == alike(read, unread) == 0.0 and alike(read, Answer("Red.")) == 1.0
    said = [(unread, unread)] * 40 + [(read, Answer("blue"))] * 20
    found = count_flips([0.0] * 60, [0.0] * 60, [alike(*pair) for pair in said])
    assert found.wrong_to_other_wrong == 20 and found.n == 20


scores = st.sampled_from([0.0, 0.3, 1.0, NAN])


@given(st.lists(st.tuples(scores, scores, st.sampled_from([0.0, 1.0, NAN])), max_size=30))
def test_counts_are_those_of_a_loop(rows):
    counts = [0, 0, 0, 0]
    for before, after, same in rows:
        if math.isnan(before) or math.isnan(after) or math.isnan(same):
            continue
        if before > 0:
            counts[0 if after <= 0 else 3] += 1
        elif after > 0:
            counts[1] += 1
        else:
            counts[3 if same else 2] += 1
    found = count_flips(*([list(column) for column in zip(*rows, strict=True)] or [[], [], []]))
    told = [found.right_to_wrong, found.wrong_to_right, found.wrong_to_other_wrong, found.unchanged]
    assert told == counts and found.n == sum(counts)


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="2 scores before, 1 after, 1 comparisons"):
        flip_codes([0, 1], [0], [1])
