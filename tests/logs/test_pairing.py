"""Which question a recorded answer belongs to."""

from __future__ import annotations

import pytest

from pfungst.core import DataError, Dataset, Example
from pfungst.logs import Log, Record
from pfungst.logs.pairing import pair, same_image

DATA = Dataset(
    "d",
    [
        Example("10", "What color is it?", image_id="COCO_val2014_000000000042.jpg"),
        Example("11", "What color is it?", image_id="COCO_val2014_000000000043.jpg"),
        Example("12", "How many?", image_id="42"),
    ],
)


def found(*records: Record) -> list[str | None]:
    pairing = pair(Log("log", "table", records, "f"), DATA)
    return [None if example is None else example.id for example in pairing.examples]


def test_an_id_is_believed_where_the_prompt_does_not_contradict_it() -> None:
    assert found(Record("12", "2"), Record("11", "red", prompt="WHAT color is\n it? Answer shortly.")) == ["12", "11"]


def test_an_id_that_means_another_question_is_not_believed_and_told() -> None:
    record = Record("10", "2", "line 1", prompt="How many?")
    pairing = pair(Log("log", "table", (record, Record("11", "red")), "f"), DATA)
    assert [example and example.id for example in pairing.examples] == ["12", "11"]
    assert "1 of 2 ids mean another question in d (first: line 1, id 10" in pairing.notes[0]


def test_a_row_number_is_checked_against_the_question() -> None:
    assert found(Record("2", "2", prompt="How many?", row_number=True)) == ["12"]
    shifted = Record("0", "2", prompt="How many?", row_number=True)
    assert found(shifted) == ["12"], "a task that filters its documents shifts the rows: the question decides"


def test_without_an_id_image_and_question_serve_if_they_are_unique() -> None:
    asked = "What color is it?"
    assert found(Record("", "red", question=asked, image_id="43"), Record("", "1", question=asked)) == ["11", None]


def test_words_asked_about_several_images_name_no_question() -> None:
    """RePOPE leaves questions of POPE out: an answer about another image fitted the one "How many?" that is left."""
    records = (Record("12", "2", prompt="How many?"), Record("99", "7", prompt="How many?"))
    assert found(*records) == ["12", None]
    assert found(records[1]) == ["12"]
    rotations = (
        Record("12", "2", question="How many?", group="12"),
        Record("1000012", "3", question="How many?", group="12"),
    )
    assert found(*rotations) == ["12", "12"]


def test_nothing_in_common_is_a_sentence_that_names_both_sides() -> None:
    with pytest.raises(DataError, match=r"ids such as 'x', the data set such as '10'.*\?id=COLUMN"):
        found(Record("x", "a"))
    with pytest.raises(DataError, match="asks 'Who\\?', but there 10 is 'What color is it\\?'"):
        found(Record("10", "a", "line 1", prompt="Who?"))


def test_names_of_one_image() -> None:
    assert same_image("COCO_val2014_000000000042.jpg", "42") and same_image("val/000000000042.png", "42")
    assert not same_image("scene_42.png", "42") and same_image("a/B.jpg", "b")


def test_ids_are_found_without_what_tables_add_to_them_if_they_stay_unique() -> None:
    names = ["1.0", "2", "VizWiz_val_1.jpg:1", "two.png:1", "two.png:2", "3.0", "3"]
    data = Dataset("d", [Example(name, "What is it?") for name in names])
    asked = ["1", "2.0", "VizWiz_val_1.jpg", "two.png", "two.png:2", "3", "3.0", "v1.0"]
    pairing = pair(Log("log", "table", tuple(Record(id_, "red") for id_ in asked), "f"), data)
    assert [example and example.id for example in pairing.examples] == [
        *("1.0", "2", "VizWiz_val_1.jpg:1", None, "two.png:2", "3", "3.0", None)
    ]
