"""Plain tables: JSON lines, CSV, Parquet, and Hugging Face data sets on disk."""

from __future__ import annotations

import base64
import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pfungst import examine
from pfungst.core import DataError, Example, PfungstError, UsageError
from pfungst.data import check, load
from tests.data import published_formats as make

FULL = {
    "id": "q1",
    "question": "What is it?",
    "image_id": "p1",
    "answers": ["cat", "cat", "dog"],
    "target": "cat",
    "answer_type": "other",
    "question_type": "what",
    "choices": ["cat", "dog", "fox"],
    "group": "q0",
    "scene": {"objects": [make.OBJECT]},
    "program": [{"function": "scene", "inputs": [], "value_inputs": []}],
}
EXPECTED = Example(
    id="q1",
    question="What is it?",
    image_id="p1",
    answers=("cat", "cat", "dog"),
    target="cat",
    answer_type="other",
    question_type="what",
    choices=("cat", "dog", "fox"),
    scene={"objects": [make.OBJECT]},
    program=({"function": "scene", "inputs": [], "value_inputs": []},),
    group="q0",
)


def lines(folder: Path, *rows: Any, name: str = "mine.jsonl") -> Path:
    return make.write(folder / name, "".join(json.dumps(row) + "\n" for row in rows))


def parquet(path: Path, rows: list[dict[str, Any]], **options: Any) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    columns = list(dict.fromkeys(column for row in rows for column in row))
    pq.write_table(pa.table({column: [row.get(column) for row in rows] for column in columns}), path, **options)
    return path


def test_json_lines_carry_every_field(tmp_path: Path) -> None:
    assert load(lines(tmp_path, FULL)).examples == (EXPECTED,)


def test_a_json_list_is_the_same_table(tmp_path: Path) -> None:
    assert load(make.write(tmp_path / "mine.json", [FULL])).examples == (EXPECTED,)
    assert load(f"table:{make.write(tmp_path / 'other.json', {'data': [FULL]})}").examples == (EXPECTED,)


def test_parquet_is_the_same_table(tmp_path: Path) -> None:
    assert load(parquet(tmp_path / "mine.parquet", [FULL])).examples == (EXPECTED,)


@pytest.mark.parametrize(("suffix", "comma"), [(".csv", ","), (".tsv", "\t")])
def test_csv_writes_lists_as_json_or_between_bars(tmp_path: Path, suffix: str, comma: str) -> None:
    cells = {key: value if isinstance(value, str) else json.dumps(value) for key, value in FULL.items()}
    cells["choices"] = "cat|dog | fox"
    quoted = ['"' + cell.replace('"', '""') + '"' for cell in cells.values()]
    make.write(tmp_path / f"mine{suffix}", comma.join(cells) + "\r\n" + comma.join(quoted) + "\r\n")
    assert load(tmp_path).examples == (EXPECTED,)


def test_a_quotation_mark_that_is_only_text_swallows_no_rows(tmp_path: Path) -> None:
    asked = ['5" or 6"?', '"What is it', "Is it red?", '"What is that', "Where?"]
    rows = "".join(f"{number}\t{question}\t{number}\n" for number, question in enumerate(asked))
    make.write(tmp_path / "mine.tsv", f"id\tquestion\tanswer\n{rows}")
    assert [(one.id, one.question, one.target) for one in load(tmp_path)] == [
        (str(number), question, str(number)) for number, question in enumerate(asked)
    ]
    # A cell with line breaks and tabs of its own stays one.
    make.write(tmp_path / "mine.tsv", 'id\tquestion\tanswer\n1\t"a\tb\n1\t2\nWhat is b?"\t2\n')
    assert [(one.question, one.target) for one in load(tmp_path)] == [("a\tb\n1\t2\nWhat is b?", "2")]


def test_only_the_question_is_needed(tmp_path: Path) -> None:
    (example,) = load(lines(tmp_path, {"question": "What?"}))
    assert example == Example(id="1", question="What?")


def test_common_column_names_are_understood_and_others_can_be_named(tmp_path: Path) -> None:
    lines(tmp_path, {"question_id": 5, "query": "What?", "label": "cat", "options": ["cat", "dog"], "type": "t"})
    (example,) = load(tmp_path)
    assert (example.id, example.question, example.target, example.question_type) == ("5", "What?", "cat", "t")
    lines(tmp_path, {"frage": "Was?", "antwort": "Katze"})
    (example,) = load(f"{tmp_path}?question=frage&answer=antwort")
    assert (example.question, example.target) == ("Was?", "Katze")


def test_an_answer_that_is_a_number_names_a_choice(tmp_path: Path) -> None:
    lines(tmp_path, {"question": "Which?", "choices": ["cat", "dog"], "answer": 1})
    assert load(tmp_path)[0].target == "dog"
    lines(tmp_path, {"question": "Which?", "choices": ["cat", "dog"], "answer": 2})
    with pytest.raises(DataError, match="counted from 0"):
        load(tmp_path)
    lines(tmp_path, {"question": "How many?", "answer": 2})
    assert load(tmp_path)[0].target == "2"


def test_in_a_table_of_texts_a_number_names_a_choice_too(tmp_path: Path) -> None:
    make.write(tmp_path / "mine.csv", 'question,choices,answer\nWhich?,cat|dog,1\nHow many?,"[""2"", ""7""]",1\n')
    assert [example.target for example in load(tmp_path)] == ["dog", "7"]
    make.write(tmp_path / "mine.csv", "question,choices,answer\nWhich?,cat|dog,2\n")
    with pytest.raises(DataError, match="counted from 0"):
        load(tmp_path)


def test_an_answer_that_is_no_choice_is_told_with_the_choices(tmp_path: Path) -> None:
    make.write(tmp_path / "mine.csv", 'question,choices,answer\nWhich?,"cat, dog",dog\n')
    with pytest.raises(DataError, match=r"'dog' is not among its choices \['cat, dog'\]"):
        load(tmp_path)


def test_the_text_of_an_option_is_not_a_letter_of_an_option_far_behind(tmp_path: Path) -> None:
    make.write(tmp_path / "mine.csv", "question,A,B,C,D,answer\nWhich?,x,y,z,,y\nWhich one?,x,y,z,,D\n")
    assert [(e.target, len(e.choices)) for e in load(tmp_path)] == [("y", 3), ("(empty option D)", 4)]
    make.write(tmp_path / "mine.csv", "question,A,B,C,D,answer\nWhich?,x,y,z,,w\n")
    with pytest.raises(DataError, match="'w' is not among its choices"):
        load(tmp_path)


def test_a_list_in_the_column_answer_holds_the_answers(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"question": "a?", "answer": ["x", "y", "y"]}, {"question": "b?", "answer": [2]}]
    rows += [{"question": "c?", "answer": []}, {"question": "d?", "answer": float("nan")}]
    data = load(lines(tmp_path, *rows))
    assert [(e.answers, e.target) for e in data] == [(("x", "y", "y"), "y"), (("2",), "2"), ((), None), ((), None)]


def test_several_images_of_a_question_are_counted(tmp_path: Path) -> None:
    picture = make.picture(tmp_path / "a.jpg")
    one, two = {"bytes": picture, "path": None}, {"bytes": b"", "path": None}
    rows = [{"question": "a?", "images": [one, two]}, {"question": "b?", "images": [one]}, {"question": "c?"}]
    columns = [{"question": "a?", "image_1": one, "image_2": two}, {"question": "b?", "image_1": one, "image_2": None}]
    for table in (rows, columns):
        data = load(parquet(tmp_path / "mine.parquet", table))
        assert [e.image.read() for e in data if e.image] == [picture, picture]
        assert [value for note, value in data.notes.items() if "several images" in note] == [1]


def test_a_column_that_holds_images_and_is_not_understood_is_named(tmp_path: Path) -> None:
    stored = {"bytes": make.picture(tmp_path / "a.jpg"), "path": None}
    rows = [{"question": "a?", "image_kind": "photo", "shown": stored}]
    report = check(parquet(tmp_path / "mine.parquet", rows))
    assert not report.ok and "?image=shown" in str(report)
    listed = check(lines(tmp_path / "lines", {"question": "a?", "picture_files": ["a.jpg"]}))
    assert not listed.ok and "?image=picture_files" in str(listed)


@pytest.mark.parametrize(
    ("rows", "metric"),
    [
        ([{"question": "a?", "answer": "x"}], "exact"),
        ([{"question": "a?", "answers": ["x", "y"]}], "vqa"),
        ([{"question": "a?", "answer": "x", "choices": ["x", "y"]}], "choice"),
        ([{"question": "a?", "answers": ["x", "x"], "choices": ["x", "y"]}], "choice"),
    ],
)
def test_the_metric_follows_what_the_answers_are(tmp_path: Path, rows: list[Any], metric: str) -> None:
    assert load(lines(tmp_path, *rows)).metric == metric
    assert load(tmp_path, metric="wups").metric == "wups"


def test_questions_with_a_single_choice_are_counted(tmp_path: Path) -> None:
    rows = [{"question": "a?", "answer": "x", "choices": ["x"]}, {"question": "b?", "answer": "x", "choices": "x|y"}]
    assert "Questions with a single choice, which every player gets right: 1." in str(check(lines(tmp_path, *rows)))


def test_questions_with_too_few_answers_for_their_metric_are_counted(tmp_path: Path) -> None:
    rows = [{"question": f"{n}?", "answers": ["x"] * n} for n in (1, 2, 3, 4, 10)]
    assert "Questions with two or three answers, too few for full marks" in str(check(lines(tmp_path, *rows)))
    assert 2 in load(tmp_path).notes.values()
    assert "too few" not in str(check(tmp_path, metric="any"))


def test_answers_in_the_manner_of_vqa_are_understood(tmp_path: Path) -> None:
    row = {"question": "a?", "answers": [{"answer": "x"}, {"answer": "y"}], "multiple_choice_answer": "y"}
    assert load(lines(tmp_path, row))[0].answers == ("x", "y")
    assert load(tmp_path)[0].target == "y"


def test_files_are_splits_and_shards_are_one(tmp_path: Path) -> None:
    for split, count in (("train", 3), ("val", 2)):
        for shard in range(2):
            rows = [{"question": f"{split} {shard} {n}?"} for n in range(count)]
            parquet(tmp_path / "data" / f"{split}-{shard:05d}-of-00002.parquet", rows)
    data = load(tmp_path)
    assert (len(data), data.notes["splits"]) == (4, {"taken": ["val"], "left": ["train"]})
    assert len(load(tmp_path, split="train")) == 6
    assert len(load(tmp_path, split="all")) == 10


def test_images_are_paths_below_the_folder_of_the_table(tmp_path: Path) -> None:
    content = make.picture(tmp_path / "pictures" / "a.png")
    lines(tmp_path, {"question": "a?", "image": "pictures/a.png"}, {"question": "b?", "image": "gone.png"})
    first, second = load(tmp_path / "mine.jsonl")
    assert first.image is not None and first.image.read() == content
    assert first.image_id == "pictures/a.png"
    assert (second.image, second.image_id) == (None, "gone.png")
    assert load(tmp_path).examples == (first, second)


def test_images_are_found_in_a_named_folder(tmp_path: Path) -> None:
    content = make.picture(tmp_path / "elsewhere" / "a.png")
    table = lines(tmp_path / "data", {"question": "a?", "image": "a.png"}, {"question": "b?", "image_id": "a"})
    for example in load(table, images=tmp_path / "elsewhere"):
        assert example.image is not None and example.image.read() == content
    packed = make.archive(tmp_path / "pictures.zip", {"x/a.png": content})
    for example in load(table, images=packed):
        assert example.image is not None and example.image.read() == content


@pytest.mark.parametrize("path", ["../secret.png", "/etc/passwd", "a/../../secret.png", "..", "C:/../../../x.png"])
def test_a_table_cannot_reach_outside_of_its_folder(tmp_path: Path, path: str) -> None:
    make.picture(tmp_path / "secret.png")
    table = lines(tmp_path / "data", {"question": "a?", "image": path})
    try:
        data = load(table)
    except DataError as error:
        assert "outside" in str(error)
    else:
        assert data[0].image is None


def test_an_absolute_path_is_read_where_the_user_named_its_folder(tmp_path: Path) -> None:
    make.picture(tmp_path / "pictures" / "a.png")
    table = lines(tmp_path / "data", {"question": "a?", "image": str(tmp_path / "pictures" / "a.png")})
    with pytest.raises(DataError, match="outside"):
        load(table)
    assert load(table, images=tmp_path / "pictures")[0].image is not None


def test_data_urls_are_decoded_and_web_addresses_refused(tmp_path: Path) -> None:
    content = make.picture(tmp_path / "a.png")
    url = "data:image/png;base64," + base64.b64encode(content).decode()
    lines(tmp_path, {"question": "a?", "image": url}, {"question": "b?", "image": url})
    first, second = load(tmp_path)
    assert first.image is not None and first.image.read() == content
    assert first.image_id == second.image_id != ""
    lines(tmp_path, {"question": "a?", "image": "https://example.org/a.png"})
    with pytest.raises(DataError, match="on the web"):
        load(tmp_path)
    lines(tmp_path, {"question": "a?", "image": "data:image/png;base64,!!"})
    with pytest.raises(DataError, match="base64"):
        load(tmp_path)


def test_pictures_stored_in_parquet_come_out_byte_for_byte(tmp_path: Path) -> None:
    one, two = make.picture(tmp_path / "a.jpg", "red"), make.picture(tmp_path / "b.png", "blue")
    rows = [
        {"question": "a?", "image": {"bytes": one, "path": "a.jpg"}},
        {"question": "b?", "image": {"bytes": two, "path": None}},
        {"question": "c?", "image": {"bytes": two, "path": None}},
    ]
    data = load(parquet(tmp_path / "t" / "mine.parquet", rows, row_group_size=2))
    assert [e.image.read() for e in data if e.image] == [one, two, two]
    assert data[0].image_id == "a.jpg"
    assert data[1].image_id == data[2].image_id
    assert data[1].image is not None and data[1].image.pil().getpixel((0, 0)) == (0, 0, 255)
    plain = load(parquet(tmp_path / "u" / "mine.parquet", [{"question": "a?", "image": one}]))
    assert plain[0].image is not None and plain[0].image.read() == one


def test_parquet_in_an_archive_is_read_in_memory(tmp_path: Path) -> None:
    one = make.picture(tmp_path / "a.jpg")
    file = parquet(tmp_path / "mine.parquet", [{"question": "a?", "image": one}])
    packed = make.archive(tmp_path / "packed.zip", {"mine.parquet": file.read_bytes()})
    (example,) = load(packed)
    assert example.image is not None and example.image.read() == one


BAD_ROWS = {
    '{"question": 5}': "is a number",
    '{"question": "a?", "answers": 5}': "not a list",
    '{"question": "a?", "answer": {"x": 1}}': "an object",
    '{"question": "a?", "answer": "c", "choices": ["a", "b"]}': "not among",
    '{"question": "a?", "scene": 5}': "the scene is a number",
    '{"question": "a?", "program": 5}': '"program" is a number',
    '{"question": "a?", "image": 5}': "not a path",
    '{"question": "a?", "id": NaN, "answers": [NaN]}': "number",
    '{"question": "a?"': "not JSON",
    "[" * 100_000: "nested too deeply",
    '{"question": "a?", "id": ' + "9" * 5_000 + "}": "cannot be read",
    "[1]": "a list",
}


@pytest.mark.parametrize("line", BAD_ROWS, ids=lambda line: line[:40])
def test_a_bad_line_is_told_by_its_number_and_spoils_no_other(tmp_path: Path, line: str) -> None:
    make.write(tmp_path / "mine.jsonl", f'{{"question": "good?"}}\n\n{line}\n{{"question": "also good?"}}\n')
    with pytest.raises(DataError, match="mine.jsonl, line 3: ") as caught:
        load(tmp_path)
    assert BAD_ROWS[line] in str(caught.value)
    data = load(tmp_path, skip_bad=True)
    assert [e.question for e in data] == ["good?", "also good?"]
    assert data.skipped == 1


def test_a_bad_csv_row_is_told_by_its_line(tmp_path: Path) -> None:
    make.write(tmp_path / "mine.csv", 'question,answer\n"two\nlines?",x\na?\nb?,y\n')
    with pytest.raises(DataError, match=r"mine.csv, line 4: the row has 1 cells, but there are 2 columns"):
        load(tmp_path)
    assert [e.question for e in load(tmp_path, skip_bad=True)] == ["two\nlines?", "b?"]


def test_a_column_named_twice_is_an_error(tmp_path: Path) -> None:
    make.write(tmp_path / "mine.csv", "question,question\na,b\n")
    with pytest.raises(DataError, match="appears twice"):
        load(tmp_path)


def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_bytes(b"\xef\xbb\xbfquestion,answer\r\na?,x\r\n")
    assert load(tmp_path)[0].question == "a?"
    (tmp_path / "mine.csv").write_bytes("question,answer\r\na?,x\r\n".encode("utf-16"))
    with pytest.raises(DataError, match="UTF-16"):
        load(tmp_path)


def test_bytes_that_are_no_utf8_spoil_their_row_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_bytes(b'{"question": "caf\xe9?"}\n{"question": "good?"}\n')
    with pytest.raises(DataError, match="line 1: .*not UTF-8"):
        load(tmp_path)
    assert [e.question for e in load(tmp_path, skip_bad=True)] == ["good?"]


def test_a_latin_1_file_is_told_by_its_line_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_bytes("question,answer\na?,x\ncafé?,y\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"mine.csv, line 3: .*not UTF-8 text \(0xE9\). Save the file as UTF-8"):
        load(tmp_path)


def test_half_a_character_is_not_blamed_on_the_encoding_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 1: .*not UTF-8 text\. Fix it"):
        load(lines(tmp_path, {"question": "\ud83d?"}))


@pytest.mark.parametrize("asks", ["question", "query"])
def test_an_empty_question_is_empty_not_missing(tmp_path: Path, asks: str) -> None:
    make.write(tmp_path / "mine.csv", f"id,{asks},answer\n1,,x\n2,b?,y\n3,,z\n")
    with pytest.raises(DataError, match=rf'line 2: "{asks}" is empty\.'):
        load(tmp_path)
    assert [bad.problem for bad in check(tmp_path).bad] == [f'"{asks}" is empty.'] * 2


def test_an_image_in_several_spellings_is_one_image(tmp_path: Path) -> None:
    make.picture(tmp_path / "img" / "a.jpg")
    spellings = ["img/a.jpg", "img\\\\a.jpg", "./img/a.jpg", "img//a.jpg", "img/../img/a.jpg"]
    rows = "".join(f'{{"question": "q{at}", "image": "{one}"}}\n' for at, one in enumerate(spellings))
    data = load(make.write(tmp_path / "mine.jsonl", rows))
    assert {example.image_id for example in data} == {"img/a.jpg"}
    assert len({example.image.digest for example in data if example.image}) == 1


def test_an_accent_taken_apart_as_on_a_mac_is_the_same_name(tmp_path: Path) -> None:
    apart = unicodedata.normalize("NFD", "img/caf\u00e9.jpg")
    make.picture(tmp_path / "img" / "caf\u00e9.jpg")
    make.picture(tmp_path / "img" / unicodedata.normalize("NFD", "th\u00e9.jpg"))
    rows = [{"question": "a?", "image": apart}, {"question": "b?", "image": "img/th\u00e9.jpg"}]
    assert all(example.image is not None for example in load(lines(tmp_path, *rows)))


def test_lines_that_end_as_on_old_macs_are_told(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_bytes(b"question,answer\ra?,x\r")
    with pytest.raises(DataError, match="mine.csv, line 1: its lines end in CR alone. Save it"):
        load(tmp_path)


def test_a_web_address_stays_as_it_is(tmp_path: Path) -> None:
    data = load(lines(tmp_path, {"question": "q", "image": "https://a.org/b.jpg"}), images="none")
    assert data[0].image_id == "https://a.org/b.jpg"


words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(lambda text: bool(text.strip()))


@given(
    st.lists(
        st.fixed_dictionaries(
            {"question": words},
            optional={
                "answers": st.lists(words, min_size=1, max_size=4),
                "question_type": words,
                "group": words,
                "image_id": words.filter(lambda text: "\0" not in text),
            },
        ),
        min_size=1,
        max_size=5,
    )
)
@settings(max_examples=60, deadline=None)
def test_what_is_written_as_json_lines_and_parquet_comes_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("table")
    by_lines = load(lines(folder, *rows))
    assert [e.question for e in by_lines] == [row["question"] for row in rows]
    assert [e.answers for e in by_lines] == [tuple(row.get("answers", ())) for row in rows]
    assert [e.group for e in by_lines] == [row.get("group", "") for row in rows]
    by_columns = load(parquet(folder / "p" / "mine.parquet", rows))
    assert by_columns.examples == by_lines.examples


# Hugging Face


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Any:
    datasets = pytest.importorskip("datasets", reason="the extra hf is not installed")
    folder = tmp_path_factory.mktemp("hub")
    pictures = [make.picture(folder / "a.jpg", "red"), make.picture(folder / "b.png", "blue")]
    rows = [
        {
            "question_id": n,
            "question": f"Question {n}?",
            "image": {"bytes": pictures[n % 2], "path": None},
            "image_id": n % 2,
            "answers": [{"answer": "cat", "answer_id": k} for k in range(3)],
            "answer_type": "other",
        }
        for n in range(4)
    ]
    features = datasets.Features(
        {
            "question_id": datasets.Value("int64"),
            "question": datasets.Value("string"),
            "image": datasets.Image(),
            "image_id": datasets.Value("int64"),
            "answers": [{"answer": datasets.Value("string"), "answer_id": datasets.Value("int64")}],
            "answer_type": datasets.Value("string"),
        }
    )
    data = datasets.Dataset.from_list(rows, features=features)
    whole = datasets.DatasetDict({"train": data.select([0]), "validation": data.select([1, 2, 3])})
    whole.save_to_disk(str(folder / "saved"))
    (folder / "parquet").mkdir()
    data.to_parquet(str(folder / "parquet" / "validation-00000-of-00001.parquet"))
    return folder, pictures


def test_a_hugging_face_data_set_saved_to_disk_loads(hub: Any) -> None:
    folder, pictures = hub
    data = load(f"hf:{folder / 'saved'}#val")
    assert [e.id for e in data] == ["1", "2", "3"]
    assert data.metric == "vqa"
    assert data[0].answers == ("cat",) * 3
    assert [e.image.read() for e in data if e.image] == [pictures[1], pictures[0], pictures[1]]
    assert data[0].image is not None and data[0].image.digest == data[2].image.digest  # type: ignore[union-attr]
    assert len(load(f"hf:{folder / 'saved'}", split="all")) == 4


def test_a_saved_data_set_is_recognised(hub: Any) -> None:
    folder, _ = hub
    data = load(folder / "saved")
    assert (data.notes["format"], len(data)) == ("hf", 3)


def test_a_local_folder_of_parquet_loads_through_the_library(hub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    folder, pictures = hub
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", folder / "cache")  # not the cache of the user
    data = load(f"hf:{folder / 'parquet'}")
    assert len(data) == 4
    assert data[0].image is not None and data[0].image.read() == pictures[0]
    direct = load(folder / "parquet")
    assert [(e.id, e.question, e.answers, e.image_id) for e in direct] == [
        (e.id, e.question, e.answers, e.image_id) for e in data
    ]
    assert direct[0].image is not None and direct[0].image.read() == pictures[0]


def test_a_hugging_face_set_that_is_not_there_is_one_sentence(hub: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be loaded"):
        load(f"hf:{tmp_path / 'nowhere'}")
    with pytest.raises(DataError, match="no split 'test'"):
        load(f"hf:{hub[0] / 'saved'}#test")
    with pytest.raises(UsageError, match="no option 'colour'"):
        load(f"hf:{hub[0] / 'saved'}", colour="red")


def test_questions_are_asked_without_images_where_none_are_wanted(tmp_path: Path) -> None:
    shown: list[object] = []

    def answer(question: str, image: object = None) -> str:
        shown.append(image)
        return "nothing"

    rows = [{"question": "What?", "answer": "nothing", "image_id": name} for name in "ab"]
    path = make.write(tmp_path / "data.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    examine(answer, load(path, images="none"), ["control"], out=tmp_path / "run")
    assert shown == [None] * 4
    with pytest.raises(PfungstError, match="Say where the images are"):
        examine(answer, load(path), ["control"], out=tmp_path / "other")


@pytest.mark.parametrize(("twice", "cells"), [("answer", ["x", "y"]), ("image", [b"x", b"y"])])
def test_two_columns_of_one_name_in_parquet_are_refused(tmp_path: Path, twice: str, cells: list[Any]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = [pa.array(["a?", "b?"]), pa.array(cells), pa.array(cells)]
    pq.write_table(pa.table(columns, names=["question", twice, twice]), tmp_path / "mine.parquet")
    with pytest.raises(DataError, match=f"two columns are called '{twice}'. Rename"):
        load(tmp_path / "mine.parquet")
    assert "two columns are called" in str(check(tmp_path / "mine.parquet"))
