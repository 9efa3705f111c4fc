"""The loaders on real files."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from pfungst.core import FileImage
from pfungst.data import check, load, scenes


def read(path: Path) -> object:
    with gzip.open(path) as file:
        return json.load(file)


@pytest.mark.parametrize(("split", "count"), [("train", 48_061), ("val", 8_977)])
def test_vqa2_is_what_json_load_says(shared_data: Path, split: str, count: int) -> None:
    data = load(shared_data / "vqa2", split=split)
    questions = read(shared_data / "vqa2" / f"{split}_questions.json.gz")["questions"]  # type: ignore[index]
    annotations = read(shared_data / "vqa2" / f"{split}_annotations.json.gz")["annotations"]  # type: ignore[index]
    labels = {one["question_id"]: one for one in annotations}
    assert len(data) == count == len(questions)
    for example, asked in zip(data, questions, strict=True):
        label = labels[asked["question_id"]]
        assert example.id == str(asked["question_id"])
        assert example.question == asked["question"]
        assert example.image_id == str(asked["image_id"])
        assert example.answers == tuple(one["answer"] for one in label["answers"])
        assert example.target == label["multiple_choice_answer"]
        assert (example.answer_type, example.question_type) == (label["answer_type"], label["question_type"])
    assert data.metric == "vqa"
    assert all(len(example.answers) == 10 for example in data)


def test_vqa2_says_that_its_training_questions_were_left_and_reads_both_when_asked(shared_data: Path) -> None:
    data = load(shared_data / "vqa2")
    assert (len(data), data.notes["splits"]) == (8_977, {"taken": ["val"], "left": ["train"]})
    both = load(f"{shared_data / 'vqa2'}#train+val")
    assert len(both) == len({example.id for example in both}) == 57_038


def test_vqa2_files_are_checked_without_a_bad_record(shared_data: Path) -> None:
    report = check(shared_data / "vqa2")
    assert not report.ok and report.no_images.startswith("Not one of the ")  # the folder holds no photographs
    assert check(shared_data / "vqa2", images="none").ok and not report.bad_records
    assert report.examples == 57_038
    assert set(report.answer_types) == {"yes/no", "number", "other"}
    assert report.missing_images == report.images


def test_vqa2_finds_a_real_photograph_under_its_coco_name(shared_data: Path, tmp_path: Path) -> None:
    example = load(shared_data / "vqa2", limit=1)[0]
    photograph = min((shared_data / "daquar" / "images").iterdir())
    target = tmp_path / "train2014" / f"COCO_train2014_{int(example.image_id):012d}.jpg"
    target.parent.mkdir()
    shutil.copy(photograph, target)
    image = load(shared_data / "vqa2", limit=1, images=tmp_path)[0].image
    assert image is not None
    assert image.read() == photograph.read_bytes()


@pytest.mark.parametrize(("split", "count"), [("train", 78_736), ("test", 38_948)])
def test_the_whole_cocoqa_loads(shared_data: Path, split: str, count: int) -> None:
    data = load(shared_data / "cocoqa", split=split)
    folder = shared_data / "cocoqa" / split
    assert len(data) == count
    assert [e.question for e in data] == (folder / "questions.txt").read_text().splitlines()
    assert [e.target for e in data] == (folder / "answers.txt").read_text().splitlines()
    assert [e.image_id for e in data] == (folder / "img_ids.txt").read_text().split()
    words = {"0": "object", "1": "number", "2": "color", "3": "location"}
    assert [e.question_type for e in data] == [words[one] for one in (folder / "types.txt").read_text().split()]
    assert {(e.question_type == "number", e.answer_type) for e in data} == {(True, "number"), (False, "other")}
    assert data.metric == "exact"


def test_daquar_loads_with_its_photographs(shared_data: Path) -> None:
    data = load(shared_data / "daquar", split="all")
    assert len(data) == 12_468
    assert all(isinstance(example.image, FileImage) for example in data)
    with open(shared_data / "daquar" / "data_eval.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    evaluation = load(shared_data / "daquar")
    assert [e.question for e in evaluation] == [row["question"].strip() for row in rows]
    assert [e.target for e in evaluation] == [row["answer"] for row in rows]
    assert any("," in (example.target or "") for example in evaluation)
    assert Counter(e.answer_type for e in data) == {"other": 10_775, "number": 1_693}
    first = evaluation[0]
    assert first.image is not None
    assert first.image.read() == (shared_data / "daquar" / "images" / f"{first.image_id}.jpg").read_bytes()
    assert min(first.image.pil().size) == 256


def test_okvqa_answers_rebuilt_from_soft_labels_give_those_scores(shared_data: Path) -> None:
    data = load(shared_data / "okvqa")
    labels = {str(one["question_id"]): one["label"] for one in read(shared_data / "okvqa" / "val_soft_labels.json.gz")}  # type: ignore[attr-defined]
    assert (len(data), data.metric) == (5_046, "vqa")
    assert {len(example.answers) for example in data} == {10}
    for example in data:
        for answer, score in labels[example.id].items():
            assert min(example.answers.count(answer) / 3, 1) == pytest.approx(score, abs=1e-3)


def test_real_predictions_on_okvqa_score_as_their_soft_labels_say(shared_data: Path) -> None:
    answers = {example.id: example.answers for example in load(shared_data / "okvqa")}
    labels = {str(one["question_id"]): one["label"] for one in read(shared_data / "okvqa" / "val_soft_labels.json.gz")}  # type: ignore[attr-defined]
    files = sorted((shared_data / "okvqa").glob("coco14_*.json.gz"))
    assert len(files) == 3
    for file in files:
        right = 0
        for one in read(file):  # type: ignore[attr-defined]
            id_, said = str(one["question_id"]), one["answer"]
            score = min(answers[id_].count(said) / 3, 1)
            assert score == pytest.approx(labels[id_].get(said, 0), abs=1e-3)
            right += score > 0
        assert right > 2_000  # the comparison is not one of zeros


def test_a_thousand_clevr_scenes_are_what_json_load_says(shared_data: Path) -> None:
    found = scenes(shared_data / "clevr" / "CLEVR_train_scenes_1000.json.gz")
    raw = read(shared_data / "clevr" / "CLEVR_train_scenes_1000.json.gz")["scenes"]  # type: ignore[index]
    assert list(found.values()) == raw
    assert list(found) == [scene["image_filename"] for scene in raw]


def test_clevr_questions_of_the_published_engine_meet_their_scenes(shared_data: Path) -> None:
    data = load(shared_data / "clevr" / "parity_sample.json.gz")
    assert len(data) == 484
    assert all(example.scene is not None and example.program for example in data)
    assert all(example.scene["image_filename"] == example.image_id for example in data if example.scene)
    kinds = Counter(example.answer_type for example in data)
    assert set(kinds) == {"yes/no", "number", "other"}


def test_real_clevr_pictures_are_found_by_name(shared_data: Path, tmp_path: Path) -> None:
    real = scenes(shared_data / "clevr" / "CLEVR_train_scenes_1000.json.gz")
    names = sorted(path.stem for path in (shared_data / "clevr" / "images").iterdir())
    asked = [name for name in names if f"{name}.png" in real][:20]
    questions = [
        {"question_index": n, "image_filename": f"{name}.png", "question": "How many things are there?", "answer": "3"}
        for n, name in enumerate(asked)
    ]
    file = tmp_path / "CLEVR_train_questions.json"
    file.write_text(json.dumps({"questions": questions}))
    data = load(file, images=shared_data / "clevr" / "images")
    for example, name in zip(data, asked, strict=True):
        assert example.image is not None
        assert example.image.read() == (shared_data / "clevr" / "images" / f"{name}.jpg").read_bytes()


@pytest.mark.parametrize("kind", ["adversarial", "popular", "random"])
def test_pope_as_released_is_json_lines_in_a_json_file(shared_data: Path, kind: str) -> None:
    path = shared_data / "answers" / "pope" / f"labels_coco_pope_{kind}.json"
    if not path.is_file():
        pytest.skip("POPE is not here")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    data = load(path)
    assert data.metric == "yes/no"
    assert [(one.id, one.question, one.target, one.image_id) for one in data] == [
        (str(row["question_id"]), row["text"], row["label"], row["image"]) for row in rows
    ]
    assert len({one.image_id for one in data}) == 500
