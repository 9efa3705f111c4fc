"""Contrast groups: questions that look alike but are not answered alike, in the layouts that data sets have."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pfungst.core import DataError, Example
from pfungst.core.fingerprint import fingerprint
from pfungst.data import check, load
from tests.data import published_formats as make
from tests.data.published_formats import annotation, question


def png(shade: int) -> bytes:
    buffer = io.BytesIO()
    PIL.Image.new("RGB", (3, 3), (shade, shade, shade)).save(buffer, format="PNG")
    return buffer.getvalue()


def stored(shade: int) -> dict[str, Any]:
    return {"bytes": png(shade), "path": None}


def parquet(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows)), path)
    return path


def groups(data: Sequence[Example]) -> list[str]:
    return [example.contrast for example in data]


def test_mme_as_released_has_two_questions_an_image(tmp_path: Path) -> None:
    make.mme(tmp_path)
    make.picture(tmp_path / "existence" / "0001.jpg", "blue")
    make.picture(tmp_path / "artwork" / "images" / "0001.jpg", "red")
    make.write(tmp_path / "artwork" / "questions_answers_YN_zh" / "0001.txt", "这是画吗？\tYes\n这是瓶吗？\tNo\n")
    make.write(tmp_path / "eval_tool" / "Your_Results" / "artwork.txt", "0001.jpg\tIs it?\tYes\n")
    data = load(tmp_path)
    assert [(one.id, one.target, one.question_type, one.contrast) for one in data] == [
        ("artwork/0001:1", "Yes", "artwork", "artwork/0001"),
        ("artwork/0001:2", "No", "artwork", "artwork/0001"),
        ("existence/0001:1", "Yes", "existence", "existence/0001"),
        ("existence/0001:2", "No", "existence", "existence/0001"),
    ]
    assert "artwork" in str(data[0].image) and "existence" in str(data[2].image)
    assert (data.metric, check(tmp_path).ok, check(tmp_path).contrasts) == ("yes/no", True, 2)


def test_an_image_of_mme_is_never_that_of_another_category(tmp_path: Path) -> None:
    make.mme(tmp_path)
    make.picture(tmp_path / "existence" / "0001.jpg")
    assert [one.image is None for one in load(tmp_path)] == [True, True, False, False]


def test_a_damaged_line_of_mme_is_told(tmp_path: Path) -> None:
    make.mme(tmp_path)
    make.write(tmp_path / "existence" / "0002.txt", "Is it?\tYes\nIs it?\tNo\nIs it? maybe\n")
    with pytest.raises(DataError, match=r"0002.txt, line 3: the line is not a question, a tab"):
        load(tmp_path)


def test_mme_of_the_hub_goes_by_the_name_of_the_image(tmp_path: Path) -> None:
    row = {
        "question_id": "color/0001.png",
        "image": stored(1),
        "question": "Red?",
        "answer": "Yes",
        "category": "color",
    }
    data = load(parquet(tmp_path / "test.parquet", [row, {**row, "question": "Blue?", "answer": "No"}]))
    assert groups(data) == ["color/0001.png"] * 2


def test_ids_that_are_names_of_images_make_no_contrast_of_open_questions(tmp_path: Path) -> None:
    row = {"question_id": "VizWiz_val_0.jpg", "image": stored(1), "question": "What?", "answers": ["yes"] * 10}
    assert groups(load(parquet(tmp_path / "val.parquet", [row]))) == [""]


def test_a_set_of_hallusionbench_is_a_group(tmp_path: Path) -> None:
    row = {"category": "VD", "subcategory": "illusion", "visual_input": "1", "set_id": "3", "figure_id": "0"}
    row |= {"question_id": "0", "question": "Is it larger?", "gt_answer": "1", "filename": "./a.png", "sample_note": ""}
    other = {**row, "figure_id": "1", "gt_answer": "0", "filename": "./b.png"}
    data = load(make.write(tmp_path / "HallusionBench.json", [row, other, {**row, "set_id": "4"}]), images="none")
    assert groups(data) == ["VD_illusion_3", "VD_illusion_3", "VD_illusion_4"]


def test_mmvp_has_pairs_of_rows(tmp_path: Path) -> None:
    lines = [f"{i},Open or closed?,(a) Open (b) Closed,({'ab'[i % 2]})" for i in range(1, 5)]
    path = make.write(tmp_path / "Questions.csv", "Index,Question,Options,Correct Answer\n" + "\n".join(lines) + "\n")
    assert groups(load(path)) == ["0", "0", "1", "1"]


OPTIONS = "Who is it?\nOption:\nA: A man;\nB: A woman;"


def test_naturalbench_is_two_questions_on_two_images(tmp_path: Path) -> None:
    row = {"Index": 7, "Image_0": stored(0), "Image_1": stored(1), "Question_0": OPTIONS, "Question_1": OPTIONS}
    row |= {f"Image_{i}_Question_{q}": "AB"[i ^ q] for i in (0, 1) for q in (0, 1)}
    data = load(parquet(tmp_path / "train.parquet", [{**row, "Question_Type": "multiple_choice", "Source": "x"}]))
    assert groups(data) == ["7"] * 4
    assert [(one.question, one.choices, one.target) for one in data][:2] == [
        ("Who is it?", ("A man", "A woman"), "A man"),
        ("Who is it?", ("A man", "A woman"), "A woman"),
    ]


def test_naturalbench_for_lmms_eval_has_four_rows_a_group(tmp_path: Path) -> None:
    rows = [
        {"Index": i, "Image": stored(i % 2), "Question": f"Is it {i // 2}?", "Answer": "Yes", "Question_Type": "yes_no"}
        for i in range(6)
    ]
    rows[0] |= {"Question": OPTIONS, "Answer": "B", "Question_Type": "multiple_choice"}
    data = load(parquet(tmp_path / "test.parquet", rows))
    assert groups(data) == ["0"] * 4 + ["1"] * 2
    assert (data[0].target, data[1].target, data[0].image_id == data[2].image_id) == ("A woman", "Yes", True)


@pytest.mark.parametrize(
    ("name", "columns", "cells", "expected"),
    [
        ("MMVP", "A\tB\tanswer", ["red\tblue\tA", "red\tblue\tB", "red\tblue\tA"], ["0", "0", "1"]),
        ("MME", "image_path\tanswer", ["a.jpg\tYes", "a.jpg\tNo", "b.jpg\tYes"], ["a.jpg", "a.jpg", "b.jpg"]),
        ("NaturalBenchDataset", "type\tanswer", ["yes_no\tYes"] * 5, ["0", "0", "0", "0", "1"]),
        ("SEEDBench_IMG", "A\tB\tanswer", ["red\tblue\tA"] * 2, ["", ""]),
    ],
)
def test_tables_of_vlmevalkit_tell_groups_by_name_and_order(
    tmp_path: Path, name: str, columns: str, cells: list[str], expected: list[str]
) -> None:
    rows = [f"{i}\tIs it?\tx\t{cell}" for i, cell in enumerate(cells)]
    path = make.write(tmp_path / f"{name}.tsv", f"index\tquestion\tcategory\t{columns}\n" + "\n".join(rows) + "\n")
    assert groups(load(f"vlmevalkit:{path}")) == expected


def test_the_index_of_hallusionbench_in_vlmevalkit_names_the_set(tmp_path: Path) -> None:
    ids = ["VD_illusion_1_0_0_0", "VD_illusion_1_0_1_0", "VS_chart_0_2_0_1"]
    rows = "".join(f"{one}\tIs it?\tVD\tYes\n" for one in ids)
    path = make.write(tmp_path / "HallusionBench.tsv", "index\tquestion\tcategory\tanswer\n" + rows)
    assert groups(load(f"vlmevalkit:{path}")) == ["VD_illusion_0", "VD_illusion_0", "VS_chart_2"]


def test_naturalbench_in_vlmevalkit_has_its_options_in_the_question(tmp_path: Path) -> None:
    cell = '"Who is it?\nOption:\nA: A man;\nB: A woman;"'
    text = f"index\tquestion\tcategory\ttype\tanswer\n0\t{cell}\tx\tmultiple_choice\tB\n"
    (example,) = load(f"vlmevalkit:{make.write(tmp_path / 'NaturalBenchDataset.tsv', text)}")
    assert (example.question, example.choices, example.target) == ("Who is it?", ("A man", "A woman"), "A woman")


def test_complementary_pairs_of_vqa_are_groups(tmp_path: Path) -> None:
    asked = [question(1, 42), question(2, 43), question(3, 44)]
    make.vqa2(tmp_path, asked, [annotation(1, 42), annotation(2, 43), annotation(3, 44)])
    before = load(tmp_path).fingerprint
    make.write(tmp_path / "v2_mscoco_train2014_complementary_pairs.json", [[1, 3]])
    assert load(tmp_path).fingerprint == before  # pairs of another split
    make.write(tmp_path / "v2_mscoco_val2014_complementary_pairs.json", [[2, 1], [9, 8]])
    data = load(tmp_path)
    assert groups(data) == ["2", "2", ""] and data.fingerprint != before
    make.write(tmp_path / "v2_mscoco_val2014_complementary_pairs.json", [[2, 1], [3]])
    with pytest.raises(DataError, match=r"complementary_pairs.json, record 2: .* is not a pair of question ids"):
        load(tmp_path)


def gqa_row(id_: str, answer: str, equivalent: Sequence[str], entailed: Sequence[str]) -> dict[str, Any]:
    row = {"id": id_, "imageId": "2354786", "question": f"Is it {id_}?", "answer": answer, "isBalanced": True}
    return {**row, "equivalent": list(equivalent), "entailed": list(entailed), "types": {"structural": "verify"}}


GQA = [
    gqa_row("1", "yes", ["1", "2"], ["2", "3"]),
    gqa_row("2", "yes", ["1", "2"], []),
    gqa_row("3", "no", ["3"], ["1"]),
    gqa_row("4", "no", ["4"], []),
]
"""Two wordings of one question, one that follows from them, and one that stands alone."""


def test_gqa_tells_what_is_the_same_and_what_follows(tmp_path: Path) -> None:
    content = {row["id"]: {key: value for key, value in row.items() if key != "id"} for row in GQA}
    data = load(make.write(tmp_path / "val_balanced_questions.json", content))
    assert [(one.group, one.contrast) for one in data] == [("1", "1"), ("1", "1"), ("", "1"), ("", "")]


@pytest.mark.parametrize("as_text", [False, True])
def test_gqa_of_the_hub_brings_its_images_in_a_table_of_their_own(tmp_path: Path, as_text: bool) -> None:
    rows = [{**row, **({k: str(row[k]) for k in ("equivalent", "entailed")} if as_text else {})} for row in GQA]
    parquet(tmp_path / "testdev_balanced_instructions" / "testdev-00000-of-00001.parquet", rows)
    images = [{"id": "2354786", "image": stored(5)}, {"id": "n1", "image": stored(6)}]
    parquet(tmp_path / "testdev_balanced_images" / "testdev-00000-of-00001.parquet", images)
    data = load(tmp_path)
    assert [(one.group, one.contrast) for one in data] == [("1", "1"), ("1", "1"), ("", "1"), ("", "")]
    assert data[0].image is not None and data[0].image.read() == png(5)
    assert check(tmp_path).ok


def test_two_tables_of_one_name_in_two_folders_are_two_splits(tmp_path: Path) -> None:
    for folder in ("easy", "hard"):
        make.write(tmp_path / folder / "test.jsonl", json.dumps({"question": f"{folder}?"}) + "\n")
    assert sorted(one.question for one in load(tmp_path, split="all")) == ["easy?", "hard?"]
    assert load(f"{tmp_path}#hard/test")[0].question == "hard?"


def test_two_configurations_of_the_hub_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    parquet(tmp_path / "q" / "testdev-00000-of-00001.parquet", GQA)
    parquet(tmp_path / "i" / "testdev-00000-of-00001.parquet", [{"id": "2354786", "image": stored(5)}])
    configs = "".join(
        f"- config_name: testdev_balanced_{name}\n  data_files:\n  - split: testdev\n    path: {folder}/*.parquet\n"
        for name, folder in (("instructions", "q"), ("images", "i"))
    )
    features = "dataset_info:\n- config_name: testdev_balanced_images\n  features:\n  - name: id\n    dtype: string\n"
    features += "  - name: image\n    dtype: image\n"
    make.write(tmp_path / "README.md", f"---\n{features}configs:\n{configs}---\n")
    data = load(f"hf:{tmp_path}?config=testdev_balanced_instructions")
    assert data[0].image is not None and data[0].image.read() == png(5)


def test_convqa_as_released_has_a_file_an_image(tmp_path: Path) -> None:
    sets = [[{"question": "is it red", "answer": "yes"}, {"question": "is it blue", "answer": "no"}], []]
    make.write(tmp_path / "qas_2342914.json", {"consistent": sets, "info": {"a": 1}})
    make.picture(tmp_path / "VG_100K" / "2342914.jpg")
    data = load(tmp_path)
    assert [(one.id, one.target, one.image_id, one.contrast) for one in data] == [
        ("2342914-0-0", "yes", "2342914", "2342914-0"),
        ("2342914-0-1", "no", "2342914", "2342914-0"),
    ]
    assert check(tmp_path).ok


def test_convqa_in_one_file(tmp_path: Path) -> None:
    data = load(make.convqa(tmp_path))
    assert groups(data) == ["2342914-0"] * 2 + ["2342914-1"] * 2
    assert [one.answer_type for one in data] == ["yes/no", "yes/no", "yes/no", "other"]


def test_a_table_may_name_contrast_groups_itself(tmp_path: Path) -> None:
    rows = [{"question": "a?", "contrast_group": 5}, {"question": "b?", "pair": "x", "contrast": "with agent"}]
    path = make.write(tmp_path / "mine.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert groups(load(path)) == ["5", ""]
    assert groups(load(f"{path}?contrast=pair")) == ["", "x"]


def test_groups_of_two_splits_stay_apart(tmp_path: Path) -> None:
    for split in ("train", "val"):
        make.write(tmp_path / f"{split}.jsonl", json.dumps({"id": 1, "question": "a?", "contrast_group": "g"}) + "\n")
    assert sorted(groups(load(tmp_path, split="all"))) == ["g", "val-g"]


def test_the_fingerprint_knows_contrast_and_nothing_else_changed() -> None:
    plain = Example(id="1", question="a?", answers=("x",), target="x", choices=("x", "y"))
    assert fingerprint([plain]) == "093f7edc28f803fdca24eb4d3dc76bf5786a89ec4edfcc4ff98b3652cdb68043"
    assert fingerprint([plain]) != fingerprint([Example(id="1", question="a?", contrast="g")])


def test_several_splits_of_the_world() -> None:
    data = load("world#train+val?scenes=2&rephrasings=0")
    assert len(data) == 2 * len(load("world?scenes=2&rephrasings=0"))
    assert len({one.id for one in data}) == len(data) and data.notes["split"] == "train+val"
    assert {one.image_id.split("_")[1] for one in data} == {"train", "val"}
