"""Scores on real human answers."""

from __future__ import annotations

import csv
import gzip
import importlib.util
import json
import random
from pathlib import Path

import pytest

from pfungst.scores import vqa_accuracy, wups_accuracy
from pfungst.text import wups

ROOT = Path(__file__).resolve().parents[2]


def test_official_accuracy_on_vqa2_equals_a_straightforward_evaluation(shared_data: Path) -> None:
    spec = importlib.util.spec_from_file_location("straightforward", ROOT / "benchmarks" / "vqa_accuracy.py")
    assert spec is not None and spec.loader is not None
    peer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(peer)
    with gzip.open(shared_data / "vqa2" / "val_annotations.json.gz") as file:
        annotations = json.load(file)["annotations"][:4_000]
    humans = [[person["answer"] for person in one["answers"]] for one in annotations]
    said = peer.predictions(humans, random.Random(0))
    scores = [vqa_accuracy(a, b) for a, b in zip(said, humans, strict=True)]
    assert scores == [peer.straightforward_accuracy(a, b) for a, b in zip(said, humans, strict=True)]


def test_daquar_sets_score_one_against_themselves_in_any_order_and_less_when_one_is_missing(shared_data: Path) -> None:
    with (shared_data / "daquar" / "data_eval.csv").open(newline="") as file:
        answers = [row["answer"] for row in csv.DictReader(file)]
    sets = sorted({answer for answer in answers if "," in answer})
    turned = [", ".join(reversed(answer.split(", "))) for answer in sets]
    assert wups_accuracy(turned, sets) == 1.0
    shortened = [answer.rpartition(",")[0] for answer in sets]
    assert all(wups(less, answer, 0.9) <= wups(less, answer, 0.0) <= 1.0 for less, answer in zip(shortened, sets))
    assert wups_accuracy(shortened, sets) < 0.5


def test_wups_orders_as_published_on_coco_qa(shared_data: Path) -> None:
    """Of one guess for every question: accuracy <= WUPS at 0.9 <= WUPS at 0.0, all strictly on real answers."""
    truths = (shared_data / "cocoqa" / "test" / "answers.txt").read_text().split("\n")[:3_000]
    truths = [truth for truth in truths if truth]
    guesses = ["dog"] * len(truths)
    accuracy = sum(truth == "dog" for truth in truths) / len(truths)
    strict, loose = wups_accuracy(guesses, truths, 0.9), wups_accuracy(guesses, truths, 0.0)
    assert accuracy < strict < loose < 1.0
    assert strict == pytest.approx(sum(wups("dog", truth, 0.9) for truth in truths) / len(truths))
