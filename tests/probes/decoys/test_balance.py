"""Decoys of groups of questions that lend each other their answers: answers alone give nothing away."""

from collections import Counter

import numpy as np
import pytest

from pfungst.probes.decoys import AnswerRule, build, rules
from pfungst.probes.decoys.split import letters
from pfungst.text import wups
from tests.probes.decoys.conftest import made_up, triplet


def skewed(count=600, seed=0, names=120):
    """Some answers are right far more often than others."""
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(4, names + 4)
    chosen = rng.choice(names, count, p=share / share.sum())
    return [
        triplet(one.id, one.question, f"q{n:03d}x", one.image_id)
        for one, n in zip(made_up(count, seed, images=count), chosen.tolist(), strict=True)
    ]


def always(examples):
    """How often the most frequent option is right: what the options alone give away."""
    counts = Counter(one.target for one in examples)
    return np.mean([max(one.choices, key=lambda c: (counts[c], c)) == one.target for one in examples])


@pytest.mark.parametrize("kind", ["qou", "iou"])
def test_options_alone_are_at_chance_whatever_is_known_about_answers(encoder, kind):
    name = {"qou": "QoU", "iou": "IoU"}[kind]
    made = build(skewed(), (kind,), encoder=encoder, balanced=True)
    full = [one for one in made.dataset(name) if len(one.choices) == 4]
    assert len(full) > 590 and abs(always(full) - 0.25) < 0.02
    assert rules(made, name).neutrality > 0.99
    plain = build(skewed(), (kind,), encoder=encoder)
    assert abs(always(plain.dataset(name)) - 0.25) > 0.03


def test_each_option_of_a_group_is_right_once(encoder):
    made = build(skewed(), ("qou",), encoder=encoder, balanced=True)
    groups = Counter((frozenset(one.choices), one.target) for one in made.dataset("QoU"))
    uneven = [one for one in groups if len({groups[one[0], other] for other in one[0]}) > 1]
    assert len(uneven) <= 12, "the few for whom nobody was left borrow the options of a group"


def test_the_frequencies_of_training_no_longer_help_on_the_combined_set(encoder):
    gains = {}
    for balanced in (False, True):
        learnt, asked = (build(skewed(seed=seed), encoder=encoder, balanced=balanced) for seed in (0, 1))
        rule = AnswerRule.fit(learnt.dataset("QoU+IoU"))
        gains[balanced] = np.mean(rule.right(asked.dataset("QoU+IoU"))) - rules(asked, "QoU+IoU").chance
    assert gains[True] < 0.04 < gains[False]


def test_mates_can_be_told_apart_and_none_stands_twice(encoder):
    data = made_up(200)
    made = build(data, encoder=encoder, balanced=True)
    for number, example in enumerate(data):
        decoys = made.decoys("QoU+IoU", number)
        assert example.target not in decoys and len(set(decoys)) == len(decoys) <= 6
        for one in made.decoys("QoU", number):
            a, b = letters(one), letters(example.target)
            numbers = {one, example.target} <= {"two", "three"}
            assert a not in b and b not in a and (numbers or wups(one, example.target) < 0.9)


def test_questions_about_one_image_are_grouped_first(encoder):
    data = [triplet(n, f"what w{n}", f"q{n:02d}x", f"image {n // 4}") for n in range(40)]
    made = build(data, ("iou",), balanced=True)
    assert made.counts("iou")["procedure"] == 120 and rules(made, "IoU").image_fit.value == 1
    lone = build([triplet(n, f"what w{n}", f"q{n:02d}x") for n in range(40)], ("iou",), balanced=True)
    assert lone.counts("iou")["neutral target"] == 120


def test_a_yes_or_no_question_becomes_a_choice_of_two(encoder):
    data = [triplet(n, f"is the w{n} w{n + 1}", ("yes", "no")[n % 2]) for n in range(30)]
    data += [triplet(100 + n, f"who w{100 + n}", answer) for n, answer in enumerate(("river", "pizza", "train", "dog"))]
    made = build(data, ("qou",), encoder=encoder, balanced=True)
    assert made.decoys("QoU", 0) == ("no",) and made.decoys("QoU", 1) == ("yes",)
    assert len(made.decoys("QoU", 30)) == 3


def test_a_yes_or_no_question_that_is_left_over_keeps_its_opposite(encoder):
    data = [triplet(n, f"is the w{n} w{n + 1}", "no" if n % 5 == 0 else "yes") for n in range(40)]
    data += [triplet(100 + n, f"who w{100 + n}", answer) for n, answer in enumerate(("river", "pizza", "train", "dog"))]
    made = build(data, ("qou",), encoder=encoder, balanced=True)
    assert all(set(made.choices("QoU", n)) == {"yes", "no"} for n in range(40))
    assert made.counts("qou")["opposite"] == 24


def test_what_an_annotator_said_there_is_no_mate(encoder):
    data = [triplet(0, "who w1", "river", answers=("river", "pizza")), triplet(1, "who w2", "pizza")]
    data += [triplet(2, "who w3", "train"), triplet(3, "who w4", "umbrella")]
    made = build(data, ("qou",), k=1, encoder=encoder, balanced=True)
    assert made.decoys("QoU", 0) != ("pizza",) and made.decoys("QoU", 1) != ("river",)


def test_balanced_sets_are_a_function_of_the_seed_and_of_nothing_else(encoder, tmp_path):
    data = made_up(120)
    first = build(data, encoder=encoder, balanced=True, folder=tmp_path / "parts")
    again = build(data, encoder=encoder, balanced=True)
    assert (first.numbers("QoU+IoU") == again.numbers("QoU+IoU")).all()
    other = build(data, encoder=encoder, balanced=True, seed=1)
    assert (first.numbers("QoU+IoU") != other.numbers("QoU+IoU")).any()
    assert first.about["balanced"] and first.about["fallback"] == "neutral"
