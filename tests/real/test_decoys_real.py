"""Decoys on real questions: COCO-QA and DAQUAR."""

from collections import Counter

import numpy as np
import pytest

from pfungst.data import load
from pfungst.probes.decoys import AnswerRule, build, rules


@pytest.fixture(scope="module")
def glove(shared_data):
    return f"words:{shared_data / 'glove' / 'glove100d_subset_f16.npz'}"


@pytest.fixture(scope="module")
def daquar(shared_data, glove):
    return {
        split: build(load(shared_data / "daquar", split=split), ("qou", "iou", "random"), encoder=glove)
        for split in ("train", "eval")
    }


def test_daquar_has_decoys_for_every_question_and_fallbacks_only_where_images_have_few_questions(daquar):
    for split, share in (("train", 0.9), ("eval", 0.5)):  # 7 and 2 questions an image
        for kind in ("qou", "iou"):
            counts = daquar[split].counts(kind)
            assert counts["missing"] == 0
            assert counts["procedure"] > (0.99 if kind == "qou" else share) * counts["decoys"]


def test_decoys_of_a_split_are_targets_of_that_split(daquar):
    for made in daquar.values():
        targets = {example.target for example in made.examples}
        used = np.unique(made.numbers("QoU+IoU"))
        assert {made.split.book.texts[one] for one in used if one >= 0} <= targets


def test_each_kind_keeps_its_rule_on_real_questions(daquar):
    question, image = (rules(daquar["train"], name) for name in ("QoU", "IoU"))
    assert question.question_fit.value > image.question_fit.value
    assert image.image_fit.value > 0.8 > question.image_fit.value


def test_the_answer_statistics_of_the_training_split_give_little_away(daquar):
    """Eq. 2: among decoys that are targets elsewhere, how often an answer is right tells little."""
    rule = AnswerRule.fit(daquar["train"].dataset("QoU+IoU"))
    exam = daquar["eval"].dataset("QoU+IoU")
    chance = np.mean([1 / len(example.choices) for example in exam])
    assert np.nanmean(rule.right(exam)) < chance + 0.12


def test_equal_runs_on_cocoqa_are_equal(shared_data, glove):
    data = load(shared_data / "cocoqa", split="test", limit=3000)
    first, again = (build(data, encoder=glove, seed=1) for _ in range(2))
    assert (first.numbers("QoU+IoU") == again.numbers("QoU+IoU")).all()
    assert first.counts("qou")["missing"] == 0


def test_every_yes_no_question_of_vqa_has_the_opposite_and_an_image_with_one_question_gives_no_iou_set(
    shared_data, glove
):
    data = load(shared_data / "vqa2", split="val", limit=1500)
    made = build(data, encoder=glove)
    asked = [number for number, one in enumerate(made.examples) if one.target in ("yes", "no")]
    assert len(asked) > 500
    for variant in made.variants:
        assert all({"yes", "no"} <= set(made.choices(variant, number)) for number in asked), variant
    # A player that never looks and knows how frequent answers are: half of the yes/no questions, no more.
    often = Counter(one.target for one in data)
    picked = [max(made.choices("QoU+IoU", n), key=lambda one: often[one]) == made.examples[n].target for n in asked]
    assert 0.45 < np.mean(picked) < 0.57
    assert made.fallen["iou"] > 0.8 and any("not IoU sets" in sentence for sentence in made.warnings())
