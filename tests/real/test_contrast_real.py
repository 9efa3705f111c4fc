"""Contrast on released CLEVR scenes, on POPE's questions, and on the shared files of VQA v2."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from pfungst.core import Dataset, Example
from pfungst.data import load, scenes
from pfungst.probes import check_probe
from pfungst.probes.contrast import Contrast
from pfungst.probes.contrast.groups import changed, minimal_pair, same_question
from pfungst.world import Scene, answer, answer_text
from pfungst.world.questions import generate


def test_released_scenes_have_minimal_pairs(shared_data: Path) -> None:
    released = dict(islice(scenes(shared_data / "clevr" / "CLEVR_train_scenes_1000.json.gz").items(), 12))
    examples = [
        Example(
            id=str(one.index),
            question=one.question,
            image_id=one.image_filename,
            answers=(one.answer,),
            target=one.answer,
            scene=released[one.image_filename],
            program=one.program,
        )
        for one in generate([Scene.from_json(scene) for scene in released.values()], 3)
    ]
    pairs = [(example, pair) for example in examples if (pair := minimal_pair(example, 0)) is not None]
    assert len(pairs) > len(examples) / 2
    for example, pair in pairs:
        said = answer(example.program, changed(pair.scene, pair.matters).to_json())
        assert said is not None and answer_text(said) == pair.matters.answer
    assert check_probe(Contrast(), Dataset("clevr", examples, metric="exact")) == []


def test_pope_asks_one_question_about_many_images(shared_data: Path) -> None:
    data = load(shared_data / "answers" / "pope" / "labels_coco_pope_adversarial.json")
    pairs = list(same_question(data, 0))
    used = [member.example.id for pair in pairs for member in pair]
    assert len(pairs) > 500 and len(set(used)) == len(used)
    for first, second in pairs:
        assert first.example.question == second.example.question and first.example.image_id != second.example.image_id
        assert {first.example.target, second.example.target} == {"yes", "no"}


def test_pairs_of_vqa_have_two_answers(shared_data: Path) -> None:
    data = load(shared_data / "vqa2")
    trials = list(islice(Contrast(by="question").trials(data, 0), 200))
    assert len(trials) == 200
    assert all(len(trial.variants) == 2 and len(set(trial.notes["images"])) == 2 for trial in trials)
