"""All-pairs metrics against pycocoevalcap, pair by pair."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pfungst.core import PfungstError
from pfungst.text import pairwise, tokenize, top_pairs

MAIN = [
    "How old is the car?",
    "What's on the cat's left?",
    "the the the",
    "",
    "Is it 5:30 p.m. or can't you tell (yet)?",
]
POOL = [
    "How old is the truck?", "What color is the car?", "the the", "the", "", "?", "How old is the car",
    "car the is old how",
    "Is the cat left of the old car, or isn't it?", "Is it a very very long question that goes on and on and on?",
]  # fmt: skip
words = st.lists(st.sampled_from(["a", "b", "c", "d", "e", "the"]), max_size=9).map(" ".join)


def plain(sentence):
    return " ".join(tokenize(sentence))


def published(metric, main, pool):
    """The scores of pycocoevalcap, one pair at a time."""
    pairs = [(reference, hypothesis) for reference in main for hypothesis in pool]
    gts = {i: [plain(reference)] for i, (reference, _) in enumerate(pairs)}
    res = {i: [plain(hypothesis)] for i, (_, hypothesis) in enumerate(pairs)}
    if metric.startswith("bleu"):
        from pycocoevalcap.bleu.bleu import Bleu

        scores = Bleu(4).compute_score(gts, res, verbose=0)[1][int(metric[-1]) - 1]
    elif metric == "rouge":
        from pycocoevalcap.rouge.rouge import Rouge

        scores = Rouge().compute_score(gts, res)[1]
    else:
        scores = published_cider(gts, res, pool)
    return np.asarray(scores).reshape(len(main), len(pool))


def published_cider(gts, res, pool):
    """CIDEr with the document frequencies of the pool, each question once."""
    from pycocoevalcap.cider.cider_scorer import CiderScorer, precook

    class Counted(list):
        def __len__(self):
            return len(pool)

    scorer = CiderScorer()
    for i in gts:
        scorer += (res[i][0], gts[i])
    scorer.document_frequency = defaultdict(float)
    for hypothesis in pool:
        for gram in precook(plain(hypothesis)):
            scorer.document_frequency[gram] += 1
    scorer.crefs = Counted(scorer.crefs)
    return scorer.compute_cider()


@pytest.mark.parametrize("metric", ["bleu1", "bleu2", "bleu3", "bleu4", "rouge", "cider"])
def test_equal_to_the_published_metric(metric):
    assert pairwise(metric, MAIN, POOL) == pytest.approx(published(metric, MAIN, POOL), abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.lists(words, min_size=1, max_size=4), st.lists(words, min_size=2, max_size=6))
def test_equal_to_the_published_metric_on_any_words(main, pool):
    for metric in ("bleu2", "bleu4", "rouge", "cider"):
        assert pairwise(metric, main, pool) == pytest.approx(published(metric, main, pool), abs=1e-9)


def test_rouge_of_questions_longer_than_a_machine_word():
    main = [" ".join(f"w{i}" for i in range(90)), " ".join(f"w{i}" for i in range(64))]
    pool = [" ".join(f"w{i}" for i in range(0, 90, 3)), main[0], main[1], "w1 w0"]
    assert pairwise("rouge", main, pool) == pytest.approx(published("rouge", main, pool), abs=1e-12)


@pytest.mark.parametrize("metric", ["bleu1", "rouge", "cider"])
def test_top_pairs_are_the_best_of_all_pairs_with_ties_by_place(metric):
    scores = pairwise(metric, MAIN, POOL)
    places, values = top_pairs(metric, MAIN, POOL, 4)
    for row, place, value in zip(scores, places, values, strict=True):
        expected = sorted(range(len(POOL)), key=lambda i: (-row[i], i))[:4]
        assert place.tolist() == expected
        assert value.tolist() == row[expected].tolist()


def test_an_excluded_question_is_never_given():
    places, _ = top_pairs("rouge", MAIN[:1], POOL, 9, excluded=[[6]])
    assert 6 not in places[0] and len(set(places[0])) == 9


def test_bad_input_is_a_sentence():
    with pytest.raises(PfungstError, match="no text metric 'blue'"):
        pairwise("blue", MAIN, POOL)
    with pytest.raises(PfungstError, match="Pool question 1 is int"):
        pairwise("rouge", MAIN, ["a", 3])
    with pytest.raises(PfungstError, match="must be a list"):
        pairwise("rouge", "How old?", POOL)
    with pytest.raises(PfungstError, match="11 best of 10"):
        top_pairs("rouge", MAIN, POOL, 11)


@pytest.mark.parametrize(
    ("sentence", "tokens"),
    [
        ("What's the dog's name?", "what 's the dog 's name"),
        ("Isn't it a well-known man-made lake?", "is n't it a well-known man-made lake"),
        ("You cannot see 1,000 cars!", "you can not see 1,000 cars"),
        ("Is it (really) red?", "is it -lrb- really -rrb- red"),
        ("Does Mr. Smith live in the U.S.?", "does mr. smith live in the u.s."),
        ("It's 5 o'clock -- right...", "it 's 5 o'clock right"),
        ("Really??", "really ??"),
        ("", ""),
    ],
)
def test_words_are_cut_as_the_stanford_tokenizer_does(sentence, tokens):
    assert " ".join(tokenize(sentence)) == tokens


def test_questions_that_are_too_long_for_rouge_are_told():
    with pytest.raises(PfungstError, match="5000 words and a pool question 900: together they are too long for ROUGE"):
        pairwise("rouge", ["what " * 5000], ["what " * 900, "where"])
    assert pairwise("rouge", ["what " * 5000], ["what " * 20])[0, 0] > 0
