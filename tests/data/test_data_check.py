"""`check`: what a report says about a data set."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pfungst.core import DataError
from pfungst.data import check, load
from tests.data import published_formats as make
from tests.data.published_formats import annotation, question


def test_a_sound_data_set_is_counted(tmp_path: Path) -> None:
    make.picture(tmp_path / "val2014" / "COCO_val2014_000000000042.jpg")
    make.vqa2(
        tmp_path,
        [question(1), question(2), question(3, 43, "Is it red?")],
        [annotation(1), annotation(2), annotation(3, 43, ["yes"] * 10, answer_type="yes/no")],
    )
    report = check(tmp_path)
    assert report.ok
    assert (report.examples, report.labelled, report.images) == (3, 3, 2)
    assert (report.missing_images, report.missing_image_ids, report.questions_without_image) == (1, ("43",), 1)
    assert report.duplicate_questions == 1
    assert report.answer_types == {"other": 2, "yes/no": 1}
    assert report.question_types == {"what is": 3}
    assert report.answers_per_question == {10: 3}
    assert report.top_answers == {"cup": 2, "yes": 1}
    assert report.files == {make.VQA2.format("val2014"): 3}
    assert report.fingerprint == load(tmp_path).fingerprint
    assert report.metric == "vqa"


def test_every_bad_record_is_listed_with_file_and_position(tmp_path: Path) -> None:
    make.vqa2(tmp_path, [question(), 5, question(), question(7), question(8, 8, "")], [annotation(), {"x": 1}])
    report = check(tmp_path)
    assert not report.ok
    assert (report.examples, report.bad_records, report.duplicate_ids) == (1, 5, 1)
    found = [(Path(one.file).name.split("_")[-1], one.where.split(" (")[0], one.problem) for one in report.bad]
    assert found == [
        ("questions.json", "record 2", "the record is a number, not an object."),
        ("questions.json", "record 5", '"question" is empty.'),
        ("annotations.json", "record 2", '"answers" is missing or not a list.'),
        ("questions.json", "record 3", "the id '42000' appears twice."),
        ("questions.json", "record 4", found[4][2]),
    ]
    assert "7 has no annotation" in found[4][2]
    assert check(tmp_path, skip_bad=True, images="none").ok
    assert load(tmp_path, skip_bad=True).skipped == 5


def test_damage_ends_the_reading_but_not_the_report(tmp_path: Path) -> None:
    path = make.write(tmp_path / "mine.json", json.dumps([{"question": "a?"}, {"question": "b?"}])[:-5])
    report = check(path)
    assert report.examples == 1
    assert report.error is not None and "middle of this record" in report.error
    assert not report.ok


def test_all_splits_are_looked_at_unless_one_is_named(tmp_path: Path) -> None:
    make.cocoqa(tmp_path)
    assert check(tmp_path).examples == 6
    assert check(tmp_path, split="test").examples == 3
    assert check(f"{tmp_path}#test").examples == 3
    assert check(tmp_path, limit=2).examples == 2


def test_choices_and_groups_are_counted(tmp_path: Path) -> None:
    assert check(make.visual7w(tmp_path / "v")).choices_per_question == {4: 22}
    assert check(tmp_path / "v").metric == "choice"
    assert check(make.rephrasings(tmp_path / "r")).groups == 1


def test_a_data_set_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        check(tmp_path / "nowhere")


def test_the_report_reads_as_text_and_as_json(tmp_path: Path) -> None:
    make.vqa2(tmp_path, [question(), 5])
    report = check(tmp_path)
    text = str(report)
    assert "vqa val (vqa): 1 questions on 1 images." in text
    assert "record 2" in text
    assert text.endswith("Not fit for use as it is.")
    value = json.loads(json.dumps(report.as_dict()))
    assert value["ok"] is False
    assert value["bad"][0]["where"].startswith("record 2")


def test_a_file_in_which_nothing_is_usable_is_given_up(tmp_path: Path) -> None:
    make.write(tmp_path / "mine.jsonl", "5\n" * 100_001)
    with pytest.raises(DataError, match="none of the first 100,000 records"):
        load(tmp_path, skip_bad=True)


def test_images_that_are_all_missing_make_it_unfit(tmp_path: Path) -> None:
    rows = [{"question": "a?", "image": "a.png"}, {"question": "b?", "image": "b.png"}]
    path = make.write(tmp_path / "mine.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    report = check(path)
    assert (report.ok, report.missing_images) == (False, 2)
    told = (
        "No image of the column image was found. Say where they are: --images FOLDER, or ask without them: "
        "--images none."
    )
    assert str(report).endswith(f"{told}\nNot fit for use as it is.")
    make.picture(tmp_path / "a.png")
    assert check(path).ok


def test_an_image_column_that_is_not_understood_makes_it_unfit(tmp_path: Path) -> None:
    make.picture(tmp_path / "a.png")
    path = make.write(tmp_path / "mine.jsonl", json.dumps({"question": "a?", "picture_name": "a.png"}) + "\n")
    report = check(path)
    assert not report.ok
    assert "The column picture_name was not understood" in str(report) and "?image=picture_name" in str(report)
    assert check(f"{path}?image=picture_name").ok


def test_a_vqa_folder_without_a_single_image_is_not_fit(tmp_path: Path) -> None:
    make.vqa2(tmp_path)
    report = check(tmp_path)
    assert not report.ok and "Not one of the 1 images was found" in str(report)
    assert report.as_dict()["no_images"].startswith("Not one of the 1 images")
    make.picture(tmp_path / "val2014" / "COCO_val2014_000000000042.jpg")
    assert check(tmp_path).ok


@pytest.mark.parametrize("spec", ["{}?images=none", "{}#val?images=none"])
def test_questions_may_be_asked_without_images_on_purpose(tmp_path: Path, spec: str) -> None:
    make.vqa2(tmp_path)
    make.picture(tmp_path / "val2014" / "COCO_val2014_000000000042.jpg")
    place = spec.format(tmp_path)
    report = check(place)
    assert report.ok and report.text_only and "Missing" not in str(report)
    assert load(place)[0].image is None and load(place)[0].image_id == "42"
    assert load(tmp_path)[0].image is not None
    assert load(place).fingerprint == load(tmp_path).fingerprint


def test_images_of_a_table_are_left_out_on_purpose(tmp_path: Path) -> None:
    rows = [{"question": "a?", "image": "https://example.org/a.png"}, {"question": "b?", "image": make.data_url()}]
    path = make.write(tmp_path / "mine.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert [one.image for one in load(path, images="none")] == [None, None]


def test_options_that_are_letters_of_others_are_counted(tmp_path: Path) -> None:
    rows = [{"question": "a?", "choices": one} for one in (["B", "A"], ["A", "B"], ["cat", "(a)"], ["AB", "BA"])]
    path = make.write(tmp_path / "mine.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert [value for note, value in load(path).notes.items() if "letter of another" in note] == [2]


def test_columns_that_may_hold_the_answer_are_named(tmp_path: Path) -> None:
    path = make.write(tmp_path / "mine.jsonl", json.dumps({"question": "a?", "gold": "b", "source": "x"}) + "\n")
    assert "nothing was read from the columns gold, source. Name it: ?answer=COLUMN." in str(check(path))
    assert "nothing was read" not in str(check(f"{path}?answer=gold"))


def test_questions_that_speak_of_no_image_are_fit(tmp_path: Path) -> None:
    assert check(make.write(tmp_path / "mine.jsonl", json.dumps({"question": "a?", "answer": "b"}) + "\n")).ok


def test_twenty_problems_are_shown_each_once_and_all_records_are_counted(tmp_path: Path) -> None:
    make.write(tmp_path / "mine.jsonl", '{"question": "a?"}\n' + "5\n" * 50)
    report = check(tmp_path)
    text = str(report)
    assert "Bad records: 50," in text and text.count("not an object") == 1
    assert "And 49 more like it, the next at line 3." in text
    assert text.endswith("Not fit for use as it is: fix the bad records, or leave them out (--skip-bad).")
    assert str(check(tmp_path, skip_bad=True)).endswith("Fit for use.")
    assert len(report.as_dict()["bad"]) == 50
    twice = "".join(json.dumps({"id": number, "question": "a?"}) + "\n" for number in [*range(30)] * 2)
    make.write(tmp_path / "mine.jsonl", twice)
    text = str(check(tmp_path))
    assert text.count("appears twice") == 20 and "... and 10 other problems." in text and "--json lists every" in text


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_a_table_may_have_commas_semicolons_or_tabs_between_its_cells(tmp_path: Path, mark: str) -> None:
    rows = [["Fall", "Frage", "Befund"], ["1", '"Wo; und, warum?"', "links"], ["2", "b?", "rechts"]]
    make.write(tmp_path / "mine.csv", "".join(mark.join(row) + "\n" for row in rows))
    report = check(f"{tmp_path / 'mine.csv'}?question=Frage&answer=Befund&id=Fall")
    assert (report.ok, report.labelled) == (True, 2)
    found = load(f"{tmp_path / 'mine.csv'}?question=Frage&answer=Befund&id=Fall")
    assert [(one.id, one.question, one.target) for one in found] == [
        ("1", "Wo; und, warum?", "links"),
        ("2", "b?", "rechts"),
    ]


def test_data_without_right_answers_say_what_can_still_be_measured(tmp_path: Path) -> None:
    folder = make.vqa2(tmp_path)
    told = "No right answer was found: changes of answers can be counted, but no accuracy."
    assert told not in str(check(folder))
    (folder / make.VQA2_ANNOTATIONS.format("val2014")).unlink()
    assert told in str(check(folder))


def test_a_group_of_one_question_is_not_counted(tmp_path: Path) -> None:
    rows = [
        {"id": id_, "question": f"{id_}?", "answer": "x", "group": group, "contrast_group": f"c{group}"}
        for id_, group in (("a", "a"), ("b", "a"), ("d", "d"))
    ]
    report = check(make.write(tmp_path / "mine.jsonl", "".join(json.dumps(row) + "\n" for row in rows)))
    assert (report.groups, report.contrasts) == (1, 1)


def test_decoding_opens_each_image_once_and_lists_the_broken_ones(tmp_path: Path) -> None:
    make.picture(tmp_path / "good.jpg")
    whole = (tmp_path / "good.jpg").read_bytes()
    (tmp_path / "half.jpg").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "page.png").write_text("<html>Not found</html>")
    names = ["good", "good", "half", "half", "page"]
    rows = [{"id": f"q{n}", "question": f"{n}?", "image": name} for n, name in enumerate(names)]
    for row, end in zip(rows, ("jpg", "jpg", "jpg", "jpg", "png"), strict=True):
        row["image"] += f".{end}"
    path = make.write(tmp_path / "mine.jsonl", "\n".join(json.dumps(row) for row in rows))
    plain = check(path)
    assert plain.ok and plain.decoded is None and "opened" not in str(plain)
    seen: list[tuple[int, int]] = []
    report = check(path, decode=True, progress=lambda what, done, total: seen.append((done, total)))
    assert not report.ok and (report.decoded, list(report.broken)) == (3, ["q2", "q4"])
    assert seen == [(n, 5) for n in range(1, 6)]
    assert "half.jpg: this is not an image that can be decoded" in report.broken["q2"]
    assert "Broken images: 2 of 3 opened." in str(report) and "it is a web page" in str(report)
    assert "replace the broken images" in str(report).splitlines()[-1]
    assert report.as_dict()["broken"] == report.broken
    (tmp_path / "half.jpg").write_bytes(whole)
    (tmp_path / "page.png").write_bytes(whole)
    sound = check(path, decode=True)
    assert sound.ok and sound.decoded == 1 and "Images opened: 1, none of them broken." in str(sound)
