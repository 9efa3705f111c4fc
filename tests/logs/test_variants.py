"""What other tools write beside the common case: ids that begin anew, losses, hidden answers, unfinished samples."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from pfungst.core import DataError
from pfungst.importing import import_logs
from pfungst.logs import read_log
from tests.logs.test_formats import lines, said

# --- lmms-eval --------------------------------------------------------------------------------------------------------


def test_an_id_that_begins_anew_in_every_part_of_pope_does_not_merge_its_questions(tmp_path: Path) -> None:
    rows = [
        {
            "doc_id": doc, "input": f"Is there a {doc}?", "target": "yes", "filtered_resps": "Yes" if doc > 4 else "No",
            "pope_accuracy": {"question_id": str(doc % 5 + 1), "score": float(doc >= 5), "ground_truth": "yes"},
        }
        for doc in range(10)
    ]  # fmt: skip
    log = read_log(
        lines(tmp_path / "20260101_000000_samples_pope.jsonl", [*rows, {**rows[0], "filtered_resps": "Yes"}])
    )
    assert [record.id for record in log.records] == [str(doc) for doc in range(10)]
    assert all(record.row_number for record in log.records), "what is left is the number of the document"
    assert log.records[0].reply == "Yes", "of one document the last line counts, as before"


@pytest.mark.parametrize("said_so", [True, False], ids=["options in the document", "options not in the file"])
def test_of_losses_the_smallest_is_chosen_as_lmms_eval_does(tmp_path: Path, said_so: bool) -> None:
    losses = [["2.0", "False"], ["0.5", "True"], ["3.0", "False"]]
    row: dict[str, Any] = {
        "doc_id": 0,
        "input": "What is it? Answer :",
        "target": "1",
        "filtered_resps": losses,
        "acc": 1.0,
    }
    if said_so:
        row["doc"] = {"question": "What is it?", "choices": ["dog", "cat", "cow"]}
    (record,) = read_log(lines(tmp_path / "a.jsonl", [row])).records
    wanted = ("cat", "cat", (-2.0, -0.5, -3.0)) if said_so else ("B", "B", None)
    assert (record.reply, record.target, record.scores) == wanted


def test_losses_without_options_find_them_in_the_data_set(tmp_path: Path) -> None:
    losses = [[["2.0", "False"], ["0.5", "True"]], [["0.1", "True"], ["0.5", "False"]]]
    rows = [
        {"doc_id": doc, "input": f"What is {doc}? Answer :", "target": "cat", "filtered_resps": one}
        for doc, one in enumerate(losses)
    ]
    questions = [
        {"id": f"q{doc}", "question": f"What is {doc}?", "choices": ["dog", "cat"], "answer": "cat"} for doc in range(2)
    ]
    run = import_logs(
        lines(tmp_path / "20260101_000000_samples_ppl.jsonl", rows), tmp_path / "run",
        data=lines(tmp_path / "questions.jsonl", questions), data_options={"images": "none"},
    )  # fmt: skip
    clean = run.findings[0].clean
    assert clean is not None and (clean.value, clean.n) == (0.5, 2) and not run.notes


def test_questions_of_the_data_set_that_the_logs_leave_out_are_counted(tmp_path: Path) -> None:
    questions = [{"id": n, "question": f"Is it {n}?", "answer": "yes"} for n in range(5)]
    rows = [{"id": n, "response": "yes"} for n in range(2)]
    run = import_logs(
        lines(tmp_path / "a.jsonl", rows), tmp_path / "run", data=lines(tmp_path / "questions.jsonl", questions),
        data_options={"images": "none"},
    )  # fmt: skip
    assert run.notes == ("3 of 5 questions of questions are not in the logs.",)


@pytest.mark.parametrize(
    ("doc", "offered", "options"),
    [
        ({"endings": ["red", "blue"]}, (" red", " blue"), ("red", "blue")),
        ({"choices": ["red", "blue"]}, (" A", " B"), ("red", "blue")),
        ({"choices": ["red", "blue"]}, ("(A)", "(B)"), ("red", "blue")),
        ({}, (" A", " B"), ("A", "B")),
    ],
)
def test_the_target_of_a_likelihood_is_one_of_the_options_that_were_offered(
    tmp_path: Path, doc: dict[str, Any], offered: tuple[str, ...], options: tuple[str, ...]
) -> None:
    row = {
        "doc_id": 0, "doc": doc, "target": "1", "filter": "none", "resps": [[["-3.5", "False"]], [["-1.25", "True"]]],
        "arguments": {f"gen_args_{n}": {"arg_0": "Q", "arg_1": one} for n, one in enumerate(offered)}, "acc": 1.0,
    }  # fmt: skip
    (record,) = read_log(lines(tmp_path / "a.jsonl", [row])).records
    assert (record.choices, record.reply, record.target) == (options, options[1], options[1])


def test_targets_of_a_test_split_are_not_the_answer_none(tmp_path: Path) -> None:
    rows = [
        {"doc_id": doc, "target": "None", "filtered_resps": "red", "submission": {"question_id": 100 + doc}}
        for doc in range(2)
    ]
    log = read_log(lines(tmp_path / "a.jsonl", rows))
    assert [(record.id, record.target, record.answers) for record in log.records] == [
        ("100", None, ()),
        ("101", None, ()),
    ]
    mixed = read_log(lines(tmp_path / "b.jsonl", [rows[0], {**rows[1], "target": "red"}]))
    assert [record.target for record in mixed.records] == ["None", "red"], "among others it is an answer"


def test_mmbench_by_lmms_eval_is_a_circular_evaluation_too(tmp_path: Path) -> None:
    rows = [
        {
            "doc_id": doc, "input": "Which?\nA. red\nB. blue", "target": "A", "filtered_resps": "A",
            "submission": {"index": index, "prediction": "A"},
        }
        for doc, index in enumerate((7, 1_000_007))
    ]  # fmt: skip
    found = read_log(lines(tmp_path / "a.jsonl", rows)).records
    assert [(one.group, one.condition) for one in found] == [("7", "rotation 0"), ("7", "rotation 1")]


# --- inspect ----------------------------------------------------------------------------------------------------------


def inspect_log(path: Path, *samples: dict[str, Any]) -> Path:
    whole = [{"id": number, "epoch": 1, "input": "Which?", **one} for number, one in enumerate(samples, 1)]
    path.write_text(json.dumps({"version": 2, "eval": {"model": "m", "task": "t"}, "samples": whole}))
    return path


def output(reply: str) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", "content": reply}}], "completion": reply}


def test_a_sample_that_was_stopped_before_a_reply_is_missing_and_an_empty_reply_is_not(tmp_path: Path) -> None:
    stopped = {"target": "a", "output": {"model": "", "choices": [], "completion": ""}, "limit": {"type": "time"}}
    log = read_log(inspect_log(tmp_path / "a.json", stopped, {"target": "a", "output": output("")}))
    assert said(log.records) == [("1", None), ("2", "")] and log.failed == 1


def test_of_several_right_options_one_is_not_enough(tmp_path: Path) -> None:
    several = {"choices": ["red", "blue", "green"], "target": ["A", "C"], "output": output("ANSWER: A")}
    log = read_log(inspect_log(tmp_path / "a.json", several, {**several, "target": ["B"]}))
    assert [(record.answers, record.target) for record in log.records] == [((), None), (("blue",), "blue")]
    assert "1 questions have several right options" in log.notes[0]


def test_metadata_of_any_kind_does_not_end_an_import(tmp_path: Path) -> None:
    odd = {"category": ["color", "count"], "image_id": {"x": 1}, "variant": None}
    (record,) = read_log(
        inspect_log(tmp_path / "a.json", {"target": "a", "metadata": odd, "output": output("a")})
    ).records
    assert (record.question_type, record.image_id, record.condition) == ("color, count", "", "")


def test_epochs_of_several_files_are_repetitions_under_their_conditions(tmp_path: Path) -> None:
    def epochs(name: str, *replies: str) -> Path:
        samples = [{"id": 1, "epoch": n, "target": "a", "output": output(said)} for n, said in enumerate(replies, 1)]
        return inspect_log(tmp_path / f"{name}.json", *samples, *({**one, "id": 2} for one in samples))

    run = import_logs([epochs("noisy", "a", "b"), epochs("clean", "a", "a")], tmp_path / "run")
    (found,) = run.findings
    rows = {(row.name, row.condition): row.value for row in found.rows}
    assert rows["accuracy", "clean"] == 1 and rows["accuracy", "noisy"] == 0.5
    assert rows["answers changed", "clean"] == 0 and rows["answers changed", "noisy"] == 0.5
    assert rows["drop", "noisy"] == 0.5 and "The repetition alone changes 0.0%" in found.verdict


def test_the_metadata_of_a_sample_in_pieces_is_read_with_it(tmp_path: Path) -> None:
    file = tmp_path / "a.eval"
    sample = {"id": 1, "epoch": 1, "input": "Which?", "target": "a", "output": output("a")}
    members = {
        "header.json": {"version": 2, "eval": {"model": "m"}, "status": "success"},
        "samples/1_epoch_1/sample.json": sample,
        "samples/1_epoch_1/metadata.json": {"image_id": "i1", "category": "color"},
        "samples/1_epoch_1/events/0.json": [],
        "samples/2_epoch_1.json": {**sample, "id": 2, "metadata": {"image_id": "i2"}},
    }
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, json.dumps(content))
    assert [(one.id, one.image_id, one.question_type) for one in read_log(file).records] == [
        ("1", "i1", "color"), ("2", "i2", ""),
    ]  # fmt: skip


def test_a_log_without_samples_says_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there are no answers in this file"):
        read_log(inspect_log(tmp_path / "a.json"))


# --- evalscope --------------------------------------------------------------------------------------------------------


def test_repeats_of_evalscope_are_repetitions_of_one_question(tmp_path: Path) -> None:
    rows = [
        {
            "index": index, "input": f"Is it {index // 2}?", "target": "yes",
            "sample_score": {"score": {"prediction": said, "value": {}}, "sample_id": index, "group_id": index // 2},
        }
        for index, said in enumerate(("yes", "no", "no", "no"))
    ]  # fmt: skip
    log = read_log(lines(tmp_path / "a.jsonl", [*rows, rows[1]]))
    assert [(one.id, one.take, one.reply) for one in log.records] == [
        ("0", 0, "yes"), ("0", 1, "no"), ("1", 0, "no"), ("1", 1, "no"),
    ]  # fmt: skip


# --- tables -----------------------------------------------------------------------------------------------------------


def test_an_id_at_two_questions_with_the_same_reply_is_refused(tmp_path: Path) -> None:
    rows = [{"id": 0, "question": question, "response": "yes"} for question in ("Is it red?", "Is it blue?")]
    with pytest.raises(DataError, match="line 2: the id 0 stands at a second, different question.*id=COLUMN"):
        read_log(lines(tmp_path / "a.jsonl", rows))


def test_a_question_that_stands_twice_without_an_id_is_refused_even_if_the_reply_is_the_same(tmp_path: Path) -> None:
    rows = [{"question": "Is there a dog?", "answer": right, "response": "yes"} for right in ("yes", "no")]
    file = lines(tmp_path / "a.jsonl", rows)
    with pytest.raises(DataError, match=r"line 2: the question 'Is there a dog\?' stands here a second time.*id=row"):
        import_logs(file, tmp_path / "run")
    clean = import_logs(f"{file}?id=row", tmp_path / "run").findings[0].clean
    assert clean is not None and (clean.value, clean.n) == (0.5, 2)


def test_a_quotation_mark_that_is_only_text_does_not_swallow_the_rows_behind_it(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text('id\tanswer\tresponse\n1\tx\t"open\n2\ty\tsaid "y"\n3\tz\t"z"\n4\tz\tz\n')
    assert said(read_log(file).records) == [("1", '"open'), ("2", 'said "y"'), ("3", '"z"'), ("4", "z")]
    # VLMEvalKit quotes every cell, and a reply may hold a table.
    file.write_text('"id"\t"answer"\t"response"\n"1"\t"x"\t"a\tb\nc\td\ne"\n"2"\t"y"\t"y"\n')
    assert said(read_log(file).records) == [("1", "a\tb\nc\td\ne"), ("2", "y")]


def test_rows_by_id_and_columns_as_pandas_writes_them_are_tables(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    for indent in (None, 2):
        file.write_text(json.dumps({"q1": {"answer": "x", "response": "x"}, "q2": {"response": "y"}}, indent=indent))
        assert said(read_log(file).records) == [("q1", "x"), ("q2", "y")]
        columns = {"qid": {"0": 7, "1": 8}, "answer": {"0": "x", "1": "y"}, "response": {"0": "x", "1": "z"}}
        file.write_text(json.dumps(columns, indent=indent))
        assert [(one.id, one.reply, one.target) for one in read_log(file).records] == [("7", "x", "x"), ("8", "z", "y")]


def test_rows_are_counted_alike_in_every_file_whatever_its_cells_hold(tmp_path: Path) -> None:
    short, long = tmp_path / "short.csv", tmp_path / "long.csv"
    short.write_text("response,answer\nyes,a\nno,b\n")
    long.write_text('response,answer\n"yes,\nindeed",a\n\nno,b\n')
    rows = [{"response": "yes"}, {"response": "no"}]
    for file in (short, long, lines(tmp_path / "a.jsonl", rows)):
        assert [record.id for record in read_log(f"{file}?id=row").records] == ["1", "2"]


def test_conditions_meet_by_their_ids_or_are_refused(tmp_path: Path) -> None:
    def table(name: str, ids: list[str]) -> str:
        file = tmp_path / f"{name}.csv"
        file.write_text("id,answer,response\n" + "".join(f"{one},red,{name}\n" for one in ids))
        return f"{name}={file}"

    files = [table("red", ["1", "2"]), table("blue", ["1.0", "2.0"])]
    drop = import_logs(files, tmp_path / "run", name="m").findings[0].drop
    assert drop is not None and (drop.value, drop.n) == (1, 2), "pandas writes 1.0 where another row has no id"
    with pytest.raises(
        DataError, match="No question was asked under both 'red' and 'green': the first ids are '1' and 'a'"
    ):
        import_logs([*files, table("green", ["a", "b"])], tmp_path / "other", name="m")


@pytest.mark.parametrize("right", [["red", "crimson"], "['red', 'crimson']", '["red", "crimson"]', "['red' 'crimson']"])
def test_a_list_in_the_cell_of_the_answer_holds_the_answers(tmp_path: Path, right: Any) -> None:
    row = {"id": 1, "answer": right, "response": "crimson"}
    (record,) = read_log(lines(tmp_path / "a.jsonl", [row])).records
    assert (record.answers, record.target) == (("red", "crimson"), None)
    (numbers,) = read_log(lines(tmp_path / "b.jsonl", [{**row, "answer": "[2, 5]"}])).records
    assert numbers.target == "[2, 5]"
    (option,) = read_log(lines(tmp_path / "c.jsonl", [{**row, "choices": ["red", "blue"], "answer": ["B"]}])).records
    assert option.target == "blue"


def test_answers_of_several_models_in_one_table_can_be_told_apart(tmp_path: Path) -> None:
    rows = [{"id": 1, "model": model, "answer": "a", "response": model} for model in ("a", "b")]
    file = lines(tmp_path / "both.jsonl", rows)
    with pytest.raises(DataError, match="second, different answer.*--by COLUMN"):
        read_log(file)
    found = import_logs(file, tmp_path / "run", by="model").findings[0].rows
    assert [(row.condition, row.value) for row in found if row.name == "accuracy"][:2] == [("a", 1), ("b", 0)]


def test_columns_may_be_spelt_with_capitals(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("ID,Question,Answer,Prediction,Category\n7,Which?,red,Red,c\n")
    log = read_log(file)
    assert [(one.id, one.question, one.target, one.reply, one.question_type) for one in log.records] == [
        ("7", "Which?", "red", "Red", "c")
    ]
    file.write_text("id,Answer,answer,Response\n7,blue,red,Red\n")
    assert read_log(file).records[0].target == "red", "the plain name comes first"


def test_a_number_names_a_choice_in_every_kind_of_table_and_minus_one_names_none(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(
        "id,choices,answer,response\n1,\"['red', 'blue']\",1,B\n2,\"['red', 'blue']\",-1,B\n3,\"['1', '2']\",1,B\n"
    )
    assert [record.target for record in read_log(file).records] == ["blue", None, "2"]
    rows = [{"id": n, "choices": ["red", "blue"], "answer": n, "response": "B"} for n in (1, -1)]
    assert [record.target for record in read_log(lines(tmp_path / "a.jsonl", rows)).records] == ["blue", None]
    with pytest.raises(DataError, match="the right answer is choice 2, but there are 2 choices, counted from 0"):
        read_log(lines(tmp_path / "b.jsonl", [{**rows[0], "answer": 2}]))


@pytest.mark.parametrize(
    "options",
    ["['red' 'dark blue']", "['red'\n 'dark blue']", '{"A": "red", "B": "dark blue"}', "A. red\nB. dark blue",
     "(A) red (B) dark blue", "red|dark blue", ["red", "dark blue"]],
)  # fmt: skip
def test_options_are_read_however_a_cell_holds_them(tmp_path: Path, options: Any) -> None:
    row = {"id": 1, "options": options, "answer": "B", "response": "B"}
    (record,) = read_log(lines(tmp_path / "a.jsonl", [row])).records
    assert (record.choices, record.target) == (("red", "dark blue"), "dark blue")


@pytest.mark.parametrize("column", ["gt", "ground_truth", "label", "gt_answer", "correct_answer"])
def test_an_answer_beside_the_right_one_is_the_reply(tmp_path: Path, column: str) -> None:
    row = {"question_id": 1, "question": "Which?", column: "red", "answer": "blue"}
    (record,) = read_log(lines(tmp_path / "a.jsonl", [row])).records
    assert (record.reply, record.target, record.question) == ("blue", "red", "Which?")
    (other,) = read_log(lines(tmp_path / "b.jsonl", [{**row, "response": "green"}])).records
    assert other.reply == "green"


def test_several_replies_in_one_row_are_never_taken_for_one(tmp_path: Path) -> None:
    for column in ("response", "responses"):
        with pytest.raises(DataError, match="there are 2 replies in one row"):
            read_log(lines(tmp_path / "a.jsonl", [{"id": 1, "answer": "red", column: ["red", "blue"]}]))


# --- batch APIs -------------------------------------------------------------------------------------------------------


def answered(body: dict[str, Any], status: int = 200) -> dict[str, Any]:
    return {"id": "batch_req_1", "response": {"status_code": status, "request_id": "r", "body": body}, "error": None}


def test_results_of_batch_apis_are_replies_by_the_id_that_the_user_gave(tmp_path: Path) -> None:
    chat = {
        "model": "gpt", "choices": [{"message": {"content": "red"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1},
    }  # fmt: skip
    refused = {"choices": [{"message": {"content": None, "refusal": "I cannot."}}]}
    thought = {"type": "reasoning", "summary": []}
    responses = {
        "output": [thought, {"type": "message", "content": [{"type": "output_text", "text": "blue"}]}],
        "usage": {"input_tokens": 8, "output_tokens": 2}, "status": "completed",
    }  # fmt: skip
    rows = [
        {"custom_id": "q1", **answered(chat)},
        {"custom_id": "q2", **answered(refused)},
        {"custom_id": "q3", **answered(responses)},
        {"custom_id": "q4", **answered({"error": {"message": "too long"}}, 400)},
        {"custom_id": "q5", "response": None, "error": {"code": "batch_expired"}},
    ]
    log = read_log(lines(tmp_path / "output.jsonl", rows))
    wanted = [("q1", "red"), ("q2", "I cannot."), ("q3", "blue"), ("q4", None), ("q5", None)]
    assert (log.format, log.about.model, said(log.records), log.failed) == ("batch", "gpt", wanted, 2)
    assert [(one.input_tokens, one.output_tokens) for one in log.records[:3]] == [(9, 1), (None, None), (8, 2)]

    message = {"model": "claude", "content": [{"type": "text", "text": "green"}], "usage": {"input_tokens": 3}}
    rows = [
        {"custom_id": "q1", "result": {"type": "succeeded", "message": message}},
        {"custom_id": "q2", "result": {"type": "expired"}},
    ]
    log = read_log(lines(tmp_path / "results.jsonl", rows))
    assert (log.about.model, said(log.records)) == ("claude", [("q1", "green"), ("q2", None)])
