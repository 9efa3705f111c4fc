"""Decoys as the paper makes them, and what happens when a data set has none to give."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pfungst.core import DataError, ProbeError, UsageError
from pfungst.core.flips import normalise
from pfungst.probes.decoys import build, rules
from pfungst.probes.decoys.split import letters
from pfungst.text import wups
from tests.probes.decoys.conftest import made_up, triplet

NUMBERS = {"two", "three"}


def ambiguous(one, other):
    """The paper's rule, in plain Python: containment either way, or WUPS of 0.9 and more."""
    a, b = letters(one), letters(other)
    return a in b or b in a or (not {one, other} <= NUMBERS and wups(one, other) >= 0.9)


def walked(examples, encoder, number, limit, k=3):
    """QoU decoys by sorting all other triplets; yes and no come first, as each other's decoy."""
    vectors = encoder.encode([e.question for e in examples]).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = vectors @ vectors[number]
    others = [i for i in np.argsort(-cosines, kind="stable") if i != number][:limit]
    chosen = [{"yes": "no", "no": "yes"}[target]] if (target := examples[number].target) in ("yes", "no") else []
    for other in others:
        answer = examples[other].target
        if len(chosen) < k and not any(ambiguous(answer, one) for one in (examples[number].target, *chosen)):
            chosen.append(answer)
    return chosen


@pytest.mark.parametrize("limit", [7, 10_000])
def test_question_decoys_are_those_of_the_plain_walk_over_all_other_questions(encoder, limit):
    data = made_up()
    made = build(data, ("qou",), encoder=encoder, neighbours=limit)
    for number in range(len(data)):
        expected = walked(data, encoder, number, limit)
        assert list(made.decoys("QoU", number))[: len(expected)] == expected
        found = made.kinds["qou"].origins[number]
        assert len(expected) == int(((found == 0) | (found == 8)).sum())


def test_a_question_whose_neighbours_all_share_its_answer_is_searched_deeper(encoder):
    alike = [triplet(n, f"what is the w1 w2 w{n + 3}", "yes") for n in range(150)]
    far = [triplet(200 + n, f"who w{160 + n}", answer) for n, answer in enumerate(("river", "pizza", "train"))]
    made = build([*alike, *far], ("qou",), encoder=encoder)
    assert set(made.decoys("QoU", 0)) == {"river", "pizza", "train"}
    assert made.counts("qou")["procedure"] >= 3 * 150 and int(made.kinds["qou"].ranks[0].min()) > 48


def test_image_decoys_are_answers_to_other_questions_about_the_image(encoder):
    data = made_up(images=10)
    made = build(data, ("iou",))
    by_image = {}
    for example in data:
        by_image.setdefault(example.image_id, set()).add(example.target)
    own = made.kinds["iou"].origins == 0
    assert own.mean() > 0.9
    for number, example in enumerate(data):
        for decoy, found in zip(made.decoys("IoU", number), own[number], strict=False):
            assert not found or decoy in by_image[example.image_id]


def test_words_that_say_the_same_are_no_decoys_of_each_other(encoder):
    pairs = [("daytime", "during the daytime"), ("ponytail", "pony tail"), ("couch", "sofa"), ("Cat", "cat")]
    for one, other in pairs:
        examples = [triplet(0, "what w1", one), triplet(1, "what w2", other), triplet(2, "who w3", "river")]
        made = build(examples, ("qou",), k=1, encoder=encoder)
        assert made.decoys("QoU", 0) == made.decoys("QoU", 1) == ("river",), (one, other)


def test_the_decoys_of_a_question_differ_from_each_other(encoder):
    data = made_up(300)
    made = build(data, encoder=encoder)
    for number, example in enumerate(data):
        own = [example.target]
        for decoy, origin in zip(made.decoys("QoU", number), made.kinds["qou"].origins[number], strict=True):
            assert origin or not any(ambiguous(decoy, one) for one in own)
            own.append(decoy)


def test_different_numbers_are_told_apart_although_wordnet_puts_them_close(encoder):
    examples = [triplet(0, "how many w1", "two"), triplet(1, "how many w2", "three"), triplet(2, "who w9", "river")]
    assert wups("two", "three") >= 0.9
    assert build(examples, ("qou",), k=1, encoder=encoder).decoys("QoU", 0) == ("three",)


def test_what_another_annotator_said_is_no_decoy(encoder):
    examples = [
        triplet(0, "what w1", "river", answers=("river", "river", "pizza")),
        triplet(1, "what w1 w2", "pizza"),
        triplet(2, "who w9", "train"),
    ]
    assert build(examples, ("qou",), k=1, encoder=encoder).decoys("QoU", 0) == ("train",)
    bare = build(examples, ("qou",), k=1, encoder=encoder, avoid_human_answers=False)
    assert bare.decoys("QoU", 0) == ("pizza",)


def test_what_another_annotator_spelled_otherwise_is_no_decoy(encoder):
    examples = [
        triplet(0, "what w1", "river", answers=("river", "river", "Pizza.")),
        triplet(1, "what w1 w2", "pizza"),
        triplet(2, "who w9", "train"),
    ]
    assert build(examples, ("qou",), k=1, encoder=encoder).decoys("QoU", 0) == ("train",)


def test_answers_that_differ_in_a_vowel_sign_do_not_contain_each_other(encoder):
    year, crab = "\u0e1b\u0e35", "\u0e1b\u0e39"
    examples = [triplet(0, "what w1", year), triplet(1, "what w1 w2", crab), triplet(2, "who w9", "train")]
    assert build(examples, ("qou",), k=1, encoder=encoder).decoys("QoU", 0) == (crab,)


def test_questions_without_a_known_word_are_told(encoder):
    examples = [triplet(0, "what w1", "river"), triplet(1, "what w2", "pizza"), triplet(2, "???", "train")]
    said = build(examples, ("qou",), k=1, encoder=encoder).warnings()
    assert any(one.startswith("1 of 3 distinct questions have no word") for one in said)


def test_where_too_few_are_found_original_decoys_fill_in_before_frequent_targets(encoder):
    rest = [triplet(n, f"who w{n}", answer) for n, answer in enumerate(("dog",) * 5 + ("pizza",) * 3, start=10)]
    asked = triplet(0, "what w1", "river", image="alone", choices=("river", "umbrella", "train"))
    made = build([asked, *rest], ("iou",))
    assert set(made.decoys("IoU", 0)[:2]) == {"umbrella", "train"} and made.decoys("IoU", 0)[2] in ("dog", "pizza")
    counts = made.counts("iou")
    assert counts["original"] == 2 and counts["procedure"] == 0


def test_equal_questions_give_their_answers_in_proportion(encoder):
    """A target that is three times as frequent must be a decoy three times as often, or frequency gives it away."""
    answers = ["dog"] * 300 + ["pizza"] * 100
    examples = [triplet(n, "what w1", answer) for n, answer in enumerate(answers)]
    examples += [triplet(1000 + n, "what w1", "river") for n in range(400)]
    made = build(examples, ("qou",), k=1, encoder=encoder)
    used = Counter(made.decoys("QoU", 400 + n)[0] for n in range(400))
    assert 2.2 < used["dog"] / used["pizza"] < 4.2


def test_yes_no_questions_keep_the_one_valid_decoy_and_say_that_there_are_no_more(encoder):
    examples = [triplet(n, f"is w{n}", ("yes", "no")[n % 2], f"i{n // 4}") for n in range(40)]
    made = build(examples, encoder=encoder)
    assert all(set(made.choices(variant, n)) == {"yes", "no"} for n in range(40) for variant in made.variants)
    assert made.counts("qou")["examples too short"] == 40
    assert any("fewer QoU decoys" in sentence for sentence in made.warnings())


def contested(count=60, seed=0):
    """Yes/no questions on which the annotators disagree, among others; one question an image, so IoU has nothing."""
    rng = np.random.default_rng(seed)
    rows = []
    for n in range(count):
        names = ("yes", "no", "river", "pizza", "train", "dog", "unknown", "snow", "table", "bicycle")
        target = names[int(rng.integers(len(names)))]
        other = {"yes": "no", "no": "yes"}.get(target, "umbrella")
        rows.append(triplet(n, f"is the w{n} w{n + 1}", target, answers=(target,) * 7 + (other,) * 3))
    return rows


def test_yes_and_no_are_each_others_decoy_in_every_set_whatever_annotators_said(encoder):
    made = build(contested(), ("qou", "iou", "both", "qou@20"), encoder=encoder)
    asked = [n for n, one in enumerate(made.examples) if one.target in ("yes", "no")]
    assert len(asked) > 8
    for n in asked:
        for variant in made.variants:
            assert {"yes", "no"} <= set(made.choices(variant, n)), variant
        assert len(made.choices("QoU+IoU", n)) == 7 and len(made.choices("IoU", n)) == 4
    assert made.counts("iou")["opposite"] == len(asked), "no image has a second question"
    for variant in made.variants:
        counted = (made.numbers(variant) >= 0).sum(1)
        assert counted.tolist() == [len(made.decoys(variant, n)) for n in range(60)], "none counts twice"
    assert rules(made, "QoU+IoU").chance == pytest.approx(np.mean([1 / len(c) for c in made.all_choices("QoU+IoU")]))
    fallbacks = made.kinds["iou"].fallbacks
    assert all(fallbacks[n] == (2 if n in asked else 3) for n in range(60)), "the opposite is no fallback"


def test_the_opposite_is_that_of_the_image_where_the_image_has_it(encoder):
    data = [triplet(n, f"is w{n}", ("yes", "no", "dog", "river", "pizza")[n % 5], f"i{n // 5}") for n in range(50)]
    made = build(data, encoder=encoder)
    assert made.counts("iou")["opposite"] == 0 and made.counts("iou")["procedure"] == 150
    assert all(len(made.choices("QoU+IoU", n)) >= 5 for n in range(50))


def test_the_opposite_is_spelled_as_the_target_is(encoder):
    data = [
        triplet(n, f"is w{n}", ("Yes", "No", "yes", "no", "True", "False", "dog", "sofa")[n % 8]) for n in range(64)
    ]
    made = build(data, ("qou",), k=1, encoder=encoder)
    assert [made.decoys("QoU", n)[0] for n in range(6)] == ["No", "Yes", "no", "yes", "False", "True"]


def test_an_answer_that_a_person_gave_does_not_come_back_as_a_fallback():
    data = [triplet(n, f"what w{n}", answer) for n, answer in enumerate(("dog",) * 4 + ("pizza",) * 3 + ("river",) * 2)]
    asked = triplet(99, "what w9", "umbrella", answers=("umbrella",) * 8 + ("dog",) * 2)
    made = build([asked, *data], ("iou",), k=2)
    assert set(made.decoys("IoU", 0)) == {"pizza", "river"}


def test_a_set_whose_image_decoys_are_mostly_fallbacks_says_that_it_is_none(encoder):
    made = build(contested(), encoder=encoder)
    assert "iou" in made.fallen and "qou" not in made.fallen
    assert any("IoU and QoU+IoU are not IoU sets" in one for one in made.warnings())
    notes = made.dataset().notes
    assert notes["mostly fallback"] == made.fallen and notes["counts"]["iou"]["procedure"] == 0
    rich = build(made_up(images=10), encoder=encoder)
    assert not rich.fallen and not any("not IoU sets" in one for one in rich.warnings())


def test_one_answer_everywhere_is_refused_in_words(encoder):
    made = build([triplet(n, f"is w{n}", "yes") for n in range(5)], encoder=encoder)
    assert "All targets are the same answer" in " ".join(made.warnings())
    with pytest.raises(ProbeError, match="at least two different answers"):
        made.dataset()


def test_one_question_an_image_is_told_and_counted():
    data = [triplet(n, f"what w{n}", answer) for n, answer in enumerate(("dog", "pizza", "river", "train"))]
    made = build(data, ("iou",))
    assert "No image has two questions" in " ".join(made.warnings())
    assert made.counts("iou")["procedure"] == 0 and made.counts("iou")["frequent target"] == 12


def test_questions_without_an_answer_are_left_out_and_counted(encoder):
    data = [*made_up(20), triplet("empty", "what w1", " "), triplet("none", "what w2", None, answers=("",))]
    made = build(data, encoder=encoder)
    assert len(made) == 20 and made.split.without_target == 2
    with pytest.raises(DataError, match="labelled split"):
        build(data[20:], encoder=encoder)


def test_a_question_without_known_words_falls_back(encoder):
    data = [triplet("?", "zzz", "umbrella"), *made_up(30)]
    made = build(data, ("qou",), encoder=encoder)
    assert len(made.decoys("QoU", 0)) == 3 and (made.kinds["qou"].origins[0] != 0).all()


def test_the_same_seed_gives_the_same_choices_and_another_seed_others(encoder):
    data = made_up()
    first, again, other = (build(data, encoder=encoder, seed=seed) for seed in (3, 3, 4))
    assert list(first.all_choices("QoU+IoU")) == list(again.all_choices("QoU+IoU"))
    assert list(first.all_choices("IoU")) != list(other.all_choices("IoU"))
    assert first.choices("IoU", 17) == list(first.all_choices("IoU"))[17]


def test_a_killed_build_goes_on_and_ends_the_same(encoder, tmp_path, monkeypatch):
    monkeypatch.setattr("pfungst.probes.decoys.building.SHARD", 40)
    data = made_up()

    def die(what, done, total):
        if what == "making decoys" and done >= 80:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(data, encoder=encoder, folder=tmp_path, progress=die)
    done = sorted(tmp_path.glob("decoys-*.npz"))
    stamps = [file.stat().st_mtime_ns for file in done]
    resumed = build(data, encoder=encoder, folder=tmp_path)
    assert done and [file.stat().st_mtime_ns for file in done] == stamps
    assert list(resumed.all_choices("QoU+IoU")) == list(build(data, encoder=encoder).all_choices("QoU+IoU"))


def test_decoys_that_are_both_are_answers_of_the_image_to_similar_questions(encoder):
    data = made_up(300, images=12)
    made = build(data, ("both",), encoder=encoder)
    by_image = {}
    for example in data:
        by_image.setdefault(example.image_id, set()).add(example.target)
    own = made.kinds["both"].origins == 0
    assert own.mean() > 0.9
    for number, example in enumerate(data):
        decoys = made.decoys("Both", number)
        assert all(decoy in by_image[example.image_id] for decoy, o in zip(decoys, own[number], strict=True) if o)
    plain = np.asarray([example.target not in ("yes", "no") for example in data])
    ranks = np.where(own, made.kinds["both"].ranks, 10**6)[plain]
    assert (np.diff(ranks, axis=1) >= 0).all(), "the answers of more similar questions come first"


def test_weaker_decoys_come_from_less_similar_questions(encoder):
    made = build(made_up(300), ("qou", "qou@100"), encoder=encoder)
    assert int(made.kinds["qou@100"].ranks[made.kinds["qou@100"].origins == 0].min()) > 100
    assert made.variants == ("QoU", "QoU@100")


@pytest.mark.parametrize("kinds", [("quo",), ("iou@5",), ("qou@x",), ()])
def test_unknown_kinds_are_refused(kinds):
    with pytest.raises(UsageError):
        build(made_up(10), kinds)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcde"), st.text(max_size=6), st.integers(0, 3)), min_size=1, max_size=20))
def test_whatever_the_answers_the_target_stands_once_among_choices_that_are_targets(rows):
    examples = [triplet(n, f"what {w}", answer, f"i{image}") for n, (w, answer, image) in enumerate(rows)]
    if not any(answer.strip() for _, answer, _ in rows):
        return
    made = build(examples, ("iou", "random"), k=2)
    known = {example.target for example in made.examples}
    for variant in made.variants:
        for example, choices in zip(made.examples, made.all_choices(variant), strict=True):
            names = [normalise(choice) for choice in choices]
            assert not choices or names.count(normalise(example.target)) == 1
            assert len(set(names)) == len(names) and set(choices) <= known


def test_a_neutral_fallback_draws_targets_as_often_as_they_are_right():
    answers = ["dog"] * 60 + ["pizza"] * 25 + [f"w{n}" for n in range(15)] * 7
    data = [triplet(n, f"w{n}", answer) for n, answer in enumerate(answers)]
    paper, ours = (build(data, ("iou",), fallback=name) for name in ("frequent", "neutral"))
    rare = [f"w{n}" for n in range(9, 15)]
    used = [Counter(text for n in range(len(data)) for text in made.decoys("IoU", n)) for made in (paper, ours)]
    assert sum(used[0][text] for text in rare) == 0 < sum(used[1][text] for text in rare)
    assert ours.counts("iou")["neutral target"] == ours.counts("iou")["decoys"]
    with pytest.raises(UsageError, match="frequent or neutral"):
        build(data, ("iou",), fallback="none")
