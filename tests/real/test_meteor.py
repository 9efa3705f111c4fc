"""METEOR's best 21 of real questions are exactly those of the published program."""

import gzip

import numpy as np
import pytest

from pfungst.text import top_pairs
from pfungst.text.meteor import best_pairs, scores_and_bounds
from pfungst.text.meteor.index import build
from pfungst.text.meteor.resources import lists, paraphrases
from tests.text.meteor_oracle import needs_java, published

pytest.importorskip("pycocoevalcap")


def silent(what, done, total):
    pass


@pytest.fixture(scope="module")
def questions(shared_data):
    with gzip.open(shared_data / "vqa1" / "val2014_questions.txt.gz", "rt") as file:
        found = sorted(set(file.read().splitlines()))
    return [found[i] for i in np.random.default_rng(0).permutation(len(found))]


@needs_java
def test_the_best_21_are_those_of_the_jar_on_all_pairs(questions):
    main, pool = questions[:6], questions[6:1206]
    scores = np.reshape(published([(one, two) for one in main for two in pool]), (len(main), len(pool)))
    places, values = top_pairs("meteor", main, pool, 21)
    for row, place, value in zip(scores, places, values, strict=True):
        expected = sorted(range(len(pool)), key=lambda i: (-row[i], i))[:21]
        assert place.tolist() == expected
        assert value.tolist() == row[expected].tolist()


def test_no_score_exceeds_its_bound(questions):
    scores, bounds = scores_and_bounds(build(questions[:20], questions[20:3020], lists(), paraphrases(silent)), 0, 20)
    assert (bounds >= scores).all()
    assert (scores[bounds == 0] == 0).all()


def test_at_most_one_pair_in_a_hundred_is_aligned(questions):
    main, pool = questions[:10], questions[1000:21000]
    aligned = best_pairs(build(main, pool, lists(), paraphrases(silent)), 21, [None] * len(main), silent)[2]
    assert aligned <= 0.01 * len(main) * len(pool)
