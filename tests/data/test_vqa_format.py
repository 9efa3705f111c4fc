"""VQA v1 and v2: questions, annotations, pictures."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from pfungst.core import DataError, FileImage, ZipImage
from pfungst.data import load
from pfungst.data.job import FEW
from tests.data import published_formats as make
from tests.data.published_formats import annotation, question


def test_questions_meet_their_annotations(tmp_path: Path) -> None:
    # the annotations stand in another order than the questions
    labels = [annotation(42001, answers=["yes"] * 10, answer_type="yes/no"), annotation()]
    data = load(make.vqa2(tmp_path, annotations=labels))
    first, second = data
    assert (first.id, first.question, first.image_id) == ("42000", "What is on the table?", "42")
    assert first.answers == ("cup",) * 7 + ("mug",) * 3
    assert (first.target, first.answer_type, first.question_type) == ("cup", "other", "what is")
    assert (second.target, second.answer_type) == ("yes", "yes/no")
    assert (data.metric, data.skipped, data.name) == ("vqa", 0, "vqa val")
    assert first.group == "" and first.choices == ()


def test_a_test_split_without_annotations_is_unlabelled(tmp_path: Path) -> None:
    make.vqa2(tmp_path)
    make.write(tmp_path / make.VQA2.format("test2015"), make.vqa_questions([question(7, 7)], "test2015"))
    (example,) = load(tmp_path, split="test")
    assert (example.answers, example.target, example.answer_type) == ((), None, "")


def test_the_annotations_of_another_split_are_not_taken(tmp_path: Path) -> None:
    make.write(tmp_path / make.VQA2.format("test2015"), make.vqa_questions([question()], "test2015"))
    make.write(tmp_path / make.VQA2_ANNOTATIONS.format("val2014"), make.vqa_annotations([annotation()]))
    assert load(tmp_path)[0].target is None


def test_validation_questions_are_preferred_and_the_others_named(tmp_path: Path) -> None:
    make.vqa2(tmp_path)
    make.write(tmp_path / make.VQA2.format("train2014"), make.vqa_questions([question(9, 9)], "train2014"))
    make.write(tmp_path / make.VQA2_ANNOTATIONS.format("train2014"), make.vqa_annotations([annotation(9, 9)]))
    data = load(tmp_path)
    assert len(data) == 2
    assert data.notes["splits"] == {"taken": ["val2014"], "left": ["train2014"]}
    assert [e.id for e in load(f"{tmp_path}#train")] == ["9"]
    assert [e.id for e in load(tmp_path, split="train2014")] == ["9"]
    assert len(load(f"{tmp_path}#all")) == 3


def test_an_unknown_split_is_told_with_those_that_are_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no split 'trian'.*val2014"):
        load(make.vqa2(tmp_path), split="trian")


def test_multiple_choices_are_judged_as_choices(tmp_path: Path) -> None:
    data = load(make.vqa1_multiple_choice(tmp_path))
    assert data.metric == "choice"
    assert len(data[0].choices) == 18
    assert data[0].target in data[0].choices


def test_open_ended_questions_are_read_unless_the_other_task_is_named(tmp_path: Path) -> None:
    make.vqa1_multiple_choice(tmp_path)
    make.write(tmp_path / "OpenEnded_mscoco_val2014_questions.json", make.vqa_questions([question()]))
    assert load(tmp_path)[0].choices == ()
    assert len(load(f"{tmp_path}?task=multiple-choice")[0].choices) == 18
    assert len(load(tmp_path, task="mc")[0].choices) == 18
    with pytest.raises(DataError, match="no task 'essay'"):
        load(tmp_path, task="essay")


def test_two_releases_in_one_folder_must_be_told_apart(tmp_path: Path) -> None:
    make.vqa2(tmp_path)
    make.write(tmp_path / "OpenEnded_mscoco_val2014_questions.json", make.vqa_questions([question(1, 1)]))
    make.write(tmp_path / "mscoco_val2014_annotations.json", make.vqa_annotations([annotation(1, 1)]))
    with pytest.raises(DataError, match="several files"):
        load(tmp_path)
    assert [e.id for e in load(tmp_path, version=1)] == ["1"]
    assert len(load(f"{tmp_path}?version=2")) == 2


def test_a_single_file_finds_its_annotations_beside_it(tmp_path: Path) -> None:
    make.vqa2(tmp_path)
    assert load(tmp_path / make.VQA2.format("val2014"))[0].target == "cup"


def test_the_official_folder_layout_is_understood_from_the_questions_file(tmp_path: Path) -> None:
    make.vqa2(tmp_path / "flat")
    for kind, name in (("Questions", make.VQA2), ("Annotations", make.VQA2_ANNOTATIONS)):
        (tmp_path / kind).mkdir()
        (tmp_path / "flat" / name.format("val2014")).rename(tmp_path / kind / name.format("val2014"))
    data = make.picture(tmp_path / "Images" / "mscoco" / "val2014" / "COCO_val2014_000000000042.jpg")
    (example, _) = load(tmp_path / "Questions" / make.VQA2.format("val2014"))
    assert example.target == "cup"
    assert example.image is not None and example.image.read() == data


def test_named_annotations_are_used(tmp_path: Path) -> None:
    make.write(tmp_path / "questions.json", make.vqa_questions([question()]))
    label = make.write(tmp_path / "elsewhere" / "mine.json", make.vqa_annotations([annotation()]))
    assert load(tmp_path / "questions.json", annotations=label)[0].target == "cup"
    with pytest.raises(DataError, match="no such annotations file"):
        load(tmp_path / "questions.json", annotations="nowhere.json")


@pytest.mark.parametrize("packed", ["gz", "one zip", "published zips"])
def test_packed_files_load_like_plain_ones(tmp_path: Path, packed: str) -> None:
    plain = make.vqa2(tmp_path / "plain")
    target = tmp_path / "packed"
    target.mkdir()
    files = {path.name: path.read_bytes() for path in plain.iterdir()}
    if packed == "gz":
        for name, content in files.items():
            (target / f"{name}.gz").write_bytes(gzip.compress(content))
        spec = target
    elif packed == "one zip":
        spec = make.archive(target / "vqa.zip", {f"inner/{name}": content for name, content in files.items()})
    else:
        for name, content in files.items():
            kind = "Questions" if "questions" in name else "Annotations"
            make.archive(target / f"v2_{kind}_Val_mscoco.zip", {name: content})
        spec = target / "v2_Questions_Val_mscoco.zip"
    first, second = load(plain), load(spec)
    assert first.examples == second.examples
    assert first.fingerprint == second.fingerprint
    assert load(target).fingerprint == first.fingerprint


def test_a_plain_file_beside_its_archive_is_one_data_set(tmp_path: Path) -> None:
    make.vqa2(tmp_path)
    name = make.VQA2.format("val2014")
    make.archive(tmp_path / "v2_Questions_Val_mscoco.zip", {name: (tmp_path / name).read_bytes()})
    assert len(load(tmp_path)) == 2


@pytest.mark.parametrize(
    "layout",
    [
        "COCO_val2014_000000000042.jpg",
        "val2014/COCO_val2014_000000000042.jpg",
        "Images/mscoco/val2014/COCO_val2014_000000000042.jpg",
        "val2017/000000000042.jpg",
        "train2014/COCO_train2014_000000000042.jpg",
    ],
)
def test_coco_pictures_are_found_and_travel_byte_for_byte(tmp_path: Path, layout: str) -> None:
    make.vqa2(tmp_path)
    data = make.picture(tmp_path / layout)
    image = load(tmp_path)[0].image
    assert isinstance(image, FileImage)
    assert image.read() == data


def test_images_of_ones_own_are_called_by_their_number(tmp_path: Path) -> None:
    bytes_ = make.picture(make.vqa2(tmp_path) / "images" / "42.jpg")
    image = load(tmp_path)[0].image
    assert image is not None and image.read() == bytes_


def test_the_picture_of_the_right_split_is_taken(tmp_path: Path) -> None:
    make.vqa2(tmp_path)
    make.picture(tmp_path / "train2014" / "COCO_train2014_000000000042.jpg", "blue")
    data = make.picture(tmp_path / "val2014" / "COCO_val2014_000000000042.jpg", "red")
    image = load(tmp_path)[0].image
    assert image is not None and image.read() == data


def test_pictures_in_the_published_archive_are_read_in_place(tmp_path: Path) -> None:
    make.vqa2(tmp_path / "data")
    data = make.picture(tmp_path / "x.jpg")
    spot = make.archive(tmp_path / "val2014.zip", {"val2014/COCO_val2014_000000000042.jpg": data})
    image = load(tmp_path / "data", images=spot)[0].image
    assert isinstance(image, ZipImage)
    assert image.read() == data
    assert not (tmp_path / "val2014").exists()


def test_two_candidates_for_one_picture_are_never_guessed_between(tmp_path: Path) -> None:
    make.vqa2(tmp_path)
    make.picture(tmp_path / "a" / "COCO_val2014_000000000042.jpg", "red")
    make.picture(tmp_path / "b" / "COCO_val2014_000000000042.jpg", "blue")
    with pytest.raises(DataError, match="two images are called"):
        load(tmp_path)
    assert load(tmp_path, images=tmp_path / "b")[0].image is not None


def test_a_missing_picture_is_none_and_its_name_stays(tmp_path: Path) -> None:
    example = load(make.vqa2(tmp_path))[0]
    assert example.image is None
    assert example.image_id == "42"


def test_a_missing_image_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such image folder"):
        load(make.vqa2(tmp_path), images=tmp_path / "nowhere")


def test_abstract_scenes_have_their_own_file_names(tmp_path: Path) -> None:
    value = {**make.vqa_questions([question(7, 20000)], "val2015"), "data_type": "abstract_v002"}
    make.write(tmp_path / "OpenEnded_abstract_v002_val2015_questions.json", value)
    data = make.picture(tmp_path / "img" / "abstract_v002_val2015_000000020000.png")
    image = load(tmp_path)[0].image
    assert image is not None and image.read() == data


def test_bare_lists_with_their_own_coco_split_load(tmp_path: Path) -> None:
    # the files of VQA-CP
    make.write(tmp_path / "vqacp_v2_test_questions.json", [question(coco_split="train2014")])
    make.write(tmp_path / "vqacp_v2_test_annotations.json", [annotation(coco_split="train2014")])
    make.picture(tmp_path / "train2014" / "COCO_train2014_000000000042.jpg")
    (example,) = load(tmp_path)
    assert example.target == "cup"
    assert example.image is not None


def test_header_fields_after_the_records_count(tmp_path: Path) -> None:
    make.write(
        tmp_path / "questions.json",
        {"questions": [question(7, 20000)], "data_type": "abstract_v002", "data_subtype": "val2015"},
    )
    make.picture(tmp_path / "abstract_v002_val2015_000000020000.png")
    assert load(tmp_path)[0].image is not None


def test_ids_are_text_whatever_they_were(tmp_path: Path) -> None:
    data = load(make.vqa2(tmp_path, [question("42000", "42")], [annotation(42000.0, 42)]))
    assert (data[0].id, data[0].image_id, data[0].target) == ("42000", "42", "cup")


BAD_QUESTIONS = {
    "not an object": (["what?"], "not an object"),
    "no question": ([{"question_id": 1, "image_id": 1}], '"question" is missing'),
    "question is a number": ([question(1, 1, 5)], '"question" is a number'),  # type: ignore[arg-type]
    "question is NaN": ([question(1, 1, float("nan"))], "a number"),  # type: ignore[arg-type]
    "question is blank": ([question(1, 1, "  ")], '"question" is empty'),
    "id is missing": ([{"image_id": 1, "question": "What?"}], '"question_id" is missing'),
    "id is a list": ([question([1])], '"question_id" is a list'),
    "id is true": ([question(True)], '"question_id" is true or false'),
    "id is 1.5": ([question(1.5)], '"question_id" is a number'),
    "question too long": ([question(1, 1, "x" * 1_000_001)], "1,000,001 characters long"),
    "same id": ([question(42000), question("42000")], "'42000' appears twice"),
    "choices are no list": ([question(multiple_choices="cup")], '"multiple_choices" is text'),
    "half a character": ([question(text="What \ud800?")], "not UTF-8 text"),
    "no annotation": ([question(77)], "77 has no annotation"),
    "another image": ([question(42000, 43)], "about another image"),
    "target not a choice": ([question(multiple_choices=["a", "b"])], "'cup' is not among its choices"),
}


@pytest.mark.parametrize("case", BAD_QUESTIONS)
def test_a_bad_question_is_one_sentence_with_file_and_position(tmp_path: Path, case: str) -> None:
    records, message = BAD_QUESTIONS[case]
    make.vqa2(tmp_path, [question(42001, 42, "Is it red?"), *records])
    number = 1 + len(records)
    with pytest.raises(DataError) as caught:
        load(tmp_path)
    text = str(caught.value)
    assert message in text
    assert make.VQA2.format("val2014") in text
    assert f"record {number}" in text
    assert len(text) < 600


@pytest.mark.parametrize("case", BAD_QUESTIONS)
def test_bad_questions_can_be_skipped_and_are_counted(tmp_path: Path, case: str) -> None:
    records, _ = BAD_QUESTIONS[case]
    good = question(42001, 42, "Is it red?")
    data = load(make.vqa2(tmp_path, [*records, good]), skip_bad=True)
    assert data.skipped == 1
    assert data[-1].id == "42001"
    assert len(data) == len(records)


@pytest.mark.parametrize(("answers", "few"), [(1, None), (2, 1), (3, 1), (4, None), (10, None)])
def test_two_or_three_answers_are_too_few_for_vqa_accuracy_and_are_counted(
    tmp_path: Path, answers: int, few: int | None
) -> None:
    data = load(make.vqa2(tmp_path, [question()], [annotation(answers=["cup"] * answers)]))
    assert data.notes.get(FEW) == few


def test_the_specification_can_say_that_bad_records_are_skipped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """For commands with more than one data set, or none that is named on the command line (`noise:pool=DATA`)."""
    place = make.vqa2(tmp_path, [question(1, 42, " "), question(42001, 42, "Is it red?")])
    with caplog.at_level("INFO", "pfungst"):
        assert load(f"{place}?skip_bad=yes").skipped == 1
    assert caplog.messages == [f"{place}: left out 1 bad record."]
    with pytest.raises(DataError, match="skip_bad=yes"):
        load(f"{place}?skip_bad=no")


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"question_id": 42000}, '"answers" is missing'),
        (annotation() | {"answers": []}, '"answers" is empty'),
        (annotation() | {"answers": ["cup"]}, 'has no text "answer"'),
        (annotation() | {"answers": [{"answer": 3}]}, 'has no text "answer"'),
        (annotation() | {"answer_type": 5}, '"answer_type" is a number'),
        (["x"], "not an object"),
        (annotation(answers=["\udc80"]), "not UTF-8"),
    ],
)
def test_a_bad_annotation_is_told(tmp_path: Path, record: object, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        load(make.vqa2(tmp_path, [question()], [record]))
    assert "annotations.json, record 1" in str(caught.value)


def test_an_annotation_given_twice_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="annotated twice"):
        load(make.vqa2(tmp_path, [question()], [annotation(), annotation()]))


def test_missing_type_words_are_empty(tmp_path: Path) -> None:
    label = annotation() | {"answer_type": None, "question_type": float("nan")}
    del label["multiple_choice_answer"]
    example = load(make.vqa2(tmp_path, [question()], [label]))[0]
    assert (example.answer_type, example.question_type, example.target) == ("", "", "cup")


def test_the_position_is_the_number_of_the_record(tmp_path: Path) -> None:
    make.vqa2(tmp_path)
    file = tmp_path / make.VQA2.format("val2014")
    text = json.dumps(make.vqa_questions([question(1, 1, "Où est-ce?"), {"bad": 1}]), ensure_ascii=False)
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"v2_OpenEnded_mscoco_val2014_questions.json, record 2: "):
        load(tmp_path)


def test_the_limit_stops_reading_early(tmp_path: Path) -> None:
    # what stands behind the first two questions and their annotations is never looked at
    make.vqa2(tmp_path)
    for name in (make.VQA2, make.VQA2_ANNOTATIONS):
        file = tmp_path / name.format("val2014")
        file.write_text(file.read_text()[:-2] + ", damaged", encoding="utf-8")
    assert len(load(tmp_path, limit=2)) == 2
    assert len(load(tmp_path, limit=1)) == 1
    with pytest.raises(DataError, match="not JSON"):
        load(tmp_path)


def test_a_limit_of_nothing_and_a_negative_one(tmp_path: Path) -> None:
    assert len(load(make.vqa2(tmp_path), limit=0)) == 0
    with pytest.raises(DataError, match="limit"):
        load(tmp_path, limit=-1)


def test_the_limit_counts_good_records_where_bad_ones_are_skipped(tmp_path: Path) -> None:
    make.vqa2(tmp_path, [5, question(), 6, question(42001, 42, "Is it red?")])
    data = load(tmp_path, limit=2, skip_bad=True)
    assert [e.id for e in data] == ["42000", "42001"]


def test_damage_stops_a_load_even_where_bad_records_are_skipped(tmp_path: Path) -> None:
    make.vqa2(tmp_path)
    file = tmp_path / make.VQA2.format("val2014")
    file.write_text(file.read_text()[:-30], encoding="utf-8")
    with pytest.raises(DataError, match="middle of this record"):
        load(tmp_path, skip_bad=True)


def test_a_file_without_questions_is_told(tmp_path: Path) -> None:
    make.write(tmp_path / make.VQA2.format("val2014"), {"info": {}, "annotations": []})
    with pytest.raises(DataError, match='no list "questions"'):
        load(tmp_path)
    make.vqa2(tmp_path, [])
    with pytest.raises(DataError, match="no usable question"):
        load(tmp_path)


def test_the_fingerprint_follows_the_content_and_nothing_else(tmp_path: Path) -> None:
    one = load(make.vqa2(tmp_path / "a"))
    make.vqa2(tmp_path / "b" / "val")
    text = json.dumps(json.loads((tmp_path / "a" / make.VQA2.format("val2014")).read_text()), indent=2)
    (tmp_path / "b" / "val" / make.VQA2.format("val2014")).write_text(text)
    assert load(tmp_path / "b").fingerprint == one.fingerprint
    other = load(make.vqa2(tmp_path / "c", annotations=[annotation(), annotation(42001, answers=["no"] * 10)]))
    assert other.fingerprint != one.fingerprint
    assert load(tmp_path / "a", limit=1).fingerprint != one.fingerprint
