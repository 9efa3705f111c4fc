"""METEOR: worked by hand, and against pycocoevalcap's jar to the last bit, on made and on real questions."""

import gzip
import random
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pfungst.core import MissingExtra, PfungstError
from pfungst.text import pairwise, top_pairs
from pfungst.text.meteor import best_pairs, scores_and_bounds
from pfungst.text.meteor.index import build
from pfungst.text.meteor.words import lists, paraphrases
from tests.real.conftest import shared_data  # noqa: F401
from tests.text.meteor_oracle import needs_java, published

pytest.importorskip("pycocoevalcap")

COMMON = [
    "the", "a", "of", "is", "are", "what", "which", "in", "on", "man", "men", "picture", "photo", "people", "person",
    "there", "many", "how", "color", "runs", "running",
]  # fmt: skip
ODD = [
    "variants", "gelato", "日本", "😀", "é", "e.g.", "u.s.", "...", "mr.", "'s", "n't", "(", "''", "1,000", "no.", "|",
    "o'clock", "rock-n-roll", "children", "child", "mice", "mouse", "naïve", "'", "co-operate", "x.", "привет", "%",
]  # fmt: skip
sentences = st.lists(st.sampled_from(COMMON + ODD), max_size=12).map(" ".join)


def silent(what, done, total):
    pass


def index(main, pool):
    return build(main, pool, lists(), paraphrases(silent))


def all_published(main, pool):
    return np.reshape(published([(one, two) for one in main for two in pool]), (len(main), len(pool)))


@pytest.mark.parametrize(
    ("reference", "hypothesis", "score"),
    [
        ("zebra eats", "zebra eats", 1.0),
        # Two chunks of two matches: 1 - 0.6 (2/2)^0.2
        ("zebra eats", "eats zebra", 0.4),
        # Precision 1/2, recall 1, one chunk of one match.
        ("zebra", "giraffe zebra", 1 / (0.15 / 0.5 + 0.85) * 0.4),
        ("giraffe zebra", "zebra", 1 / (0.15 + 0.85 / 0.5) * 0.4),
        # The function word weighs a third of the zebra: recall 0.75 / 1.
        ("the zebra", "zebra", 1 / (0.15 + 0.85 / 0.75) * 0.4),
        # One stem counts 0.6, all words match in one chunk.
        ("zebra runs", "zebra running", 0.8),
        # Three of four words in one chunk.
        ("zebra eats green grass", "zebra eats green leaves", 0.75 * (1 - 0.6 * (1 / 3) ** 0.2)),
        ("zebra", "giraffe", 0.0),
        ("zebra", "", 0.0),
        ("", "", 0.0),
        # Java gives these two words the same hash code, by which METEOR compares them.
        ("variants", "gelato", 1.0),
    ],
)
def test_worked_by_hand(reference, hypothesis, score):
    assert pairwise("meteor", [reference], [hypothesis])[0, 0] == pytest.approx(score, abs=1e-15)


@needs_java
def test_equal_to_the_jar_where_the_beam_is_full_and_sentences_are_long():
    rng = random.Random(0)
    main = [" ".join(rng.choices(COMMON[:6], k=k)) for k in (9, 30, 70)]
    pool = [" ".join(rng.choices(COMMON[: rng.choice([4, 8, 20])], k=k)) for k in (1, 14, 64, 65, 80)]
    scores, bounds = scores_and_bounds(index(main, pool), 0, len(main))
    assert scores.tolist() == all_published(main, pool).tolist()
    assert (bounds >= scores).all()


@needs_java
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(sentences, min_size=1, max_size=3), st.lists(sentences, min_size=1, max_size=5))
def test_equal_to_the_jar_and_below_the_bound_on_any_words(main, pool):
    scores, bounds = scores_and_bounds(index(main, pool), 0, len(main))
    assert scores.tolist() == all_published(main, pool).tolist()
    assert (bounds >= scores).all()


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(sentences, min_size=1, max_size=4), st.lists(sentences, min_size=4, max_size=40), st.data())
def test_the_best_are_those_of_all_pairs_with_ties_by_place(main, pool, data):
    k = data.draw(st.integers(1, len(pool) - 2))
    excluded = data.draw(
        st.lists(st.sets(st.integers(0, len(pool) - 1), max_size=2).map(sorted), min_size=len(main), max_size=len(main))
    )  # fmt: skip
    arrays = index(main, pool)
    scores = scores_and_bounds(arrays, 0, len(main))[0]
    places, values, _ = best_pairs(arrays, k, excluded, silent)
    for row, hidden, place, value in zip(scores, excluded, places, values, strict=True):
        expected = sorted((i for i in range(len(pool)) if i not in hidden), key=lambda i: (-row[i], i))[:k]
        assert place.tolist() == expected
        assert value.tolist() == row[expected].tolist()


def test_few_of_many_pairs_are_aligned():
    rng = random.Random(1)
    words = [f"word{i}" for i in range(400)]
    pool = [" ".join(rng.sample(words, 7)) for _ in range(4000)]
    main = [" ".join(rng.sample(words, 7)) for _ in range(5)]
    aligned = best_pairs(index(main, pool), 5, [[]] * 5, silent)[2]
    assert 5 * 5 <= aligned <= 0.02 * len(main) * len(pool)


def test_progress_reaches_the_number_of_main_questions():
    seen = []
    top_pairs("meteor", ["a zebra"] * 9, COMMON, 2, progress=lambda what, done, total: seen.append((what, done, total)))
    assert seen[-1] == ("ranking", 9, 9)


def test_no_sentences_give_no_scores():
    assert pairwise("meteor", [], ["zebra"]).shape == (0, 1)
    assert pairwise("meteor", ["zebra"], []).shape == (1, 0)


def test_ten_thousand_words_are_taken_and_more_are_refused():
    long = "is there a zebra " * 2500
    assert 0 < pairwise("meteor", ["a zebra?"], [long])[0, 0] < 0.1
    with pytest.raises(PfungstError, match="Pool question 1 has 20000 words; METEOR takes at most 16383"):
        pairwise("meteor", ["a zebra?"], ["zebra", long * 2])


def test_text_that_is_none_is_a_sentence():
    with pytest.raises(PfungstError, match="Pool question 1 is int"):
        top_pairs("meteor", ["a"], ["b", 3, "c"], 1)


@pytest.fixture(scope="module")
def questions(shared_data):  # noqa: F811
    with gzip.open(shared_data / "vqa1" / "val2014_questions.txt.gz", "rt") as file:
        found = sorted(set(file.read().splitlines()))
    return [found[i] for i in np.random.default_rng(0).permutation(len(found))]


@needs_java
def test_the_best_21_of_real_questions_are_those_of_the_jar(questions):
    main, pool = questions[:6], questions[6:1206]
    scores = all_published(main, pool)
    places, values = top_pairs("meteor", main, pool, 21)
    for row, place, value in zip(scores, places, values, strict=True):
        expected = sorted(range(len(pool)), key=lambda i: (-row[i], i))[:21]
        assert place.tolist() == expected
        assert value.tolist() == row[expected].tolist()


def test_no_score_of_real_questions_exceeds_its_bound(questions):
    scores, bounds = scores_and_bounds(index(questions[:20], questions[20:3020]), 0, 20)
    assert (bounds >= scores).all()
    assert (scores[bounds == 0] == 0).all()


def test_at_most_one_pair_of_real_questions_in_a_hundred_is_aligned(questions):
    main, pool = questions[:10], questions[1000:21000]
    aligned = best_pairs(index(main, pool), 21, [[]] * len(main), silent)[2]
    assert aligned <= 0.01 * len(main) * len(pool)


def test_without_pycocoevalcap_the_error_names_the_extra(monkeypatch):
    lists.cache_clear()
    monkeypatch.setitem(sys.modules, "pycocoevalcap", None)
    with pytest.raises(MissingExtra, match=r"pip install 'pfungst\[meteor\]'"):
        pairwise("meteor", ["a"], ["b"])
