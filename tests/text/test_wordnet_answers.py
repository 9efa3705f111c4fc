"""WUPS of answers: the formula of Malinowski and Fritz, by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pfungst.text import wup, wups

WORDS = ["dog", "cat", "table", "night_stand", "6", "red", "zxqv", "mice", "lady", "woman"]
ANSWERS = st.one_of(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(", ".join),
    st.lists(st.sampled_from([*WORDS, "a", "the"]), min_size=1, max_size=3).map(" ".join),
    st.text(max_size=12),
)


def test_single_words_take_the_lesser_of_both_directions() -> None:
    assert wups("woman", "lady") == wups("lady", "woman") == min(wup("woman", "lady"), wup("lady", "woman"))


def test_sets_multiply_the_best_match_of_every_element_in_both_directions() -> None:
    there = 1.0 * max(wup("table", "dog"), wup("table", "cat"))
    back = 1.0 * max(wup("cat", "dog"), wup("cat", "table"))
    assert there < back < 1.0
    assert wups("dog, table", "dog, cat") == there
    assert wups("dog, cat", "cat, dog") == 1.0


def test_a_missing_element_costs_its_best_match() -> None:
    assert wups("dog, cat", "dog") == 1.0 * wup("cat", "dog")


def test_below_the_threshold_a_similarity_counts_a_tenth() -> None:
    assert wups("dog", "cat", threshold=0.9) == pytest.approx(0.1 * 0.857142857142857)
    assert wups("dog", "cat", threshold=0.85) == wup("dog", "cat")
    assert wups("zxqv", "zxqv", threshold=2.0) == 1.0


def test_down_weighting_comes_before_the_best_match_is_chosen_and_multiplied() -> None:
    tenth = 0.1 * wup("cat", "dog")
    assert wups("dog, cat", "dog", threshold=0.9) == pytest.approx(tenth)


def test_plurals_and_synonyms_are_full_matches() -> None:
    assert wups("mice", "mouse", threshold=0.9) == 1.0
    assert wups("couch", "sofa", threshold=0.9) == 1.0


def test_a_phrase_that_wordnet_knows_is_one_element() -> None:
    assert wups("tennis court", "court") == min(wup("tennis court", "court"), wup("court", "tennis court"))


def test_any_other_phrase_is_its_words_without_articles() -> None:
    assert wups("a wooden table", "the wooden table") == 1.0
    assert wups("wooden table", "table") == 0.0
    assert wups("black dog", "brown dog") == min(wup("black", "brown"), wup("brown", "black"))


def test_blank_underscore_and_case_make_no_difference() -> None:
    assert wups("Night stand", "night_stand", threshold=0.9) == 1.0


def test_empty_answers_match_only_each_other() -> None:
    assert wups("", "") == 1.0
    assert wups("", "dog") == wups("dog", "") == 0.0


@settings(deadline=None)  # the first call reads the tables
@given(ANSWERS, ANSWERS, st.sampled_from([0.0, 0.5, 0.9]))
def test_wups_is_symmetric_in_zero_to_one(one: str, other: str, threshold: float) -> None:
    value = wups(one, other, threshold)
    assert 0.0 <= value <= 1.0
    assert wups(other, one, threshold) == value


def test_text_that_looks_like_a_synset_is_still_only_text() -> None:
    assert wups("dog.n.99", "dog") == 0.0
