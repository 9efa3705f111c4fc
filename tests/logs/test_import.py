"""Answers that were already given become a run folder: numbers by hand, nobody asked."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from pfungst import api
from pfungst.core import DataError, Dataset, Example, PfungstError, Run, UsageError
from pfungst.core.stats import compare_paired
from pfungst.core.types import Finding
from pfungst.importing import import_logs
from pfungst.logs import read_log
from pfungst.logs.grouping import group
from pfungst.report.compare import compare


def log(path: Path, replies: dict[Any, str | None], truth: str | None = "yes", **more: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {"id": key, "question": f"Is it {key}?", "image_id": f"i{key}", "response": reply, **more}
        | ({} if truth is None else {"answer": truth})
        for key, reply in replies.items()
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def number(run: api.Run, name: str, condition: str = "") -> Finding:
    return next(row for row in run.findings[0].rows if (row.name, row.condition) == (name, condition))


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    clean = log(tmp_path / "m-normal.jsonl", {1: "Yes, it is.", 2: "yes", 3: "no", 4: "yes", 5: "yes"})
    noisy = log(tmp_path / "m-noisy.jsonl", {1: "Yes.", 2: "No", 3: "yes", 4: None, 5: "no"})
    return [noisy, clean]


def test_two_files_are_paired_question_by_question(two: list[Path], tmp_path: Path) -> None:
    run = import_logs(two, tmp_path / "run", name="m")
    assert number(run, "accuracy", "normal").value == pytest.approx(4 / 5)
    assert number(run, "accuracy", "noisy").value == pytest.approx(2 / 4)
    drop = number(run, "drop", "noisy")
    assert drop.value == pytest.approx((3 - 2) / 4) and drop.n == 4, "the missing reply is left out of the pair"
    assert number(run, "answers changed", "noisy").value == pytest.approx(3 / 4)
    assert number(run, "all of group").value == pytest.approx(1 / 4)
    assert number(run, "none of group").value == 0
    assert number(run, "agreement").value == pytest.approx(1 / 4)
    assert any("1 of 10 replies are missing" in note for note in run.notes)
    assert (tmp_path / "run" / "report.html").exists()


def test_the_run_is_an_ordinary_one_and_moves(two: list[Path], tmp_path: Path) -> None:
    import_logs(two, tmp_path / "run", name="m")
    before = json.loads((tmp_path / "run" / "findings.json").read_text())
    moved = (tmp_path / "run").rename(tmp_path / "moved")
    for file in two:
        file.unlink()
    again = api.rescore(moved)
    assert json.loads((moved / "findings.json").read_text()) == before and not again.problems
    strict = api.rescore(moved, matcher="first-word")
    assert strict.label and number(strict, "accuracy", "normal").value == pytest.approx(4 / 5)
    rows = list(Run.open(moved).rows([("example_id", "=", "1")]))
    assert [(row["variant"], row["reply"]) for row in rows] == [
        ("normal", "Yes, it is."),
        ("noisy", "Yes."),
    ]
    same = compare(moved, shutil.copytree(moved, tmp_path / "copy"))
    assert {row.variant for row in same} == {"normal", "noisy"} and all(row.difference.value == 0 for row in same)


def test_two_models_are_compared_on_the_same_questions(tmp_path: Path) -> None:
    for name, reply in (("a", "yes"), ("b", "no")):
        import_logs([log(tmp_path / name / "x.jsonl", {1: reply, 2: "yes"})], tmp_path / f"run-{name}", name=name)
    (row,) = compare(tmp_path / "run-a", tmp_path / "run-b")
    assert row.difference.value == pytest.approx(0.5) and row.flips.right_to_wrong == 1


def test_a_circular_evaluation_counts_a_group_only_if_all_its_rotations_are_right(tmp_path: Path) -> None:
    file = tmp_path / "m_Set.tsv"
    rows = ["index\tquestion\tA\tB\tC\tanswer\tprediction"]
    rows += ["1\tQ?\tred\tblue\tgray\tA\tA", "1000001\tQ?\tblue\tgray\tred\tC\tC", "2000001\tQ?\tgray\tred\tblue\tB\tA"]
    rows += ["2\tP?\tyes\tno\t\tA\tA", "1000002\tP?\tno\tyes\t\tB\tB. yes"]
    file.write_text("\n".join(rows) + "\n")
    run = import_logs(file, tmp_path / "run")
    together = number(run, "all of group")
    assert (together.value, together.n) == (pytest.approx(0.5), 2), "a question has as many rotations as options"
    assert number(run, "accuracy", "rotation 0").value == 1 and number(run, "accuracy", "rotation 2").n == 1
    config = json.loads((tmp_path / "run" / "exam.json").read_text())
    assert config["logs"]["by"] == "circular" and config["data"]["metric"] == "choice"


def test_conditions_may_be_a_column_or_named_on_the_command_line(tmp_path: Path) -> None:
    cold, warm = log(tmp_path / "a.jsonl", {1: "yes"}, t="0"), log(tmp_path / "b.jsonl", {1: "no"}, t="1")
    both = tmp_path / "both.jsonl"
    both.write_text(cold.read_text() + warm.read_text())
    by_row = f"{both}?id=id+t"
    assert group([by_row], by="t").conditions == ("0", "1")
    assert group([f"hot={warm}", f"clean={cold}"]).conditions == ("clean", "hot")
    assert group([warm, cold], clean="b").conditions == ("b", "a")
    with pytest.raises(UsageError, match="no condition 'x'. There are: b, a"):
        group([warm, cold], clean="x")


def test_a_column_tells_rows_of_one_id_apart(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    rows = [
        {"id": 1, "question": "Q", "response": said, "answer": "yes", "t": t} for t, said in ((0, "yes"), (1, "no"))
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = import_logs(file, tmp_path / "run", by="t", name="m")
    assert number(run, "accuracy", "0").value == 1 and number(run, "accuracy", "1").value == 0


@pytest.mark.parametrize(
    ("names", "model"),
    [
        (["m-clean", "m-noisy"], "m"),
        (["llava-1.5-clean", "llava-1.5-crop"], "llava-1.5"),
        (["answers1", "answers2"], "answers"),
        (["clean", "crop"], "gpt"),
        (["a"], "gpt"),
        (["qwen"], "qwen"),
    ],
)
def test_the_model_is_called_after_the_words_that_its_files_share(tmp_path: Path, names: list[str], model: str) -> None:
    files = [log(tmp_path / "gpt" / f"{name}.jsonl", {1: "yes"}) for name in names]
    import_logs(files, tmp_path / "run")
    assert json.loads((tmp_path / "run" / "exam.json").read_text())["player"]["name"] == model


def test_an_image_that_logs_spell_in_several_ways_is_one_image(tmp_path: Path) -> None:
    files = [log(tmp_path / "a.jsonl", {1: "yes"}), log(tmp_path / "b.jsonl", {2: "yes"})]
    rows = [json.loads(file.read_text()) for file in files]
    spelt = [row | {"image_id": name} for row, name in zip(rows, ["./img/a.jpg", "img\\a.jpg"], strict=True)]
    file = tmp_path / "model.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in spelt))
    import_logs(file, tmp_path / "run")
    stored = (tmp_path / "run" / "questions.jsonl").read_text().splitlines()
    assert {json.loads(line)["image_id"] for line in stored} == {"img/a.jpg"}


def test_names_of_files_lose_what_they_share(tmp_path: Path) -> None:
    names = ["gpt-4.1_bench_rot0", "gpt-4.1_bench_rot90", "gpt-4.1_bench_rot180"]
    files = [log(tmp_path / f"{name}.jsonl", {1: "yes"}) for name in names]
    assert group(files).conditions == ("rot0", "rot90", "rot180")


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    files = [log(tmp_path / name / "answers.jsonl", {1: "yes"}) for name in ("clean", "noisy")]
    assert group(files).conditions == ("clean", "noisy")


def test_the_order_of_a_log_does_not_matter(tmp_path: Path) -> None:
    for name, replies in (("a", {1: "yes", 10: "yes", 2: "no"}), ("b", {10: "no", 2: "no", 1: "yes"})):
        import_logs(log(tmp_path / name / "x.jsonl", replies), tmp_path / f"run-{name}", name=name)
    (row,) = compare(tmp_path / "run-a", tmp_path / "run-b")
    assert row.difference.n == 3 and row.difference.value == pytest.approx(1 / 3)


def test_another_run_is_never_written_over(tmp_path: Path) -> None:
    import_logs(log(tmp_path / "a.jsonl", {1: "yes"}), tmp_path / "run", name="m")
    before = (tmp_path / "run" / "questions.jsonl").read_bytes()
    with pytest.raises(PfungstError, match="holds another run"):
        import_logs(log(tmp_path / "b.jsonl", {2: "yes"}), tmp_path / "run", name="m")
    with pytest.raises(PfungstError, match="another player"):
        import_logs(log(tmp_path / "c.jsonl", {1: "no"}), tmp_path / "run", name="m")
    assert (tmp_path / "run" / "questions.jsonl").read_bytes() == before


def test_a_repetition_is_the_control(two: list[Path], tmp_path: Path) -> None:
    run = import_logs(two, tmp_path / "run", again=["noisy"], name="m")
    assert "The repetition alone changes 75.0%" in run.findings[0].verdict
    with pytest.raises(UsageError, match="no condition 'other' to repeat 'normal'"):
        import_logs(two, tmp_path / "run2", again=["other"], name="m")


def test_the_truth_may_come_from_a_data_set(tmp_path: Path) -> None:
    data = Dataset("d", [Example(str(n), f"Is it {n}?", answers=("no",), target="no") for n in (1, 2)], metric="exact")
    file = log(tmp_path / "a.jsonl", {1: "no", 2: "yes", 9: "no"}, truth=None)
    run = import_logs(file, tmp_path / "run", data=data, name="m")
    assert number(run, "accuracy", "clean").value == pytest.approx(0.5)
    assert any("1 answers belong to no question of d" in note for note in run.notes)
    blind = import_logs(file, tmp_path / "blind", name="m")
    assert math.isnan(number(blind, "accuracy", "clean").value) and any("--data" in note for note in blind.notes)


def test_right_answers_that_differ_between_conditions_are_judged_apart_and_not_called_changes(tmp_path: Path) -> None:
    one = log(tmp_path / "rot0.jsonl", {1: "left", 2: "yes"}, truth="left")
    two = log(tmp_path / "rot90.jsonl", {1: "up", 2: "yes"}, truth="up")
    run = import_logs([one, two], tmp_path / "run", name="m")
    assert number(run, "accuracy", "rot0").value == number(run, "accuracy", "rot90").value == 0.5
    assert number(run, "all of group").value == 0.5 and number(run, "answers changed", "rot90").n == 0
    assert "differs between conditions for 2 of 2" in run.findings[0].tables[0].note


def test_logs_of_two_models_are_refused(tmp_path: Path) -> None:
    files = [log(tmp_path / f"{name}.jsonl", {1: "yes"}, model=name) for name in ("a", "b")]
    with pytest.raises(UsageError, match=r"2 models \(a, b\)"):
        import_logs(files, tmp_path / "run")


def test_files_of_two_data_sets_are_no_conditions_of_each_other(tmp_path: Path) -> None:
    def rows(name: str, asked: list[tuple[str, str]]) -> Path:
        file = tmp_path / f"{name}.jsonl"
        lines = [{"id": i, "question": q, "answer": a, "prediction": "yes"} for i, (q, a) in enumerate(asked)]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return file

    colours = rows("colours", [(f"What colour is thing {i}?", "red") for i in range(5)])
    counts = rows("counts", [(f"How many of kind {i}?", str(i)) for i in range(5)])
    with pytest.raises(DataError, match=r"5 of 5 questions are not the same under 'colours' and 'counts': id 0 asks"):
        import_logs([colours, counts], tmp_path / "run")
    others = rows("others", [(f"Tell me the hue of thing {i}.", "Red") for i in range(5)])
    assert import_logs([colours, others], tmp_path / "wordings").findings
    changed = rows("changed", [(f"What colour is thing {i}?", "blue") for i in range(5)])
    assert import_logs([colours, changed], tmp_path / "images").findings
    one = rows("one", [("How many?", "3"), *((f"What colour is thing {i}?", "red") for i in range(1, 5))])
    run = import_logs([colours, one], tmp_path / "one-of-five")
    assert any("1 of 5 questions are not the same" in note for note in run.notes)


@pytest.mark.parametrize(
    ("answers", "metric", "accuracy"),
    [
        ([["J. Smith", "Smith"], ["1999"]], "any", 1.0),
        ([["a", "b", "c", "d", "Smith"], ["1999"]], "any", 1.0),
        ([["Smith"] * 2 + ["b"] * 8, ["1999"] * 10], "vqa", 0.8),
        ([["Smith"], ["1999"]], "exact", 1.0),
    ],
)
def test_answers_that_will_do_are_told_from_answers_of_ten_people(
    tmp_path: Path, answers: list[list[str]], metric: str, accuracy: float
) -> None:
    rows = [
        {"id": n, "question": f"{n}?", "answers": right, "response": said}
        for n, (right, said) in enumerate(zip(answers, ["Smith", "1999"], strict=True))
    ]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = import_logs([tmp_path / "m.jsonl"], tmp_path / "run")
    assert json.loads((run.path / "exam.json").read_text())["data"]["metric"] == metric
    assert run.findings[0].clean.value == pytest.approx(accuracy)


def samples(path: Path, right: list[int], **more: Any) -> Path:
    """A file in which every question was asked ten times, and as many of its answers are right as `right` says."""
    rows = [
        {"id": key, "seed": 7 * n, "question": f"Is it {key}?", "response": "yes" if n < count else "no",
         "answer": "yes", **more}
        for key, count in enumerate(right)
        for n in range(10)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_repetitions_are_no_further_questions(tmp_path: Path) -> None:
    lost, won, kept = [10] * 12, [0] * 7, [10, 0] * 40
    clean = samples(tmp_path / "m-clean.jsonl", [*lost, *won, *kept])
    noisy = samples(tmp_path / "m-noisy.jsonl", [*(0 for _ in lost), *(10 for _ in won), *kept])
    with pytest.raises(DataError, match=r"second, different answer.*\?take=COLUMN"):
        import_logs([samples(tmp_path / "m.jsonl", [5])], tmp_path / "refused")
    run = import_logs([f"{clean}?take=seed", f"{noisy}?take=seed"], tmp_path / "run")
    drop = number(run, "drop", "noisy")
    assert (drop.value, drop.n, drop.clusters) == (pytest.approx(50 / 990), 99, 99)
    by_sample = compare_paired([1.0] * 120 + [0.0] * 870, [0.0] * 120 + [1.0] * 70 + [0.0] * 800, range(990))
    assert by_sample.value == pytest.approx(drop.value)
    assert by_sample.p < 0.001 and drop.p is not None and drop.p > 0.05 and drop.low < 0 < drop.high
    assert number(run, "answers changed", "clean").value == 0, "how much the repetitions of the clean ones differ"
    assert len(run.answers("conditions")) == 20 * 99


def test_repetitions_are_counted_question_by_question_and_the_missing_among_them(tmp_path: Path) -> None:
    file = samples(tmp_path / "m.jsonl", [3, 10])
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    rows[0]["response"] = None  # the first of all
    del rows[15:]
    file.write_text("".join(json.dumps(row) + "\n" for row in reversed(rows)))
    run = import_logs(f"{file}?take=seed", tmp_path / "run")
    accuracy = run.findings[0].clean
    assert accuracy is not None and (accuracy.value, accuracy.n) == (pytest.approx((2 / 9 + 5 / 5) / 2), 2)
    assert "6 of 20 replies are missing" in " ".join(run.notes)
    assert "The repetition alone changes" in run.findings[0].verdict
    with pytest.raises(DataError, match="there is no column 'sample'"):
        import_logs(f"{file}?take=sample", tmp_path / "other")


def test_repetitions_are_counted_under_each_condition(tmp_path: Path) -> None:
    rows = [
        {"id": key, "hot": hot, "seed": seed, "question": f"Is it {key}?", "answer": "yes",
         "response": "yes" if hot == 0 or seed else "no"}
        for key in range(12)
        for hot in (0, 1)
        for seed in (0, 1, 2)
    ]  # fmt: skip
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = import_logs(f"{tmp_path / 'm.jsonl'}?take=seed", tmp_path / "run", by="hot", clean="0")
    takes = ["0", "1", "0, epoch 2", "1, epoch 2", "0, epoch 3", "1, epoch 3"]
    assert sorted({row["variant"] for row in run.answers("conditions")}) == sorted(takes)
    assert number(run, "drop", "1").value == pytest.approx(1 / 3) and number(run, "drop", "1").n == 12
    assert "Right in every answer, under every condition: 0.0%" in run.findings[0].verdict


def test_a_column_of_repetitions_leaves_a_file_the_format_it_has(tmp_path: Path) -> None:
    """A file of VLMEvalKit stays one: its failed requests are missing, its rotations one question."""
    header = "index\tquestion\tA\tB\tanswer\tprediction\trun\n"
    options = (("cat", "dog", "A"), ("dog", "cat", "B"))
    rows = [
        f"{number + 1_000_000 * turn}\tWhat is {number}?\t{a}\t{b}\t{right}\t{right if run else 'A'}\t{run}\n"
        for number in range(12)
        for turn, (a, b, right) in enumerate(options)
        for run in (0, 1)
    ]
    rows[0] = rows[0].replace("\tA\t0\n", "\tFailed to obtain answer via API.\t0\n")
    (tmp_path / "m_MINE.tsv").write_text(header + "".join(rows))
    run = import_logs(f"{tmp_path / 'm_MINE.tsv'}?take=run", tmp_path / "run")
    assert "1 of 48 requests failed" in " ".join(run.notes)
    drop = number(run, "drop", "rotation 1")
    assert (drop.value, drop.n) == (0.5, 12)  # A is right in the first rotation, and in half of the second


@pytest.mark.parametrize("tool", ["lmms-eval", "lm-eval"])
def test_all_replies_of_a_line_are_read(tmp_path: Path, tool: str) -> None:
    """Of several samples a document the first alone was read, and nothing said so."""
    rows = [
        {"doc_id": key, "doc": {}, "target": "yes", "resps": [["yes", "no", "no", None]], "filtered_resps": ["yes"],
         "input": f"Is it {key}?", **({"filter": "none"} if tool == "lm-eval" else {})}
        for key in range(3)
    ]  # fmt: skip
    (tmp_path / "x_samples_mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    log = read_log(tmp_path / "x_samples_mine.jsonl")
    assert log.format == tool
    assert [(one.id, one.take, one.reply) for one in log.records[:4]] == [
        ("0", 0, "yes"), ("0", 1, "no"), ("0", 2, "no"), ("0", 3, None),
    ]  # fmt: skip
    run = import_logs(tmp_path / "x_samples_mine.jsonl", tmp_path / "run")
    assert run.findings[0].clean is not None and run.findings[0].clean.value == pytest.approx(1 / 3)
    assert "(n = 3 questions, answered up to 3 times)" in run.findings[0].verdict


@pytest.mark.parametrize("column", ["variant", "epoch", "circular"])
def test_a_column_may_be_called_like_a_rule(tmp_path: Path, column: str) -> None:
    rows = [
        {"id": key, column: name, "question": f"{key}?", "answer": "yes", "response": "yes" if name == "v1" else "no"}
        for key in range(12)
        for name in ("v1", "v2")
    ]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = import_logs(tmp_path / "m.jsonl", tmp_path / "run", by=column)
    assert number(run, "drop", "v2").value == 1.0
    assert json.loads((run.path / "exam.json").read_text())["logs"]["by"] == column


def test_an_accuracy_without_a_right_answer_is_only_unknown(tmp_path: Path) -> None:
    rows = [{"id": key, "question": f"{key}?", "response": "yes"} for key in range(12)]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = import_logs(tmp_path / "m.jsonl", tmp_path / "run")
    assert run.findings[0].verdict == "One condition, clean: accuracy unknown (n = 0)."
    assert any("no right answers, so nothing can be counted" in note for note in run.notes)


def test_the_report_says_what_was_left_out_and_what_repetitions_and_conditions_together_show(tmp_path: Path) -> None:
    rows = [
        {"id": key, "seed": seed, "question": f"{key}?", "response": "yes" if seed or key % 4 else "no"}
        for key in range(40)
        for seed in (0, 1)
    ]
    (tmp_path / "m-clean.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "m-dark.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows if row["seed"]))
    data = Dataset("truth", [Example(str(key), f"{key}?", answers=("yes",), target="yes") for key in range(30)])
    logs = [f"{tmp_path / name}?take=seed" for name in ("m-clean.jsonl", "m-dark.jsonl")]
    page = import_logs(logs, tmp_path / "run", data=data).report.read_text()
    assert "m-clean.jsonl: 20 answers belong to no question of truth." in page and str(tmp_path) not in page
    assert "All its answers to a question are right in 73.3%" in page  # 22 of 30
    assert "asked again it changes 26.7%" in page
    assert "ran without the control probe" not in page and "control did not run" not in page

    page = import_logs(logs[1], tmp_path / "one", data=data).report.read_text()
    assert "These are recorded answers, one per question, so sampling noise is unknown." in page
    assert "Red: the disturbance" not in page
