"""How many decoys may be right too, and the conclusion without decoys from the fallback."""

from dataclasses import replace

import numpy as np
import pytest

from pfungst.core import Dataset, Example
from pfungst.probes.decoys import Decoys
from pfungst.probes.decoys.ambiguity import ALIKE, GIVEN, Alike, note
from pfungst.probes.decoys.probe import OWN
from tests.probes.decoys.conftest import made_up
from tests.probes.decoys.test_probe import answered, found, vectors  # noqa: F401  (a fixture)


@pytest.fixture
def words(tmp_path):
    path = tmp_path / "words.npz"
    near = np.array([[1, 0], [0.99, 0.1], [0, 1], [-1, 0]], np.float32)
    np.savez(path, words=np.array(["plate", "plates", "cup", "fork"]), vectors=near)
    return f"words:{path}"


def test_a_decoy_counts_that_somebody_gave_or_that_every_encoder_calls_the_same(words):
    one = Example("1", "What is it?", answers=("plate", "a cup", "Plate.", "bowl"), target="plate")
    choices = ("fork", "plate", "plates", "cup")
    near = note(one, choices, Alike(choices, [words]))
    assert near == {"decoys": 3, "alike": 1, "polar": 0, "given": 1}
    assert note(one, choices, Alike(choices, [words, "tfidf"]))["alike"] == 0  # no word is the same
    alone = replace(one, answers=("plate",))
    assert "given" not in note(alone, choices, Alike(choices, [words]))


def test_the_report_says_how_many_decoys_may_be_right_apart_from_yes_and_no(vectors):  # noqa: F811
    data = made_up(80, images=10)
    plain = [replace(one, answers=(str(one.target),) * 10) for one in data]
    polar = [
        replace(one, id=f"{one.id}-p", target="yes" if at % 2 else "no", answers=("yes",) * 5 + ("no",) * 5)
        for at, one in enumerate(plain)
    ]
    probe = Decoys(encoder=vectors)
    findings = probe.findings(answered(probe, Dataset("both", [*plain, *polar]), lambda q, e: e.target), 0)
    name = "decoys that may be right"
    every, open_ = found(findings, name, GIVEN), found(findings, name, f"{GIVEN}, neither yes nor no")
    others = [one for one in plain if one.target not in ("yes", "no")]
    assert open_.value == 0 and open_.n == len(others) and 0 < every.value < 1 and every.n == 160
    assert found(findings, name, f"{ALIKE}, neither yes nor no").value < 0.2
    assert "Decoys that may be right too: an annotator gave 0.0%" in findings.verdict
    assert "Decoys that may be right too" in [table.title for table in findings.tables]


def test_the_conclusion_without_fallbacks_stands_in_the_verdict_with_its_drop(vectors):  # noqa: F811
    """Images with one question have only fallbacks for decoys of the image; those with eight have none."""
    data = made_up(64, images=8)
    many = list(data)
    lone = [replace(one, id=f"{one.id}-l", image_id=f"lone {one.id}") for one in many]
    fits = {str(one.target) for one in many}

    def say(query, example):
        """Knows the answer, but for decoys of crowded images, where it takes the first other answer."""
        wrong = [one for one in query.choices if one != example.target and one in fits]
        return wrong[0] if len(query.choices) > 5 and not example.id.endswith("-l") and wrong else example.target

    probe = Decoys(encoder=vectors)
    trials = answered(probe, Dataset("both", [*many, *lone]), say)
    findings = probe.findings(trials, 0)
    clear = [one for one in trials if not one.trial.notes["fallbacks"]]
    assert 0 < len(clear) < len(trials)
    share = found(findings, "decoys from the fallback", "IoU")
    counts = [one.trial.notes["fallbacks"].get("iou", 0) / one.trial.notes["decoys"]["iou"] for one in trials]
    assert share.value == pytest.approx(np.mean(counts))
    apart = found(findings, "accuracy", "QoU+IoU" + OWN)
    headline = [v.name for v in clear[0].trial.variants].index("QoU+IoU")
    assert apart.value == pytest.approx(np.mean([one.scores[headline] for one in clear])) and apart.n == len(clear)
    drop = found(findings, "drop", "Random to QoU+IoU" + OWN)
    names = [v.name for v in clear[0].trial.variants]
    lost = []
    for one in clear:  # at the chance of the set with fewer options, where they differ
        wrong = [1 - one.scores[names.index(name)] for name in ("QoU+IoU", "Random")]
        by_guessing_wrong = [
            1 - 1 / len(one.trial.variants[names.index(name)].query.choices) for name in ("QoU+IoU", "Random")
        ]
        least = min(by_guessing_wrong)
        lost.append(wrong[0] * least / by_guessing_wrong[0] - wrong[1] * least / by_guessing_wrong[1])
    assert drop.value == pytest.approx(np.mean(lost))
    assert f"Over the {len(clear)} of {len(trials)} questions without a fallback" in findings.verdict
    assert "of the IoU decoys" in findings.verdict and "elimination is worth" in findings.verdict


def test_where_every_question_has_fallbacks_the_conclusion_is_over_the_kind_that_has_none(vectors):  # noqa: F811
    data = [replace(one, image_id=f"alone {one.id}") for one in made_up(60, images=10)]
    probe = Decoys(encoder=vectors)
    trials = answered(probe, Dataset("alone", data), lambda q, e: q.choices[0] if q.choices else "")
    findings = probe.findings(trials, 0)
    assert all(one.trial.notes["fallbacks"]["iou"] for one in trials)
    place = [v.name for v in trials[0].trial.variants].index("QoU")
    clear = [one for one in trials if not one.trial.notes["fallbacks"].get("qou")]
    own = found(findings, "accuracy", "QoU" + OWN)
    assert own.value == pytest.approx(np.mean([one.scores[place] for one in clear])) and own.n == len(clear) > 0
    assert "No question of QoU+IoU is without a fallback. Over the" in findings.verdict
    assert f" Over the {len(clear)} whose QoU decoys are without" in findings.verdict
    assert "100.0% [" in findings.verdict  # of the IoU decoys come from the fallback
