"""Each format gives the records that its file holds; files are recognised by what is in them."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest

from pfungst.core import DataError, MissingExtra, PfungstError
from pfungst.logs import LOGS, LogFormat, Record, read_log


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def said(records: tuple[Record, ...]) -> list[tuple[str, str | None]]:
    return [(record.id, record.reply) for record in records]


# --- which file is what -----------------------------------------------------------------------------------------------

VQA = [{"question_id": 1, "answer": "red"}, {"question_id": 2, "answer": "blue"}]


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.txt", "a", "a.jsonl.gz", "lines.json"])
def test_json_and_json_lines_are_read_whatever_the_suffix(tmp_path: Path, name: str) -> None:
    as_lines = "jsonl" in name or name in ("a.txt", "lines.json")
    text = "\n".join(map(json.dumps, VQA)) if as_lines else json.dumps(VQA)
    file = tmp_path / name
    file.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    log = read_log(file)
    assert (log.format, said(log.records)) == ("vqa-results", [("1", "red"), ("2", "blue")])


def test_answers_by_id_in_one_object_are_vqa_results(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps({"262148000": "red", "262148001": "2"}))
    assert said(read_log(file).records) == [("262148000", "red"), ("262148001", "2")]


def test_an_unknown_layout_names_its_columns_and_the_option(tmp_path: Path) -> None:
    file = lines(tmp_path / "questions.jsonl", [{"question_id": 1, "image": "a.jpg", "text": "Is it?"}])
    with pytest.raises(DataError, match=r"question_id, image, text.*questions.jsonl\?reply=COLUMN&id=COLUMN"):
        read_log(file)


def test_a_pickle_is_refused_and_never_opened(tmp_path: Path) -> None:
    import pickle

    file = tmp_path / "model_MMStar.pkl"
    file.write_bytes(pickle.dumps([{"index": 1, "prediction": "A"}]))
    with pytest.raises(DataError, match="nothing is unpickled"):
        read_log(file)
    renamed = file.rename(tmp_path / "model_MMStar.xlsx")
    with pytest.raises(DataError, match="nothing is unpickled"):
        read_log(renamed)


def test_every_format_is_a_log_format_with_a_name() -> None:
    for name in LOGS.names():
        kind = LOGS.get(name)
        assert issubclass(kind, LogFormat) and kind.name == name and kind.title and kind.__doc__


# --- tables -----------------------------------------------------------------------------------------------------------


def test_columns_of_any_name_are_mapped_by_options(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text('qid,q,said,truth,kind\n7,"What, then?",1,yes,a\n8,Who?,,no,b\n')
    log = read_log(f"{file}?id=qid&question=q&reply=said&answer=truth&category=kind")
    first, second = log.records
    assert (first.id, first.question, first.reply, first.target, first.question_type) == (
        "7", "What, then?", "1", "yes", "a",
    )  # fmt: skip
    assert second.reply == "" and log.failed == 0, "an empty cell is an empty reply"
    with pytest.raises(DataError, match="no column 'reponse'; the columns are qid, q, said"):
        read_log(f"{file}?reply=reponse")


def test_a_reply_that_is_null_is_missing_and_counted(tmp_path: Path) -> None:
    log = read_log(lines(tmp_path / "a.jsonl", [{"id": 1, "response": None}, {"id": 2, "response": ""}]))
    assert said(log.records) == [("1", None), ("2", "")]
    assert log.failed == 1 and "1 of 2 requests failed" in log.notes[0]


def test_ids_may_be_joined_or_be_row_numbers(tmp_path: Path) -> None:
    rows = [{"set": 1, "question_id": 0, "prediction": "a"}, {"set": 2, "question_id": 0, "prediction": "b"}]
    file = lines(tmp_path / "hallusion.jsonl", rows)
    with pytest.raises(DataError, match=r"line 2: question 0 has a second, different answer.*\?id=COLUMN\+COLUMN"):
        read_log(file)
    assert said(read_log(f"{file}?id=set+question_id").records) == [("1_0", "a"), ("2_0", "b")]
    assert said(read_log(f"{file}?id=row").records) == [("1", "a"), ("2", "b")]


def test_parquet_is_read_without_its_pictures(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1, 2], "response": ["x", None], "image": [b"png", b"png"]}), file)
    assert said(read_log(file).records) == [("1", "x"), ("2", None)]


def test_options_in_columns_make_letters_of_answers_and_an_empty_one_keeps_its_place(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text("id\tA\tB\tC\tanswer\tresponse\n1\t\tTwo\tOne\tA\tB\n2\tC\tB\tA\tA\tA\n")
    lost, letters = read_log(file).records
    assert (lost.choices, lost.target) == (("(empty option A)", "Two", "One"), "(empty option A)")
    assert letters.target == "C", "A is the first option, even where another one reads A"


# --- LLaVA ------------------------------------------------------------------------------------------------------------


def test_llava_answers_have_the_reply_in_text(tmp_path: Path) -> None:
    row = {"question_id": 5, "prompt": "Is it?\nOne word.", "text": "Yes", "answer_id": "x", "model_id": "llava"}
    log = read_log(lines(tmp_path / "a.jsonl", [row]))
    (record,) = log.records
    assert (log.format, log.about.model, record.reply, record.prompt) == ("llava", "llava", "Yes", "Is it?\nOne word.")


# --- lmms-eval and lm-eval --------------------------------------------------------------------------------------------


def test_lmms_eval_takes_the_last_line_of_a_document_and_reads_options_from_the_prompt(tmp_path: Path) -> None:
    prompt = "Which?\nA. red\nB. blue\nAnswer with the letter."
    rows = [
        {"doc_id": 0, "target": "B", "filtered_resps": "A", "input": prompt, "exact_match": 0.0},
        {
            "doc_id": 0, "target": "B", "filtered_resps": ["B"], "resps": [["<think>hm</think>B"]], "input": prompt,
            "exact_match": 1.0, "token_counts": [{"input_tokens": 9, "output_tokens": 3}],
        },
    ]  # fmt: skip
    results = {
        "model_name": "some/model",
        "results": {"vqa": {"exact_match,none": 1.0}},
        "configs": {"vqa": {"dataset_path": "lmms-lab/X", "test_split": "test"}},
    }
    (tmp_path / "20260101_000000_results.json").write_text(json.dumps(results))
    log = read_log(lines(tmp_path / "20260101_000000_samples_vqa.jsonl", rows))
    (record,) = log.records
    assert (record.reply, record.target, record.choices) == ("<think>hm</think>B", "blue", ("red", "blue"))
    assert record.row_number and (record.input_tokens, record.output_tokens) == (9, 3)
    assert (log.about.model, log.about.data) == ("some/model", "lmms-lab/X/test")
    assert log.about.results == {"exact_match,none": 1.0} and "the last answer counts" in log.notes[0]


def test_lmms_eval_prefers_the_id_inside_a_metric_and_reads_lists_as_literals(tmp_path: Path) -> None:
    row = {
        "doc_id": 0, "doc": {"question": "Is it?"}, "arguments": [["Is it?\nOne word.", {}]], "target": "['yes', 'no']",
        "resps": [["Yes"]], "filtered_resps": ["Yes"], "pope_accuracy": {"question_id": "77", "score": 1.0},
    }  # fmt: skip
    (record,) = read_log(lines(tmp_path / "a.jsonl", [row])).records
    assert (record.id, record.row_number, record.answers, record.target) == ("77", False, ("yes", "no"), None)
    assert (record.question, record.prompt) == ("Is it?", "Is it?\nOne word.")


def test_logs_of_before_0_3_are_read(tmp_path: Path) -> None:
    file = tmp_path / "old.json"
    log = {"args": {"model": "m"}, "model_configs": {}, "logs": [{"doc_id": 3, "resps": [["a"]], "target": "a"}]}
    file.write_text(json.dumps(log))
    found = read_log(file)
    assert (found.format, found.about.model, said(found.records)) == ("lmms-eval", "m", [("3", "a")])


def test_lm_eval_lines_of_other_filters_are_left_out(tmp_path: Path) -> None:
    row = {"doc_id": 0, "doc": {"id": "q"}, "target": "7", "resps": [["It is 7"]], "prompt_hash": "x"}
    rows = [{**row, "filter": "strict", "acc": 0.0}, {**row, "filter": "flexible", "acc": 1.0}]
    file = lines(tmp_path / "samples_x.jsonl", rows)
    (record,) = read_log(file).records
    assert (record.id, record.reply, record.metrics) == ("q", "It is 7", {"acc": 0.0})
    assert read_log(f"{file}?filter=flexible").records[0].metrics == {"acc": 1.0}


def test_lm_eval_likelihoods_choose_the_likeliest_continuation(tmp_path: Path) -> None:
    row = {
        "doc_id": 0, "doc": {}, "target": 1, "filter": "none", "resps": [[["-3.5", "False"]], [["-1.25", "True"]]],
        "arguments": {"gen_args_0": {"arg_0": "Q", "arg_1": " red"}, "gen_args_1": {"arg_0": "Q", "arg_1": " blue"}},
    }  # fmt: skip
    (record,) = read_log(lines(tmp_path / "a.jsonl", [row])).records
    assert (record.reply, record.choices, record.scores) == ("blue", ("red", "blue"), (-3.5, -1.25))


# --- VLMEvalKit -------------------------------------------------------------------------------------------------------


def workbook(path: Path, table: list[list[Any]]) -> Path:
    """The smallest xlsx there is."""

    def cell(value: Any) -> str:
        if value is None:
            return "<c/>"
        if isinstance(value, bool):
            return f'<c t="b"><v>{int(value)}</v></c>'
        if isinstance(value, int | float):
            return f"<c><v>{value}</v></c>"
        return f'<c t="inlineStr"><is><t xml:space="preserve">{value}</t></is></c>'

    rows = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in table)
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    links = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    members = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r"'
        f' Type="{links}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{links}"><sheets><sheet name="S" sheetId="1" r:id="r1"/>'
        "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1"'
        f' Type="{links}/worksheet" Target="worksheets/s.xml"/></Relationships>',
        "xl/worksheets/s.xml": f'<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>',
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{text}')
    return path


def test_cells_of_a_workbook_are_read_as_their_own_text(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine")
    head = ["index", "question", "A", "B", "answer", "prediction", "image_path", "category"]
    long = "x" * 30_000
    table = [
        head,
        [0, "Q?", 1, 2.5, "B", 2.5, "/home/me/LMUData/images/X/0.jpg", "c"],
        [1, "Q?", "yes", "no", "A", True, "X/1.jpg", "c"],
        [2, "Q?", "yes", "no", "A", "Failed to obtain answer via API.", None, "c"],
        [3, "Q?", "是", "否", "A", None, None, "c"],
        [4, "Q?", "yes", "no", "A", long, None, "c"],
    ]
    log = read_log(workbook(tmp_path / "m_X.xlsx", table))
    assert log.format == "vlmevalkit" and log.failed == 1 and "missing, not as wrong" in log.notes[0]
    number, truth, failed, empty, lengthy = log.records
    assert (number.id, number.reply, number.choices, number.target) == ("0", "2.5", ("1", "2.5"), "2.5")
    assert (number.image_id, truth.image_id) == ("0.jpg", "X/1.jpg"), "no folder of somebody's machine"
    assert truth.reply is not None and truth.reply.casefold() == "true"
    assert failed.reply is None and empty.reply == "" and empty.choices == ("是", "否") and lengthy.reply == long


def test_circular_rows_are_rotations_of_one_question_only_where_all_have_their_original(tmp_path: Path) -> None:
    def table(*indices: Any) -> Path:
        rows = "".join(f"{index}\tQ?\tA\n" for index in indices)
        file = tmp_path / "a.tsv"
        file.write_text("index\tquestion\tprediction\n" + rows)
        return file

    found = read_log(table(7, 1_000_007, 8, 1_000_008)).records
    assert [(one.group, one.condition) for one in found] == [
        ("7", "rotation 0"), ("7", "rotation 1"), ("8", "rotation 0"), ("8", "rotation 1"),
    ]  # fmt: skip
    assert all(not one.condition for one in read_log(table(7, 1_000_007, 2_000_009)).records)
    assert all(not one.condition for one in read_log(table("VD_1_0", "VD_1_1")).records)


def test_g_index_names_the_group(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text("index\tg_index\tprediction\n10\t10\tA\n11\t10\tB\n12\t12\tA\n13\t12\tA\n")
    assert [(one.id, one.group, one.condition) for one in read_log(file).records] == [
        ("10", "10", "rotation 0"), ("12", "12", "rotation 0"), ("11", "10", "rotation 1"), ("13", "12", "rotation 1"),
    ]  # fmt: skip


def test_without_the_extra_a_workbook_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "python_calamine", None)
    with pytest.raises(MissingExtra, match=r"pfungst\[xlsx\]"):
        read_log(workbook(tmp_path / "a.xlsx", [["index", "prediction"], [1, "A"]]))


# --- inspect ----------------------------------------------------------------------------------------------------------

HEADER = {"version": 2, "status": "success", "eval": {"model": "m/x", "task": "t", "dataset": {"name": "d"}}}


def inspect_sample(id_: Any, epoch: int, reply: str | None, **more: Any) -> dict[str, Any]:
    output = {} if reply is None else {
        "completion": reply, "time": 0.5, "usage": {"input_tokens": 5, "output_tokens": 1},
        "choices": [{"stop_reason": "stop", "message": {"role": "assistant", "content": [
            {"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": reply}]}}],
    }  # fmt: skip
    return {
        "id": id_,
        "epoch": epoch,
        "input": "Which?",
        "target": "B",
        "choices": ["red", "blue"],
        "output": output,
        **more,
    }


def eval_file(path: Path, samples: list[dict[str, Any]], zstd: bool = False) -> Path:
    members = {"header.json": HEADER, "summaries.json": []}
    members |= {f"samples/{one['id']}_epoch_{one['epoch']}.json": one for one in samples}  # type: ignore[dict-item]
    path.write_bytes(zstd_zip(members) if zstd else plain_zip(members))
    return path


def plain_zip(members: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in members.items():
            archive.writestr(name, json.dumps(value))
    return buffer.getvalue()


def zstd_zip(members: dict[str, Any]) -> bytes:
    """A zip with method 93, as inspect writes it, which zipfile itself cannot."""
    zstandard = pytest.importorskip("zstandard")
    body, directory = b"", b""
    for name, value in members.items():
        raw = json.dumps(value).encode()
        packed = zstandard.ZstdCompressor().compress(raw)
        fixed = struct.pack("<HHHHHIIIHH", 63, 0, 93, 0, 33, zlib.crc32(raw), len(packed), len(raw), len(name), 0)
        directory += b"PK\x01\x02" + struct.pack("<H", 63) + fixed
        directory += struct.pack("<HHHII", 0, 0, 0, 0, len(body)) + name.encode()
        body += b"PK\x03\x04" + fixed + name.encode() + packed
    count = len(members)
    return body + directory + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, count, count, len(directory), len(body), 0)


@pytest.mark.parametrize("form", ["eval", "zstd", "json"])
def test_inspect_logs_give_replies_by_epoch_with_what_is_known_of_them(tmp_path: Path, form: str) -> None:
    attached = {"input": [{"role": "system", "content": "s"}, {"role": "user", "content": [
        {"type": "image", "image": "attachment://x"}, {"type": "text", "text": "Which one?"}]}]}  # fmt: skip
    samples = [
        inspect_sample(1, 1, "ANSWER: B", scores={"choice": {"value": "C", "answer": "B"}}),
        inspect_sample(1, 2, "ANSWER: A", metadata={"example_id": "own", "image_id": "i"}, **attached),
        inspect_sample(2, 1, None, error={"message": "timeout"}),
    ]
    file = tmp_path / f"log.{'json' if form == 'json' else 'eval'}"
    if form == "json":
        file.write_text(json.dumps({**HEADER, "samples": samples}))
    else:
        eval_file(file, samples, zstd=form == "zstd")
    log = read_log(file)
    assert (log.format, log.about.model, log.about.data, log.failed) == ("inspect", "m/x", "d", 1)
    first, second, failed = log.records
    assert (first.id, first.take, first.reply, first.target, first.metrics) == (
        "1",
        0,
        "ANSWER: B",
        "blue",
        {"choice": "C"},
    )
    assert (first.thinking, first.stop, first.input_tokens, first.output_tokens, first.seconds) == (
        "hm",
        "stop",
        5,
        1,
        0.5,
    )
    assert (second.id, second.take, second.image_id, second.prompt) == ("own", 1, "i", "Which one?")
    assert failed.reply is None


def test_a_damaged_inspect_log_names_the_sample(tmp_path: Path) -> None:
    raw = bytearray(zstd_zip({"header.json": HEADER, "samples/1_epoch_1.json": inspect_sample(1, 1, "A" * 500)}))
    place = raw.index(b"samples/1_epoch_1.json") + 40
    raw[place : place + 8] = b"damaged!"
    file = tmp_path / "log.eval"
    file.write_bytes(raw)
    with pytest.raises(DataError, match="samples/1_epoch_1.json: this part cannot be read"):
        read_log(file)


# --- evalscope --------------------------------------------------------------------------------------------------------


def test_evalscope_predictions_get_their_right_answers_from_the_reviews(tmp_path: Path) -> None:
    output = {
        "model": "m",
        "choices": [{"message": {"content": "B"}, "stop_reason": "stop"}],
        "usage": {"output_tokens": 1},
    }
    asked = [{"role": "user", "content": "Which?\nA. red\nB. blue"}]
    file = lines(
        tmp_path / "predictions" / "m" / "x.jsonl",
        [{"index": 0, "model": "m", "model_output": output, "messages": asked}],
    )
    lonely = read_log(file)
    assert lonely.records[0].target is None and "no right answers" in lonely.notes[0]
    review = {
        "index": 0,
        "target": "B",
        "input": "Which?",
        "sample_score": {"score": {"value": {"acc": 1.0}, "prediction": "B"}},
    }
    reviews = lines(tmp_path / "reviews" / "m" / "x.jsonl", [review])
    (record,) = read_log(file).records
    assert (record.reply, record.target, record.metrics) == ("B", "blue", {"acc": 1.0})
    assert said(read_log(reviews).records) == [("0", "B")]


# --- bad files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "raw", "sentence"),
    [
        ("a.xlsx", b"PK\x03\x04broken", "not a readable zip"),
        ("a.zip", plain_zip({"a.txt": 1}), "neither an xlsx workbook nor an inspect log"),
        ("a.parquet", b"PAR1broken", "not readable Parquet"),
        ("a.csv", b"id,id,reply\n1,2,3", "column 'id' appears twice"),
        ("a.csv", b"id,reply\n1,2,3", "line 2: the row has 3 cells"),
        ("a.jsonl", b'{"question_id": 1, "answer": "x"}\n[1]', "line 2: expected an object"),
        ("a.jsonl", b'{"broken\n{"question_id": 1, "answer": "x"}', "line 1: this is not JSON"),
        ("a.json", b'{"samples": []}', "no known layout|no answers"),
        ("a.jsonl.gz", gzip.compress(b"0" * (70 << 20)), "unpacks to more than"),
    ],
)
def test_a_bad_file_is_a_sentence_with_its_place(tmp_path: Path, name: str, raw: bytes, sentence: str) -> None:
    file = tmp_path / name
    file.write_bytes(raw)
    with pytest.raises(PfungstError, match=sentence) as caught:
        read_log(file)
    assert str(file) in str(caught.value)


def test_a_cell_that_looks_like_a_program_is_text(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text('index\tanswer\tprediction\n1\t[__import__("os").getcwd()]\t["a"\n')
    (record,) = read_log(file).records
    assert record.answers == ('[__import__("os").getcwd()]',) and record.reply == '["a"'
