"""Tables in the layouts in which data sets are published: files of their authors, and columns of the hub."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pfungst.core import DataError, Dataset
from pfungst.data import check, load
from tests.data import published_formats as make
from tests.data.test_tables import lines, parquet
from tests.data.test_vlmevalkit_format import base, encoded


def stored(number: int, path: str | None = None) -> dict[str, Any]:
    """An image as the hub's Parquet files hold it."""
    return {"bytes": encoded(number), "path": path}


def pictures(data: Dataset) -> list[bytes]:
    return [one.image.read() for one in data if one.image is not None]


def test_pope_as_released(tmp_path: Path) -> None:
    """JSON lines in a file called .json."""
    make.picture(tmp_path / "val2014" / "COCO_val2014_000000310196.jpg")
    rows = [
        {"question_id": i, "image": "COCO_val2014_000000310196.jpg", "text": f"Is there a {i}?", "label": label}
        for i, label in enumerate(["yes", "no"], 1)
    ]
    path = lines(tmp_path, *rows, name="coco_pope_random.json")
    data = load(path)
    assert data.metric == "yes/no"
    assert [(one.id, one.question, one.target) for one in data] == [
        ("1", "Is there a 1?", "yes"),
        ("2", "Is there a 2?", "no"),
    ]
    assert {one.image_id for one in data} == {"COCO_val2014_000000310196.jpg"}
    assert check(path).ok


@pytest.mark.parametrize("name", ["mine.json", "mine.txt", "mine.log", "mine"])
def test_json_lines_are_read_whatever_the_file_is_called(tmp_path: Path, name: str) -> None:
    path = lines(tmp_path, {"question": "a?", "answer": "x"}, {"question": "b?", "answer": "y"}, name=name)
    assert [one.target for one in load(path)] == ["x", "y"]
    assert len(load(lines(tmp_path / "one", {"question": "a?", "answer": "x"}, name=name))) == 1


def test_pope_of_the_hub(tmp_path: Path) -> None:
    rows = [
        {
            "id": str(i),
            "question_id": "1",
            "question": "Is there a dog?",
            "answer": "no",
            "image_source": "COCO_val2014_000000310196",
            "image": stored(i),
            "category": "popular",
        }
        for i in range(2)
    ]
    data = load(parquet(tmp_path / "test-00000-of-00001.parquet", rows))
    assert [(one.id, one.image_id, one.question_type) for one in data] == [
        ("0", "COCO_val2014_000000310196", "popular"),
        ("1", "COCO_val2014_000000310196", "popular"),
    ]
    assert (pictures(data), data.metric) == ([encoded(0), encoded(1)], "yes/no")


def test_mme_of_the_hub_has_two_questions_by_one_name(tmp_path: Path) -> None:
    rows = [
        {"question_id": "OCR/0001.jpg", "image": stored(1), "question": f"Is it {i}?", "answer": a, "category": "OCR"}
        for i, a in enumerate(["Yes", "No"])
    ]
    data = load(parquet(tmp_path / "mme.parquet", rows))
    assert [(one.id, one.image_id, one.target) for one in data] == [
        ("OCR/0001.jpg:1", "OCR/0001.jpg", "Yes"),
        ("OCR/0001.jpg:2", "OCR/0001.jpg", "No"),
    ]


def test_mmbench_of_the_hub(tmp_path: Path) -> None:
    row = {"index": 241, "question": "Which?", "hint": "Look up.", "A": "sun", "B": "moon", "C": None, "D": "nan"}
    row |= {"answer": "B", "category": "sky", "L2-category": "x", "source": "s", "split": "dev", "image": stored(1)}
    row["D"] = None
    data = load(parquet(tmp_path / "dev.parquet", [row]))
    spelt = load(parquet(tmp_path / "nan" / "dev.parquet", [{**row, "hint": "nan", "C": "nan", "D": "nan"}]))
    assert (spelt[0].question, spelt[0].choices) == ("Which?", ("sun", "moon"))
    assert (data[0].id, data[0].question, data[0].choices) == ("241", "Look up.\nWhich?", ("sun", "moon"))
    assert (data[0].target, data[0].question_type, data.metric) == ("moon", "sky", "choice")


@pytest.mark.parametrize(
    ("question", "choices"),
    [
        (
            "Which option is right?\nOptions: A: On the book., B: Under the cat, sadly., C: 3.5, D: D.",
            ("On the book.", "Under the cat, sadly.", "3.5", "D."),
        ),
        ("Which option is right?\nChoices:\n(A) one\n(B) two (really)", ("one", "two (really)")),
        ("Which option is right?\nOptions:\nA. a b\nB. b a", ("a b", "b a")),
    ],
)
def test_mmstar_has_its_options_in_the_question(tmp_path: Path, question: str, choices: tuple[str, ...]) -> None:
    row = {"index": 0, "question": question, "image": encoded(1), "answer": "B", "category": "coarse perception"}
    row |= {"l2_category": "scene", "meta_info": {"source": "MMBench", "split": "val"}}
    data = load(parquet(tmp_path / "mmstar.parquet", [row]))
    assert (data[0].question, data[0].choices, data[0].target) == ("Which option is right?", choices, choices[1])
    assert (pictures(data), data[0].question_type) == ([encoded(1)], "coarse perception")


def test_mmstar_options_that_cannot_be_told_apart_stay_in_the_question(tmp_path: Path) -> None:
    row = {"index": 0, "question": "Which letter is drawn here?", "image": encoded(1), "answer": "C", "category": "c"}
    data = load(parquet(tmp_path / "mmstar.parquet", [{**row, "l2_category": "s", "meta_info": {"source": "x"}}]))
    assert (data[0].question, data[0].choices, data[0].target) == (row["question"], ("A", "B", "C", "D"), "C")


SEED = {"answer": "C", "choice_a": "One", "choice_b": "Two", "choice_c": "Three", "choice_d": "Four"}
SEED |= {"data_type": "image", "question": "How many towels?", "question_id": "101669", "question_type_id": 5}


def test_seed_bench_as_released(tmp_path: Path) -> None:
    rows = [{**SEED, "data_id": "1454426_2591111986"}]
    path = make.write(tmp_path / "SEED-Bench.json", {"questions": rows, "question_type": {"Scene": 1}})
    (example,) = load(path)
    assert (example.id, example.choices, example.target) == ("101669", ("One", "Two", "Three", "Four"), "Three")


def test_seed_bench_of_the_hub_has_lists_of_pictures(tmp_path: Path) -> None:
    data = load(parquet(tmp_path / "test.parquet", [{**SEED, "image": [stored(1), stored(2)]}]))
    assert (data[0].target, pictures(data)) == ("Three", [encoded(1)])


HALLUSION = {"category": "VD", "subcategory": "illusion", "visual_input": "1", "set_id": "0", "figure_id": "0"}
HALLUSION |= {"sample_note": "circle", "question_id": "0", "question": "Is it larger?", "gt_answer_details": "It is."}


def test_hallusionbench_as_released(tmp_path: Path) -> None:
    make.picture(tmp_path / "hallusion_bench" / "VD" / "illusion" / "0_0.png")
    make.picture(tmp_path / "hallusion_bench" / "VS" / "chart" / "0_0.png")
    shown = {**HALLUSION, "gt_answer": "1", "filename": "./hallusion_bench/VD/illusion/0_0.png"}
    unseen = {**HALLUSION, "category": "VS", "subcategory": "chart", "visual_input": "0", "gt_answer": "0"}
    data = load(make.write(tmp_path / "HallusionBench.json", [shown, {**unseen, "filename": None}]))
    assert [(one.id, one.target, one.image is not None) for one in data] == [
        ("VD_illusion_1_0_0_0", "yes", True),
        ("VS_chart_0_0_0_0", "no", False),
    ]
    assert data.metric == "yes/no"


def test_hallusionbench_of_the_hub(tmp_path: Path) -> None:
    row = {**HALLUSION, "gt_answer": "0", "filename": "./hallusion_bench/VD/illusion/0_0.png", "image": stored(1)}
    data = load(parquet(tmp_path / "image.parquet", [row, {**row, "question_id": "1", "gt_answer": "1"}]))
    assert [(one.id, one.target) for one in data] == [("VD_illusion_1_0_0_0", "no"), ("VD_illusion_1_0_0_1", "yes")]
    assert {one.image_id for one in data} == {"./hallusion_bench/VD/illusion/0_0.png"}


def test_naturalbench_is_four_questions_a_row(tmp_path: Path) -> None:
    row = {"Index": 7, "Image_0": stored(0), "Image_1": stored(1), "Question_0": "Is it a?", "Question_1": "Is it b?"}
    row |= {"Image_0_Question_0": "Yes", "Image_1_Question_0": "No", "Image_0_Question_1": "No"}
    row |= {"Image_1_Question_1": "Yes", "Question_Type": "yes_no", "Source": "x"}
    data = load(parquet(tmp_path / "train.parquet", [row]))
    assert [(one.id, one.question, one.target, one.image_id) for one in data] == [
        ("7-q0i0", "Is it a?", "Yes", "7-i0"),
        ("7-q0i1", "Is it a?", "No", "7-i1"),
        ("7-q1i0", "Is it b?", "No", "7-i0"),
        ("7-q1i1", "Is it b?", "Yes", "7-i1"),
    ]
    assert pictures(data) == [encoded(0), encoded(1)] * 2
    assert data.metric == "yes/no"


def test_naturalbench_for_lmms_eval(tmp_path: Path) -> None:
    row = {"Index": 0, "Image": stored(1), "Question": "Is it?", "Answer": "Yes", "Question_Type": "yes_no"}
    data = load(parquet(tmp_path / "test.parquet", [row]))
    assert (data[0].id, data[0].question, data[0].target, pictures(data)) == ("0", "Is it?", "Yes", [encoded(1)])


@pytest.mark.parametrize("index", ["Index", "lndex"])
def test_mmvp_as_released(tmp_path: Path, index: str) -> None:
    make.picture(tmp_path / "MMVP Images" / "1.jpg")
    header = f"{index},Question,Options,Correct Answer\n"
    make.write(tmp_path / "Questions.csv", header + "1,Are the wings open?,(a) Open (b) Closed,(b)\n")
    data = load(tmp_path)
    assert (data[0].id, data[0].choices, data[0].target) == ("1", ("Open", "Closed"), "Closed")
    assert (data[0].image is not None, data[0].image_id, data.metric) == (True, "1", "choice")


def test_mmvp_of_the_hub(tmp_path: Path) -> None:
    row = {
        "Index": 1,
        "Question": "Open?",
        "Options": "(a) Open (b) Closed",
        "Correct Answer": "(a)",
        "image": stored(1),
    }
    data = load(parquet(tmp_path / "train.parquet", [row]))
    assert (data[0].target, pictures(data)) == ("Open", [encoded(1)])


def test_vqa_rad_as_released(tmp_path: Path) -> None:
    make.picture(tmp_path / "VQA_RAD Image Folder" / "synpic54610.jpg")
    row = {"qid": "0", "phrase_type": "freeform", "qid_linked_id": "03f4", "image_name": "synpic54610.jpg"}
    row |= {"question": "Are regions infarcted?", "question_type": "PRES", "answer": "Yes", "answer_type": "CLOSED"}
    make.write(tmp_path / "VQA_RAD Dataset Public.json", [row, {**row, "qid": "1", "answer": 2}])
    data = load(tmp_path)
    assert [(one.id, one.target, one.answer_type, one.question_type) for one in data] == [
        ("0", "Yes", "CLOSED", "PRES"),
        ("1", "2", "CLOSED", "PRES"),
    ]
    assert all(one.image is not None for one in data)


def test_slake_as_released(tmp_path: Path) -> None:
    for name in ("xmlab0", "xmlab1"):
        make.picture(tmp_path / "imgs" / name / "source.jpg")
    row = {"img_id": 1, "img_name": "xmlab1/source.jpg", "question": "What modality?", "answer": "MRI", "q_lang": "en"}
    row |= {"location": "Abdomen", "modality": "MRI", "answer_type": "OPEN", "content_type": "Modality", "qid": 11934}
    path = make.write(tmp_path / "test.json", [{**row, "triple": ["vhead", "_", "_"]}])
    (example,) = load(path)
    assert (example.id, example.target, example.question_type, example.image_id) == ("11934", "MRI", "Modality", "1")
    assert example.image is not None and "xmlab1" in str(example.image)


def test_textvqa_as_released(tmp_path: Path) -> None:
    make.picture(tmp_path / "train_images" / "003a8ae2ef43b901.jpg")
    row = {"question": "what brand?", "image_id": "003a8ae2ef43b901", "image_classes": ["Cassette"]}
    row |= {"flickr_original_url": "https://x/y.jpg", "question_id": 34602, "answers": ["dakota"] * 9 + ["clos"]}
    whole = {"dataset_type": "val", "dataset_name": "textvqa", "dataset_version": "0.5.1", "data": [row]}
    make.write(tmp_path / "TextVQA_0.5.1_val.json", whole)
    data = load(tmp_path)
    assert (data[0].id, data[0].target, len(data[0].answers), data.metric) == ("34602", "dakota", 10, "vqa")
    assert data[0].image is not None


def test_vizwiz_as_released(tmp_path: Path) -> None:
    make.picture(tmp_path / "val" / "VizWiz_val_00000000.jpg")
    answers = [{"answer": "chef", "answer_confidence": "yes"}, {"answer": "unsuitable", "answer_confidence": "no"}]
    row = {"image": "VizWiz_val_00000000.jpg", "question": "What is this?", "answers": answers, "answerable": 1}
    data = load(make.write(tmp_path / "val.json", [{**row, "answer_type": "other"}]))
    assert (data[0].answers, data[0].answer_type, data.metric) == (("chef", "unsuitable"), "other", "vqa")
    assert data[0].image is not None


@pytest.mark.parametrize("direct", [["bus", "bus", "train"], "['bus', 'bus', \"train\"]"])
def test_aokvqa(tmp_path: Path, direct: Any) -> None:
    make.picture(tmp_path / "val2017" / "000000461751.jpg")
    row = {"split": "val", "image_id": 461751, "question_id": "22jb", "question": "What is in the motion?"}
    row |= {"choices": ["ice", "train", "bus"], "correct_choice_idx": 1, "direct_answers": direct, "rationales": ["r"]}
    path = make.write(tmp_path / "aokvqa_v1p0_val.json", [{**row, "difficult_direct_answer": False}])
    data = load(path)
    assert (data[0].target, data[0].answers, data.metric) == ("train", ("bus", "bus", "train"), "choice")
    assert data[0].image is not None
    open_ended = load(f"{path}?choices=none")
    assert (open_ended[0].target, open_ended[0].choices, open_ended.metric) == ("bus", (), "vqa")


SCIENCE = {"question": "Which?", "choices": ["north", "south"], "answer": 1, "hint": "Magnets attract.", "lecture": ""}
SCIENCE |= {"task": "closed choice", "grade": "grade2", "subject": "natural science", "category": "Magnets"}


def test_scienceqa_as_released(tmp_path: Path) -> None:
    make.picture(tmp_path / "test" / "1" / "image.png")
    make.picture(tmp_path / "test" / "2" / "image.png")
    problems = {str(i): {**SCIENCE, "image": "image.png", "split": "test"} for i in (1, 2)}
    problems["3"] = {**SCIENCE, "image": None, "split": "test"}
    data = load(make.write(tmp_path / "problems.json", problems))
    assert [(one.id, one.target, one.image is not None) for one in data] == [
        ("1", "south", True),
        ("2", "south", True),
        ("3", "south", False),
    ]
    assert data[0].question == "Magnets attract.\nWhich?"
    assert "test/2/image.png" in str(data[1].image)


def test_scienceqa_of_the_hub_has_questions_without_a_picture(tmp_path: Path) -> None:
    data = load(parquet(tmp_path / "val.parquet", [{**SCIENCE, "image": stored(1)}, {**SCIENCE, "image": None}]))
    assert [one.image is not None for one in data] == [True, False]
    assert data[0].question_type == "Magnets"


def test_gqa_of_the_hub_names_its_pictures(tmp_path: Path) -> None:
    make.picture(tmp_path / "images" / "n161313.jpg")
    row = {"id": "201307251", "imageId": "n161313", "question": "Is it overcast?", "answer": "no", "isBalanced": True}
    data = load(
        parquet(tmp_path / "testdev.parquet", [{**row, "fullAnswer": "No.", "types": {"structural": "verify"}}])
    )
    assert (data[0].id, data[0].image_id, data[0].image is not None) == ("201307251", "n161313", True)


def test_base64_in_any_table_is_a_picture(tmp_path: Path) -> None:
    data = load(lines(tmp_path, {"question": "a?", "image": base(1)}, {"question": "b?", "image": base(2, "JPEG")}))
    assert pictures(data) == [encoded(1), encoded(2, "JPEG")]


@pytest.mark.parametrize("answer", ["B", "b", "(B)", "B.", "dog", "Dog", 1])
def test_with_choices_an_answer_may_be_a_letter_a_text_or_a_number(tmp_path: Path, answer: Any) -> None:
    (example,) = load(lines(tmp_path, {"question": "a?", "choices": ["cat", "dog"], "answer": answer}))
    assert example.target == "dog"


def test_a_letter_that_is_an_option_itself_means_that_option(tmp_path: Path) -> None:
    rows = {"question": "Which letter?", "choices": ["B", "A"], "answer": "A"}, {"question": "?", "choices": ["C", "A"]}
    first, _ = load(lines(tmp_path, rows[0], {**rows[1], "answer": "C"}))
    assert first.target == "A"


def test_a_category_that_is_no_text_does_no_harm(tmp_path: Path) -> None:
    rows = [{"question": "a?", "category": 3, "hint": 5}, {"question": "b?", "category": ["x"], "hint": None}]
    assert [(one.question, one.question_type) for one in load(lines(tmp_path, *rows))] == [("a?", "3"), ("b?", "")]


def test_unknown_columns_are_named_with_the_option_that_maps_them(tmp_path: Path) -> None:
    path = lines(tmp_path, {"frage": "Was?", "antwort": "Katze"})
    with pytest.raises(DataError, match=r"the columns are frage, antwort\. .*\?question=COLUMN"):
        load(path)
    assert load(f"{path}?question=frage")[0].question == "Was?"


def test_an_empty_cell_is_not_an_unknown_column(tmp_path: Path) -> None:
    make.write(tmp_path / "mine.csv", "id,question\n1,What?\n2,\n")
    with pytest.raises(DataError, match='line 3: "question" is empty.'):
        load(tmp_path)


def test_json_with_records_is_as_before(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps([{"question": "a?", "answer": "x"}], indent=1))
    assert load(path)[0].target == "x"


def saved(folder: Path, rows: list[dict[str, Any]], features: dict[str, Any]) -> str:
    datasets = pytest.importorskip("datasets")
    datasets.Dataset.from_list(rows, features=datasets.Features(features)).save_to_disk(str(folder))
    return f"hf:{folder}"


def test_a_saved_data_set_may_have_rows_without_a_picture(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    rows = [{"question": "a?", "image": stored(1)}, {"question": "b?", "image": None}]
    data = load(saved(tmp_path / "s", rows, {"question": datasets.Value("string"), "image": datasets.Image()}))
    assert [one.image is not None for one in data] == [True, False]
    assert pictures(data) == [encoded(1)]


def test_a_saved_data_set_may_have_several_columns_and_lists_of_pictures(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    text = datasets.Value("string")
    row = {"Index": "7", "Image_0": stored(0), "Image_1": stored(1), "Question_0": "Is it a?", "Question_1": "b?"}
    row |= {f"Image_{i}_Question_{j}": "Yes" if i == j else "No" for i in (0, 1) for j in (0, 1)}
    features = {key: datasets.Image() if key in ("Image_0", "Image_1") else text for key in row}
    data = load(saved(tmp_path / "wide", [row], features))
    assert [one.target for one in data] == ["Yes", "No", "No", "Yes"]
    assert pictures(data) == [encoded(0), encoded(1)] * 2
    many = {"question": "a?", "image": [stored(3), stored(4)]}
    data = load(saved(tmp_path / "list", [many], {"question": text, "image": datasets.Sequence(datasets.Image())}))
    assert pictures(data) == [encoded(3)]


def test_a_list_of_pictures_in_a_saved_data_set_may_be_empty_and_several_are_counted(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    rows = [{"question": "a?", "images": [stored(3), stored(4)]}, {"question": "b?", "images": []}]
    columns = {"question": datasets.Value("string"), "images": datasets.Sequence(datasets.Image())}
    data = load(saved(tmp_path / "s", rows, columns))
    assert [one.image is not None for one in data] == [True, False]
    assert [value for note, value in data.notes.items() if "several images" in note] == [1]


def test_mathvista_of_the_hub(tmp_path: Path) -> None:
    """The column `image` is a path of the authors; the image itself is in another."""
    row = {"pid": "7", "question": "Which?", "image": "images/7.jpg", "decoded_image": stored(7), "answer": "blue"}
    row |= {"choices": ["red", "blue"], "unit": None, "precision": 1.0}
    (example,) = load(parquet(tmp_path / "testmini.parquet", [row]))
    assert (example.id, example.target, example.choices) == ("7", "blue", ("red", "blue"))
    assert example.image is not None and example.image.read() == encoded(7)


def test_chartqa_and_infographicvqa_of_the_hub(tmp_path: Path) -> None:
    chart = {"image": stored(1), "query": "Which year?", "label": ["2014"], "human_or_machine": 0}
    (example,) = load(parquet(tmp_path / "chart" / "test.parquet", [chart]))
    assert (example.answers, example.target) == (("2014",), "2014")
    row = {"questionId": "9", "question": "How long?", "answers": ["4 weeks"], "answer_type": ["single span"]}
    (example,) = load(parquet(tmp_path / "info" / "val.parquet", [row | {"image": stored(2)}]))
    assert (example.id, example.target, example.answer_type) == ("9", "4 weeks", "single span")


HOW = "Please answer directly with only the letter of the correct option and nothing else."
OPEN = {"question": "How many cars? Please answer directly with a single word or number.", "answer": "3"}


def realworldqa(folder: Path, *rows: dict[str, str]) -> Path:
    return make.write(folder / "RealWorldQA.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


def test_options_in_lines_of_the_question_are_choices(tmp_path: Path) -> None:
    row = {"question": f"Which way does the car face?\n\nA. Left\nB. Straight on\nC. Right\n{HOW}", "answer": "B"}
    choice, open_ = load(realworldqa(tmp_path, row, OPEN))
    assert choice.question == "Which way does the car face?"
    assert (choice.choices, choice.target) == (("Left", "Straight on", "Right"), "Straight on")
    assert (open_.question, open_.choices, open_.target) == (OPEN["question"], (), "3")


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Which grade?\nA. good\nB. bad", "C"),  # a letter that is no option
        ("Which grade?\nA. good\nB. bad", "good"),  # no letter
        ("Which grade?\nA. good\nindeed\nB. bad", "A"),  # an option of two lines
        ("Which grade?\nA. good\nB. bad\nThink of both.", "A"),  # more of the question behind the options
        ("A. good\nB. bad", "A"),  # nothing is asked
        ("Which vitamin?\nA: carrots\nC: lemons", "A"),
    ],
)
def test_options_in_lines_that_are_not_clear_stay_in_the_question(tmp_path: Path, question: str, answer: str) -> None:
    example = load(realworldqa(tmp_path, {"question": question, "answer": answer}))[0]
    assert (example.question, example.choices, example.target) == (question, (), answer)


def test_a_table_can_be_told_to_leave_options_in_the_question(tmp_path: Path) -> None:
    row = {"question": "Which grade?\nA. good\nB. bad", "answer": "A"}
    for more in ({"target": "A"}, {"answers": ["A", "A"]}):
        assert load(realworldqa(tmp_path, row | more))[0].choices == ()
    assert load(realworldqa(tmp_path, row), choices="none")[0].choices == ()


def test_chartqa_as_released_names_its_images(tmp_path: Path) -> None:
    make.write(tmp_path / "test" / "test_human.json", [{"imgname": "1.png", "query": "How many?", "label": "3"}])
    make.picture(tmp_path / "test" / "png" / "1.png")
    (example,) = load(tmp_path)
    assert (example.question, example.target, example.image_id) == ("How many?", "3", "1.png")
    assert example.image is not None
