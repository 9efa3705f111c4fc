"""VLMEvalKit's TSV: options in columns, letters, images in cells."""

from __future__ import annotations

import base64
import csv
import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from pfungst.core import BytesImage, DataError
from pfungst.data import check, load
from tests.data import published_formats as make


def encoded(number: int, kind: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    pixels = np.random.default_rng(number).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    PIL.Image.fromarray(pixels).save(buffer, format=kind)
    return buffer.getvalue()


def base(number: int, kind: str = "PNG") -> str:
    return base64.b64encode(encoded(number, kind)).decode()


def tsv(path: Path, rows: list[dict[str, Any]], end: str = "\n") -> Path:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, delimiter="\t", lineterminator=end)
        writer.writeheader()
        writer.writerows(rows)
    return path


def mcq(index: Any, image: str, **more: Any) -> dict[str, Any]:
    row = {"index": index, "question": f"Which, {index}?", "hint": "", "A": "cat", "B": "dog", "C": "fox", "D": ""}
    return {**row, "answer": "B", "category": "animals", "l2-category": "life", "image": image, **more}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_pictures_are_read_where_a_quotation_mark_is_only_text(tmp_path: Path, end: str) -> None:
    rows = ["index\tquestion\tanswer\timage", f'0\t"Whose\tcat\t{base(1)}', f"1\tWhat?\tdog\t{base(2)}"]
    (tmp_path / "MINE.tsv").write_text(end.join(rows) + end, encoding="utf-8", newline="")
    data = load(tmp_path / "MINE.tsv")
    assert [one.question for one in data] == ['"Whose', "What?"]
    assert [one.image.read() for one in data if one.image] == [encoded(1), encoded(2)]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_options_letters_hints_and_pictures_are_read(tmp_path: Path, end: str) -> None:
    rows = [
        mcq(0, base(1)),
        mcq(1, base(2, "JPEG"), hint='It barks.\n"Loudly"\tsay some', answer="C"),
        mcq(2, "0"),
        mcq(3, base(2, "JPEG"), C="", answer="A"),
    ]
    data = load(tsv(tmp_path / "MINE.tsv", rows, end))
    assert (data.notes["format"], data.metric, data.name) == ("vlmevalkit", "choice", "MINE")
    assert [one.id for one in data] == ["0", "1", "2", "3"]
    assert [one.choices for one in data] == [("cat", "dog", "fox")] * 3 + [("cat", "dog")]
    assert [one.target for one in data] == ["dog", "fox", "dog", "cat"]
    assert data[1].question == 'It barks.\n"Loudly"\tsay some\nWhich, 1?'
    assert {one.question_type for one in data} == {"animals"}
    assert [one.image.read() for one in data if one.image] == [
        encoded(1),
        encoded(2, "JPEG"),
        encoded(1),
        encoded(2, "JPEG"),
    ]
    assert data[0].image is not None and data[0].image.digest == BytesImage(encoded(1)).digest
    assert data[0].image_id == data[2].image_id != data[1].image_id == data[3].image_id
    assert check(tmp_path / "MINE.tsv").ok


def test_pictures_stay_in_the_file(tmp_path: Path) -> None:
    path = tsv(tmp_path / "MINE.tsv", [mcq(0, base(1)), mcq(1, base(2))])
    data = load(path)
    assert not any(isinstance(one.image, BytesImage) for one in data)
    path.write_text("")
    with pytest.raises(DataError, match="cannot be read again"):
        data[1].image.read()  # type: ignore[union-attr]


def test_a_packed_file_is_read_too(tmp_path: Path) -> None:
    path = tsv(tmp_path / "MINE.tsv", [mcq(0, base(1)), mcq(1, "0")])
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed" / "MINE.tsv.gz").write_bytes(gzip.compress(path.read_bytes()))
    data = load(tmp_path / "packed" / "MINE.tsv.gz")
    assert [one.image.read() for one in data if one.image] == [encoded(1)] * 2
    assert data.fingerprint == load(path).fingerprint


def test_circular_copies_form_a_group(tmp_path: Path) -> None:
    rows = [mcq(7, base(1)), mcq(1_000_007, "7", A="dog", B="fox", C="cat", answer="A"), mcq(8, base(2))]
    data = load(tsv(tmp_path / "CIRCLE.tsv", rows))
    assert [(one.id, one.group, one.target) for one in data] == [
        ("7", "7", "dog"),
        ("1000007", "7", "dog"),
        ("8", "", "dog"),
    ]
    assert [one.group for one in load(tsv(tmp_path / "LARGE.tsv", [mcq(1_000_007, base(1)), mcq(5, base(2))]))] == [
        "",
        "",
    ]
    data = load(tsv(tmp_path / "G.tsv", [mcq(1, base(1), g_index=1), mcq(2, "1", g_index=1)]))
    assert [one.group for one in data] == ["1", "1"]


def test_a_picture_of_a_later_row_is_found_and_one_of_no_row_is_told(tmp_path: Path) -> None:
    data = load(tsv(tmp_path / "LATER.tsv", [mcq(0, "1"), mcq(1, base(3))]))
    assert data[0].image is not None and data[0].image.read() == encoded(3)
    with pytest.raises(DataError, match=r"line 2: the image is that of row '9', which holds none"):
        load(tsv(tmp_path / "NONE.tsv", [mcq(0, "9")]))


def test_of_several_pictures_the_first_is_taken_and_noted(tmp_path: Path) -> None:
    rows = [mcq(0, base(1)), mcq(1, str([base(2), base(3)])), mcq(2, "['0', '1']")]
    data = load(tsv(tmp_path / "MANY.tsv", rows))
    assert [one.image.read() for one in data if one.image] == [encoded(1), encoded(2), encoded(1)]
    assert [value for note, value in data.notes.items() if "several images" in note] == [2]
    make.picture(tmp_path / "images" / "a.png")
    (example,) = load(tsv(tmp_path / "PATHS.tsv", [{**mcq(0, ""), "image_path": "['a.png', 'b.png']"}]))
    assert (example.image is not None, example.image_id) == (True, "a.png")


@pytest.mark.parametrize("cell", ["[__import__('os').system('true')]" + " " * 70, "[" * 200, "[1.5, 2]", "[]"])
def test_a_list_is_a_literal_and_nothing_else(tmp_path: Path, cell: str) -> None:
    with pytest.raises(DataError, match=r"line 2: the images .* are not a list"):
        load(tsv(tmp_path / "MINE.tsv", [mcq(0, cell)]))


def test_damaged_base64_is_a_bad_record(tmp_path: Path) -> None:
    path = tsv(tmp_path / "MINE.tsv", [mcq(0, base(1)), mcq(1, base(2)[:-7] + "*")])
    with pytest.raises(DataError, match="line 3: the base64 data of the image are damaged"):
        load(path)
    assert check(path).bad_records == 1


def test_yes_no_questions_and_pairs_on_one_picture(tmp_path: Path) -> None:
    rows = [
        {"index": i, "category": "OCR", "image_path": "OCR/1.jpg", "question": f"Is it {i}?", "answer": answer}
        for i, answer in enumerate(["Yes", "No"])
    ]
    data = load(tsv(tmp_path / "MME.tsv", [{**row, "image": base(1)} for row in rows]))
    assert data.metric == "yes/no"
    assert [(one.target, one.image_id, one.question_type) for one in data] == [
        ("Yes", "OCR/1.jpg", "OCR"),
        ("No", "OCR/1.jpg", "OCR"),
    ]
    assert data[0].image is not None and data[0].image.read() == encoded(1)


def test_ids_of_words_are_kept(tmp_path: Path) -> None:
    row = {"index": "VD_illusion_1_0_0_0", "question": "Is it?", "answer": "Yes", "l2-category": "VD_illusion"}
    (example,) = load(tsv(tmp_path / "HallusionBench.tsv", [{**row, "category": "VD", "image": base(1)}]))
    assert (example.id, example.question_type, example.group) == ("VD_illusion_1_0_0_0", "VD", "")


def test_a_list_of_answers_is_what_people_said(tmp_path: Path) -> None:
    row = {"index": 1, "question": "What?", "answer": "['nous', \"d'or\", 'nous']", "image": base(1)}
    data = load(tsv(tmp_path / "TextVQA_VAL.tsv", [row]))
    assert (data[0].answers, data[0].target, data.metric) == (("nous", "d'or", "nous"), "nous", "vqa")


@pytest.mark.parametrize("answer", ["[Asia, Europe]", "[2, 5]", "[", "[draft] x"])
def test_an_answer_in_brackets_is_one_answer(tmp_path: Path, answer: str) -> None:
    row = {"index": 1, "question": "What?", "answer": answer, "image": base(1)}
    assert load(tsv(tmp_path / "ChartQA.tsv", [row]))[0].answers == (answer,)


def test_an_empty_option_does_not_move_the_letters_behind_it(tmp_path: Path) -> None:
    data = load(tsv(tmp_path / "SEED.tsv", [mcq(0, base(1), A="", answer="C"), mcq(1, base(1), B="", answer="B")]))
    assert [(one.choices, one.target) for one in data] == [
        (("(empty option A)", "dog", "fox"), "fox"),
        (("cat", "(empty option B)", "fox"), "(empty option B)"),
    ]
    assert data.metric == "choice"


def test_pictures_named_by_the_paths_of_another_machine_are_found_by_name(tmp_path: Path) -> None:
    make.picture(tmp_path / "images" / "34602.jpg")
    row = {"index": 1, "question": "What?", "answer": "x", "image_path": "/home/x/LMUData/images/T/34602.jpg"}
    (example,) = load(tsv(tmp_path / "T_local.tsv", [row]))
    assert example.image is not None and example.image_id == "34602.jpg"


def test_a_test_split_has_no_answers(tmp_path: Path) -> None:
    row = {key: value for key, value in mcq(0, base(1)).items() if key != "answer"}
    data = load(tsv(tmp_path / "TEST.tsv", [row]))
    assert (data[0].target, data[0].choices, data.metric) == (None, ("cat", "dog", "fox"), "choice")


def test_a_cell_may_hold_megabytes(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 256, (1000, 1000, 3), dtype=np.uint8)
    PIL.Image.fromarray(pixels).save(buffer, format="PNG")
    (example,) = load(tsv(tmp_path / "BIG.tsv", [mcq(0, base64.b64encode(buffer.getvalue()).decode())]))
    assert example.image is not None and example.image.read() == buffer.getvalue()
