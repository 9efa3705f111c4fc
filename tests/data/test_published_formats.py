"""The formats beside VQA: what a small data set of each gives."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from pfungst.core import DataError, UsageError
from pfungst.data import load, scenes
from pfungst.data.formats.text_files import without_image
from pfungst.data.formats.vqa import answers_of
from pfungst.data.loading import detect
from pfungst.rows.files import list_folder
from tests.data import published_formats as make


@pytest.mark.parametrize("name", make.ALL)
def test_every_format_is_recognised_without_a_prefix(tmp_path: Path, name: str) -> None:
    make.ALL[name](tmp_path)
    assert detect(list_folder(tmp_path), str(tmp_path)).name == name
    assert load(tmp_path).notes["format"] == name
    assert load(f"{name}:{tmp_path}").fingerprint == load(tmp_path).fingerprint


@pytest.mark.parametrize("name", make.ALL)
def test_every_format_loads_from_one_zip_as_from_the_folder(tmp_path: Path, name: str) -> None:
    plain = make.ALL[name](tmp_path / name)
    members = {str(path.relative_to(tmp_path)): path.read_bytes() for path in plain.rglob("*") if path.is_file()}
    packed = make.archive(tmp_path / "packed.zip", members)
    one, other = load(f"{name}:{packed}"), load(f"{name}:{plain}")
    assert [replace(example, image=None) for example in one] == [replace(example, image=None) for example in other]
    assert [example.image and example.image.digest for example in one] == [
        example.image and example.image.digest for example in other
    ]


@pytest.mark.parametrize("name", make.ALL)
def test_ids_are_unique_and_right_answers_are_choices(tmp_path: Path, name: str) -> None:
    data = load(make.ALL[name](tmp_path), split="all")
    assert len({example.id for example in data}) == len(data)
    assert all(example.target in example.choices for example in data if example.choices)


# VQA-Rephrasings


def test_rephrasings_carry_the_group_of_their_original(tmp_path: Path) -> None:
    data = load(make.rephrasings(tmp_path))
    groups = {example.id: example.group for example in data}
    assert groups == {"1001": "1001", "10010": "1001", "10011": "1001", "10012": "", "1001:10012": "1001"}
    assert data.metric == "vqa"


def test_a_rephrasing_that_shares_an_id_keeps_its_own_answers(tmp_path: Path) -> None:
    targets = {example.id: example.target for example in load(make.rephrasings(tmp_path))}
    assert targets["10012"] == "yes"
    assert targets["1001:10012"] == "2"


# OK-VQA


def test_okvqa_is_told_from_vqa_by_its_annotations(tmp_path: Path) -> None:
    data = load(make.okvqa(tmp_path))
    assert data.name == "okvqa val"
    assert data[0].answers == ("race",) * 10
    assert data[0].question_type == "four"


def test_vqa2_in_a_folder_that_speaks_of_okvqa_stays_vqa2(tmp_path: Path) -> None:
    assert load(make.vqa2(tmp_path / "okvqa")).notes["format"] == "vqa"


def test_human_answers_are_rebuilt_from_soft_labels(tmp_path: Path) -> None:
    make.write(tmp_path / "okvqa" / "OpenEnded_mscoco_val2014_questions.json", make.vqa_questions([make.question(424)]))
    label = {"question_id": 424, "label": {"race": 1, "riding": 0.667, "sport": 0.667}, "img_id": "COCO_val2014_1"}
    make.write(tmp_path / "okvqa" / "val_soft_labels.json.gz", [label])
    data = load(tmp_path)
    assert Counter(data[0].answers) == {"race": 6, "riding": 2, "sport": 2}
    assert data[0].target == "race"
    assert "soft labels" in data.notes["answers"]


@pytest.mark.parametrize(
    ("scores", "counts"),
    [
        ({"a": 1}, {"a": 10}),
        ({"a": 1, "b": 1}, {"a": 5, "b": 5}),
        ({"a": 0.333, "b": 0.667, "c": 1.0}, {"a": 1, "b": 2, "c": 7}),
        ({"a": 0.667}, {"a": 2}),
        ({"a": 1, "b": 1, "c": 1, "d": 1}, {"a": 3, "b": 3, "c": 3, "d": 3}),
        ({}, {}),
    ],
)
def test_soft_labels_stand_for_so_many_people(scores: dict[str, float], counts: dict[str, int]) -> None:
    answers = answers_of(scores)
    assert Counter(answers) == counts
    assert all(min(answers.count(answer) / 3, 1) == pytest.approx(score, abs=1e-3) for answer, score in scores.items())


# Visual7W


def test_visual7w_splits_come_from_the_records(tmp_path: Path) -> None:
    make.visual7w(tmp_path)
    assert len(load(tmp_path)) == 20
    assert [example.id for example in load(tmp_path, split="train")] == ["10"]
    assert [example.id for example in load(f"{tmp_path}#test")] == ["50"]
    assert len(load(tmp_path, split="all")) == 22
    with pytest.raises(DataError, match="train, val, test"):
        load(tmp_path, split="challenge")


def test_the_place_of_the_right_answer_is_no_cue(tmp_path: Path) -> None:
    data = load(make.visual7w(tmp_path))
    places = Counter(example.choices.index("A cat.") for example in data)
    assert set(places) == {0, 1, 2, 3}
    assert max(places.values()) <= 10
    assert all(sorted(example.choices) == ["A cat.", "A cow.", "A dog.", "A fox."] for example in data)
    assert data.metric == "choice"
    assert data.examples == load(tmp_path).examples


def test_visual7w_pictures_go_by_their_file_name(tmp_path: Path) -> None:
    make.visual7w(tmp_path)
    content = make.picture(tmp_path / "images" / "v7w_2.jpg")
    image = load(tmp_path)[0].image
    assert image is not None and image.read() == content


def test_a_question_without_wrong_answers_has_no_choices(tmp_path: Path) -> None:
    pair = {"qa_id": 1, "question": "Who?", "answer": "me", "type": "who", "multiple_choices": []}
    images = [{"image_id": 1, "split": "val", "qa_pairs": [pair]}]
    make.write(tmp_path / "dataset_v7w_telling.json", {"dataset": "v7w_telling", "images": images})
    assert load(tmp_path)[0].choices == ()


def test_pointing_questions_are_refused_with_a_reason(tmp_path: Path) -> None:
    value = {"dataset": "v7w_pointing", "images": [{"image_id": 1, "split": "val", "qa_pairs": [{}]}]}
    make.write(tmp_path / "dataset_v7w_pointing.json", value)
    with pytest.raises(DataError, match="pointing"):
        load(tmp_path)


# Visual Genome


def test_visual_genome_reads_all_questions_of_all_pictures(tmp_path: Path) -> None:
    make.genome(tmp_path)
    content = make.picture(tmp_path / "VG_100K_2" / "1.jpg")
    data = load(tmp_path)
    assert [(e.id, e.image_id, e.target, e.question_type) for e in data] == [
        ("986769", "1", "Green.", "what"),
        ("986768", "1", "A man.", "who"),
        ("5", "3", "Yes.", ""),
    ]
    assert data.metric == "exact"
    assert data[0].image is not None and data[0].image.read() == content
    assert data[2].image is None


# COCO-QA


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_cocoqa_lines_belong_together(tmp_path: Path, end: str) -> None:
    data = load(make.cocoqa(tmp_path, end))
    first, second, third = data
    assert (first.id, first.question, first.target, first.image_id) == ("test-1", "what is on the table", "cup", "73")
    assert [e.question_type for e in data] == ["object", "number", "color"]
    assert [e.answer_type for e in data] == ["other", "number", "other"]
    assert (second.target, third.image_id) == ("two", "99")
    assert data.metric == "exact"
    assert load(tmp_path, split="train")[0].image_id == "42"


def test_cocoqa_pictures_are_of_the_coco_split_they_were_taken_from(tmp_path: Path) -> None:
    make.cocoqa(tmp_path)
    content = make.picture(tmp_path / "val2014" / "COCO_val2014_000000000073.jpg")
    image = load(tmp_path)[0].image
    assert image is not None and image.read() == content


def test_cocoqa_files_of_unequal_length_are_never_paired(tmp_path: Path) -> None:
    make.cocoqa(tmp_path)
    (tmp_path / "test" / "answers.txt").write_text("cup\ntwo\n")
    for skip_bad in (False, True):
        with pytest.raises(DataError, match=r"questions.txt, line 3: answers.txt ends here"):
            load(tmp_path, skip_bad=skip_bad)


def test_cocoqa_without_answers_is_unlabelled(tmp_path: Path) -> None:
    make.cocoqa(tmp_path)
    (tmp_path / "test" / "answers.txt").unlink()
    (tmp_path / "test" / "types.txt").unlink()
    example = load(tmp_path)[0]
    assert (example.answers, example.target, example.question_type) == ((), None, "")


@pytest.mark.parametrize(("file", "line"), [("types", "7"), ("img_ids", "x"), ("img_ids", "-4"), ("answers", " ")])
def test_a_bad_cocoqa_line_is_told_by_its_number(tmp_path: Path, file: str, line: str) -> None:
    make.cocoqa(tmp_path)
    path = tmp_path / "test" / f"{file}.txt"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], line, lines[2]]) + "\n")
    with pytest.raises(DataError, match=r"questions.txt, line 2:"):
        load(tmp_path)
    data = load(tmp_path, skip_bad=True)
    assert (len(data), data.skipped) == (2, 1)


# DAQUAR


def test_the_daquar_release_is_pairs_of_lines(tmp_path: Path) -> None:
    content = make.picture(tmp_path / "nyu_depth_images" / "image3.png")
    first, second = load(make.daquar(tmp_path))
    assert first.question == "what is on the right side of the black telephone and on the left side of the red chair"
    assert (first.id, first.image_id, first.target) == ("test-1", "image3", "desk")
    assert first.image is not None and first.image.read() == content
    assert second.answers == ("cup, plate, book",)


def test_daquar_tables_give_the_same_shape(tmp_path: Path) -> None:
    data = load(make.daquar_csv(tmp_path))
    assert [(e.id, e.question, e.target, e.image_id) for e in data] == [
        ("eval-1", "what is on the table", "cup, plate", "image3"),
        ("eval-2", "how many chairs are there", "6", "image5"),
    ]
    assert [e.answer_type for e in data] == ["other", "number"]
    assert load(tmp_path, split="test").examples == data.examples
    assert len(load(tmp_path, split="all")) == 4


def test_the_reduced_daquar_is_an_option(tmp_path: Path) -> None:
    assert len(load(make.daquar(tmp_path), classes=37)) == 1
    assert len(load(tmp_path)) == 2


def test_the_reduced_daquar_alone_needs_no_option(tmp_path: Path) -> None:
    make.daquar(tmp_path)
    for file in tmp_path.glob("qa.894.*"):
        file.unlink()
    assert len(load(tmp_path)) == 1


def test_a_daquar_answer_that_is_missing_does_not_shift_the_others(tmp_path: Path) -> None:
    make.write(tmp_path / "qa.894.raw.test.txt", "what in the image1 ?\n\nhow many in the image2 ?\n3\n")
    with pytest.raises(DataError, match="line 3: the question of line 1 has no answer"):
        load(tmp_path, skip_bad=True)


@pytest.mark.parametrize(
    ("line", "question", "image"),
    [
        ("what is on the table in the image12 ?", "what is on the table", "image12"),
        ("what is on the table in the image12?", "what is on the table", "image12"),
        ("what is left of the lamp in image7 ?", "what is left of the lamp", "image7"),
        ("which image12 object is red ?", "which image12 object is red ?", "image12"),
        ("what is it ?", "what is it ?", ""),
    ],
)
def test_the_file_name_is_no_part_of_a_daquar_question(line: str, question: str, image: str) -> None:
    assert without_image(line) == (question, image)


def test_a_daquar_question_without_answer_or_image_is_told(tmp_path: Path) -> None:
    make.write(tmp_path / "qa.894.raw.test.txt", "what is it in the image1 ?\ncup\nand this in the image2 ?\n")
    with pytest.raises(DataError, match="line 3: the last question has no answer"):
        load(tmp_path)
    make.write(tmp_path / "qa.894.raw.test.txt", "what is it ?\ncup\n")
    with pytest.raises(DataError, match="line 1: the question names no image"):
        load(tmp_path)


# GQA


def test_gqa_questions_are_members_of_one_object(tmp_path: Path) -> None:
    content = make.picture(tmp_path / "images" / "2354786.jpg")
    data = load(make.gqa(tmp_path))
    first, second = data
    assert (first.id, first.image_id, first.target) == ("02930152", "2354786", "yes")
    assert (first.question_type, first.answer_type) == ("verify", "binary")
    assert (second.question_type, second.answer_type) == ("query", "open")
    assert first.program is None
    assert first.image is not None and first.image.read() == content
    assert data.metric == "exact"
    assert load(tmp_path, split="test")[0].target is None


def test_a_list_of_gqa_questions_is_a_table(tmp_path: Path) -> None:
    file = next(make.gqa(tmp_path / "released").rglob("*_balanced_questions.json"))
    asked = [{"id": id_, **value} for id_, value in json.loads(file.read_text()).items()]
    data = load(make.write(tmp_path / "listed" / file.name, asked))
    assert data.notes["format"] == "table"
    assert [(one.id, one.question, one.target) for one in data] == [
        (one.id, one.question, one.target) for one in load(file)
    ]


def test_all_gqa_questions_may_lie_in_many_files(tmp_path: Path) -> None:
    make.gqa(tmp_path)
    value = json.loads((tmp_path / "val_balanced_questions.json").read_text())
    for number, (id_, one) in enumerate(value.items()):
        make.write(tmp_path / "train_all_questions" / f"train_all_questions_{number}.json", {id_: one})
    assert len(load(tmp_path, version="all")) == 2
    assert load(tmp_path).notes["splits"]["taken"] == ["val"]
    with pytest.raises(UsageError, match="version of the format gqa must be balanced or all or none, not 'some'"):
        load(tmp_path, version="some")


# CLEVR


@pytest.mark.parametrize(("key", "values"), [("function", "value_inputs"), ("type", "side_inputs")])
def test_clevr_programs_load_in_one_spelling(tmp_path: Path, key: str, values: str) -> None:
    data = load(make.clevr(tmp_path, key, values))
    assert data[0].program == (
        {"function": "scene", "inputs": [], "value_inputs": []},
        {"function": "filter_color", "inputs": [0], "value_inputs": ["red"]},
        {"function": "count", "inputs": [1], "value_inputs": []},
    )
    assert [e.question_type for e in data] == ["count", "exist"]
    assert [e.answer_type for e in data] == ["number", "yes/no"]


def test_clevr_questions_carry_scene_and_picture(tmp_path: Path) -> None:
    content = make.picture(tmp_path / "images" / "val" / "CLEVR_val_000000.png")
    first, second = load(make.clevr(tmp_path))
    assert first.scene is not None and first.scene["image_index"] == 0
    assert second.scene is not None and second.scene["image_index"] == 1
    assert first.image is not None and first.image.read() == content
    assert first.image_id == "CLEVR_val_000000.png"
    assert load(f"{tmp_path}?scenes=no")[0].scene is None
    (only,) = load(tmp_path / "questions" / "CLEVR_val_questions.json", limit=1)
    assert only.scene == first.scene


def test_answers_of_the_clevr_generator_become_words(tmp_path: Path) -> None:
    questions = [
        {"image_index": 0, "question": f"Question {n}?", "answer": answer, "program": []}
        for n, answer in enumerate([True, False, 3, "cube"])
    ]
    make.write(tmp_path / "CLEVR_new_questions.json", {"questions": questions})
    data = load(tmp_path)
    assert [e.target for e in data] == ["yes", "no", "3", "cube"]
    assert [e.id for e in data] == ["0", "1", "2", "3"]
    assert data[0].image_id == "CLEVR_new_000000.png"


def test_one_file_may_hold_questions_and_scenes(tmp_path: Path) -> None:
    make.clevr(tmp_path / "two")
    whole = {
        **json.loads((tmp_path / "two" / "scenes" / "CLEVR_val_scenes.json").read_text()),
        **json.loads((tmp_path / "two" / "questions" / "CLEVR_val_questions.json").read_text()),
    }
    file = make.write(tmp_path / "one" / "sample.json", whole)
    assert load(file).examples == load(tmp_path / "two").examples


def test_clevr_splits_read_together_have_ids_of_their_own(tmp_path: Path) -> None:
    make.clevr(tmp_path)
    text = (tmp_path / "questions" / "CLEVR_val_questions.json").read_text().replace("val", "train")
    make.write(tmp_path / "questions" / "CLEVR_train_questions.json", text)
    assert {e.id for e in load(tmp_path, split="all")} == {"train-0", "train-1", "val-0", "val-1"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"program": "scene"}, '"program" is text'),
        ({"program": [{"inputs": [0], "function": "count"}]}, "not earlier nodes"),
        ({"program": [{"inputs": []}]}, "names no function"),
        ({"program": [{"function": "scene", "inputs": [], "value_inputs": [3]}]}, "value inputs"),
        ({"answer": [1]}, '"answer" is a list'),
        ({"image_filename": None, "image_index": -1}, "names the image"),
        ({"image_filename": None, "image_index": 10**400}, "names the image"),
    ],
)
def test_a_bad_clevr_question_is_told(tmp_path: Path, change: dict[str, object], message: str) -> None:
    make.clevr(tmp_path)
    file = tmp_path / "questions" / "CLEVR_val_questions.json"
    value = json.loads(file.read_text())
    value["questions"][1] |= change
    make.write(file, value)
    with pytest.raises(DataError, match=message) as caught:
        load(tmp_path)
    assert "record 2" in str(caught.value)


@pytest.mark.parametrize("coords", [[1, 2], ["a", 1, 2], [float("nan"), 0, 0], [10**400, 0, 0], "here"])
def test_scenes_with_impossible_coordinates_are_refused(tmp_path: Path, coords: object) -> None:
    make.write(
        tmp_path / "CLEVR_val_scenes.json",
        {"scenes": [{"image_index": 0, "split": "val", "objects": [{**make.OBJECT, "3d_coords": coords}]}]},
    )
    with pytest.raises(DataError, match=r"record 1: .*3d_coords"):
        scenes(tmp_path)


@pytest.mark.parametrize("size", [[480], "480x320", [0, 0], [True, None]])
def test_scenes_with_impossible_image_sizes_are_refused(tmp_path: Path, size: object) -> None:
    scene = {"image_index": 0, "split": "val", "objects": [make.OBJECT], "image_size": size}
    make.write(tmp_path / "CLEVR_val_scenes.json", {"scenes": [scene]})
    with pytest.raises(DataError, match=r"record 1: .*image_size"):
        scenes(tmp_path)


def test_scenes_alone_are_read_by_their_own_function(tmp_path: Path) -> None:
    make.clevr(tmp_path)
    found = scenes(tmp_path)
    assert list(found) == [f"CLEVR_val_{n:06d}.png" for n in range(3)]
    assert found == scenes(tmp_path / "scenes" / "CLEVR_val_scenes.json")
    (tmp_path / "questions" / "CLEVR_val_questions.json").unlink()
    with pytest.raises(DataError, match=r"pfungst\.data\.scenes"):
        load(tmp_path)
