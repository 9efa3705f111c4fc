"""Replies are kept as they were said, read by a matcher, and read again by another one without asking."""

import json
from pathlib import Path

import pytest

import pfungst
from pfungst.core import Answer, Dataset, Example, PfungstError, Run

REPLIES = {
    "one": "The answer is (B).",
    "two": "It could be red or blue.",
    "three": "B",
    "four": "<think>Red? No.</think>Blue.",
}


class Chatty:
    name, fingerprint, matcher = "chatty", "chatty-1", "lenient"
    asked = 0

    def answer(self, queries):
        type(self).asked += len(queries)
        return [Answer(REPLIES[query.question], stop="stop", output_tokens=3) for query in queries]


@pytest.fixture
def data() -> Dataset:
    choices = ("red", "blue")
    examples = [Example(word, word, answers=("blue",), target="blue", choices=choices) for word in REPLIES]
    return Dataset("colours", examples, "choice", "colours-1")


@pytest.fixture
def run(data: Dataset, tmp_path: Path):
    return pfungst.examine(Chatty(), data, ["control"], tmp_path / "run")


def test_letters_that_the_strict_matcher_leaves_unread_are_worth_another_one(
    data: Dataset, run, tmp_path: Path
) -> None:
    strict = pfungst.examine(Chatty(), data, ["control"], tmp_path / "strict", matcher="strict")
    assert any("by the matcher strict" in note and "Try --matcher lenient." in note for note in strict.notes)
    assert not any("Try --matcher" in note for note in run.notes)


def test_a_talking_player_is_read_by_the_matcher_it_names(run) -> None:
    rows = {row["example_id"]: row for row in run.rows() if row["variant"] == "clean"}
    assert {name: row["answer"] for name, row in rows.items() if not row["unread"]} == dict.fromkeys(
        ("one", "three", "four"), "blue"
    )
    assert rows["two"]["unread"] and rows["two"]["score"] == 0.0 and rows["two"]["reply"] == REPLIES["two"]
    assert run.findings[0].clean.value == 0.75
    assert any("2 of 8 replies could not be read by the matcher lenient" in note for note in run.notes)
    assert json.loads((run.path / "exam.json").read_text())["matcher"] == "lenient"
    assert [row["example_id"] for row in run.answers(unread=True)] == ["two", "two"]


def test_rescoring_reads_again_without_asking_and_never_writes_over_the_first_reading(run, data) -> None:
    before, asked = (run.path / "findings.json").read_bytes(), Chatty.asked
    again = pfungst.rescore(run.path, data, matcher="strict")
    assert again.findings[0].clean.value == 0.0 and Chatty.asked == asked
    assert (run.path / "findings.json").read_bytes() == before
    assert {"findings-strict.json", "report-strict.html", "trials-strict"} <= {p.name for p in run.path.iterdir()}
    assert json.loads((run.path / "exam.json").read_text())["matcher"] == "lenient"
    both = pfungst.rescore(run.path, data, metric="exact", matcher="strict")
    assert both.report.name == "report-exact-strict.html" and both.report.exists()
    pfungst.rescore(run.path, data)
    assert (run.path / "findings.json").read_bytes() == before


def test_an_unknown_matcher_gets_a_sentence(data: Dataset, tmp_path: Path) -> None:
    with pytest.raises(PfungstError, match="no matcher called 'lenent'. Did you mean lenient"):
        pfungst.examine(Chatty(), data, ["control"], tmp_path / "x", matcher="lenent")


def test_a_run_says_when_only_spelling_stands_between_answers_and_truth(tmp_path: Path) -> None:
    class Shouting:
        name, fingerprint = "shouting", "1"

        def answer(self, queries):
            return [Answer("Red.") for _ in queries]

    examples = [Example(str(n), f"Which colour {n}?", answers=("red",) * 10, target="red") for n in range(10)]
    run = pfungst.examine(Shouting(), Dataset("d", examples, "vqa", "d"), ["control"], tmp_path / "run")
    assert run.findings[0].clean.value == 0.0
    assert any("100.0% would be if case, punctuation and articles did not count" in note for note in run.notes)


def test_a_refusal_that_is_the_right_answer_word_for_word_is_read(tmp_path: Path) -> None:
    class Careful:
        name, fingerprint, matcher = "careful", "1", "lenient"

        def answer(self, queries):
            return [Answer("unanswerable") for _ in queries]

    people = [("unanswerable",) * 10, ("unanswerable",) * 2 + ("red",) * 8, ("red",) * 10]
    examples = [Example(str(n), f"What {n}?", answers=said, answer_type="other") for n, said in enumerate(people)]
    run = pfungst.examine(Careful(), Dataset("d", examples, "vqa", "d"), ["control"], tmp_path / "run")
    assert run.findings[0].clean.value == pytest.approx((1 + 0.6 + 0) / 3)
    assert any("2 of 6 replies could not be read" in note for note in run.notes)


def test_a_run_is_at_hand_in_python(run) -> None:
    assert repr(run) == f"Run({str(run.path)!r}: control)"
    assert "<td>control</td>" in run._repr_html_() and "<script" not in run._repr_html_()
    assert {row["example_id"] for row in run.wrong("control")} == {"two"} and len(run.answers()) == 8
    assert len(run.to_pandas()) == 8
    assert {"compare", "examine", "import_logs", "load", "rescore", "Run"} <= set(dir(pfungst))


class Clumsy:
    """Fails on some questions, alone or in a batch."""

    name, fingerprint, batch_size = "clumsy", "clumsy-1", 4

    def __init__(self, bad: set[str]) -> None:
        self.bad, self.asked = bad, list[str]()

    def answer(self, queries):
        if self.bad & {query.question for query in queries}:
            raise ValueError("cannot look at this")
        self.asked += [query.question for query in queries]
        return [Answer("yes") for _ in queries]


def _yes_data(count: int = 40) -> Dataset:
    examples = [Example(str(n), f"q{n}", answers=("yes",), target="yes", image_id=str(n)) for n in range(count)]
    return Dataset("yes", examples, "exact", f"yes {count}")


def test_a_few_failures_are_left_out_counted_and_shown_and_tried_again_later(tmp_path: Path) -> None:
    data = _yes_data()
    run = pfungst.examine(Clumsy({"q7", "q30"}), data, ["control"], tmp_path / "run")
    assert run.findings[0].clean.value == 1.0 and run.findings[0].clean.n == 38
    (problem,) = run.problems
    assert "4 queries got no answer, so 2 trials are left out" in problem and "'q7'" in problem
    assert "ValueError: cannot look at this. The answers before it are kept" in problem and not run.notes
    assert Run(str(run.path)).findings == run.findings, "a text is a path too"
    found = json.loads((tmp_path / "run" / "findings.json").read_text())
    assert found["left out"] == 2 and len(found["failed"]) == 4
    allowed = pfungst.examine(Clumsy({"q7", "q30"}), data, ["control"], tmp_path / "run", max_errors=4)
    assert allowed.notes == (problem,) and not allowed.problems
    for label in ("", "", "exact"):  # in place, again, and beside it
        again = pfungst.rescore(tmp_path / "run", data, metric=label or None)
        assert again.findings[0].clean.n == 38 and again.notes == (problem,)
    healed = Clumsy(set())
    whole = pfungst.examine(healed, data, ["control"], tmp_path / "run")
    assert sorted(healed.asked) == ["q30", "q30", "q7", "q7"] and whole.findings[0].clean.n == 40 and not whole.notes


def test_more_failures_than_allowed_end_the_run_and_keep_the_answers(tmp_path: Path) -> None:
    bad = {f"q{n}" for n in range(0, 40, 2)}
    with pytest.raises(PfungstError, match="failed on 4 queries, more than the 3 allowed.*--max-errors"):
        pfungst.examine(Clumsy(bad), _yes_data(), ["control"], tmp_path / "few", max_errors=3)
    with pytest.raises(PfungstError, match="cannot look at this"):
        pfungst.examine(Clumsy({"q3"}), _yes_data(), ["control"], tmp_path / "none", max_errors=0)
    with pytest.raises(PfungstError, match="considered down|answered no trial"):
        pfungst.examine(Clumsy({f"q{n}" for n in range(40)}), _yes_data(), ["control"], tmp_path / "dead")


def test_replies_that_a_second_reading_cannot_read_are_shown_by_its_label(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from pfungst.cli.app import app

    file = tmp_path / "a.jsonl"
    row = {"choices": ["red", "blue"], "answer": "B", "response": "The answer is (B)."}
    file.write_text("".join(json.dumps({"id": n, **row}) + "\n" for n in range(4)))
    run = pfungst.import_logs(file, tmp_path / "run")
    second = pfungst.rescore(run.path, matcher="strict")
    assert any("`pfungst show RUN --unread --label strict` lists them" in note for note in second.notes)
    shown = {
        label: CliRunner().invoke(app, ["show", str(run.path), "--unread", *label.split()]).output
        for label in ("", "--label strict")
    }
    assert "No answer fits." in shown[""] and shown["--label strict"].count("The answer is (B).") == 4
    with pytest.raises(PfungstError, match="has no reading 'nothing'"):
        next(Run.open(run.path, "nothing").rows())
