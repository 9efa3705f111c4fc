"""Corpus scores of generated questions, against pycocoevalcap where it is installed and against hand-worked cases."""

from __future__ import annotations

import math

import pytest

from pfungst.core import PfungstError
from pfungst.scores import generation_scores
from pfungst.scores.generation import corpus_bleu, corpus_cider, rouge_l

SAID = ["what color is the big cube", "how many red things are there", "is there a ball", "what is it", "the the the"]
WANTED = [
    ["what color is the large cube", "which color does the big cube have"],
    ["how many red objects are there"],
    ["is there a ball behind the cube", "do you see a ball"],
    ["what shape is the thing left of the ball"],
    ["the cat sat on the mat"],
]


def _split() -> tuple[list[list[str]], list[list[list[str]]]]:
    return [text.split() for text in SAID], [[ref.split() for ref in refs] for refs in WANTED]


def test_a_repeated_question_is_perfect() -> None:
    scores = generation_scores(
        ["What color is the big cube?", "How many red things are there?"],
        [["what color is the big cube"], ["how many red things are there"]],
        meteor=False,
    )
    for name in ("BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "ROUGE-L"):
        assert scores[name] == pytest.approx(1.0, abs=1e-6)
    assert scores["CIDEr"] == pytest.approx(10.0)
    assert math.isnan(scores["METEOR"])


@pytest.mark.slow
def test_meteor_is_the_mean_over_the_best_references() -> None:
    pytest.importorskip("pycocoevalcap")
    from pfungst.text import pairwise

    wanted = [["what color is it", "which color does it have"], ["how many are there"]]
    each = pairwise("meteor", [*wanted[0], *wanted[1]], ["which color has it", "count them"])
    expected = (max(each[0, 0], each[1, 0]) + each[2, 1]) / 2
    assert generation_scores(["which color has it", "count them"], wanted)["METEOR"] == pytest.approx(expected)


def test_unigram_precision_is_clipped_and_short_texts_are_punished() -> None:
    # 2 of 3 words count ("the" twice in the reference); the reference has 6 words
    assert corpus_bleu([["the", "the", "the"]], [[["the", "cat", "sat", "on", "the", "mat"]]])[0] == pytest.approx(
        2 / 3 * math.exp(1 - 6 / 3), rel=1e-6
    )


def test_rouge_takes_the_best_precision_and_the_best_recall() -> None:
    # common subsequences: 2 of 3 words said, 2 of 4 wanted
    score = rouge_l(["a", "b", "c"], [["a", "x", "b", "y"]])
    assert score == pytest.approx((1 + 1.44) * (2 / 3) * 0.5 / (0.5 + 1.44 * 2 / 3))
    assert rouge_l([], [["a"]]) == 0


def test_corpus_scores_equal_pycocoevalcap() -> None:
    bleu = pytest.importorskip("pycocoevalcap.bleu.bleu")
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.rouge.rouge import Rouge

    said, wanted = _split()
    given = {i: [text] for i, text in enumerate(SAID)}
    truth = dict(enumerate(WANTED))
    assert corpus_bleu(said, wanted) == pytest.approx(bleu.Bleu(4).compute_score(truth, given, verbose=0)[0], rel=1e-9)
    assert corpus_cider(said, wanted) == pytest.approx(Cider().compute_score(truth, given)[0], rel=1e-9)
    rouge = sum(map(rouge_l, said, wanted)) / len(said)
    assert rouge == pytest.approx(Rouge().compute_score(truth, given)[0], rel=1e-9)


def test_every_question_needs_a_reference() -> None:
    with pytest.raises(PfungstError, match="at least one reference"):
        generation_scores(["a"], [[]])
    with pytest.raises(PfungstError, match="1 generated questions and 2"):
        generation_scores(["a"], [["b"], ["c"]])
