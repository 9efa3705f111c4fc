"""From a number back to what was asked and said."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pfungst.cli.app import app
from pfungst.core import Answer, Dataset, Exam, Example, PfungstError
from pfungst.probes.control import Control
from pfungst.report.answers import Chosen, answers


class Wavering:
    """Right the first time; the second time wrong on counts."""

    name, fingerprint = "wavering", "1"

    def answer(self, queries):
        return [Answer("4" if query.take and query.question.startswith("How many") else "3") for query in queries]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    examples = [
        Example(str(n), f"{'How many' if n % 2 else 'Which number'} {n}?", answers=("3",), target="3",
                answer_type="number" if n % 2 else "other")
        for n in range(6)
    ]  # fmt: skip
    data = Dataset("d", examples, "exact", "x")
    Exam(Wavering(), data, [Control()], lambda e, a: float(a.text == e.target), tmp_path / "run").run()
    return tmp_path / "run"


def test_answers_are_chosen_by_probe_example_type_and_error(run: Path) -> None:
    everything = list(answers(run))
    assert [row["example_id"] for row in everything] == [str(n) for n in range(6) for _ in range(2)]
    assert [(r["variant"], r["answer"], r["score"]) for r in answers(run, Chosen(example_id="1"))] == [
        ("clean", "3", 1.0),
        ("again", "4", 0.0),
    ]
    assert {row["example_id"] for row in answers(run, Chosen(wrong=True))} == {"1", "3", "5"}
    assert {row["example_id"] for row in answers(run, Chosen(kind="other"))} == {"0", "2", "4"}
    with pytest.raises(PfungstError, match="no probe noise; its probes are: control"):
        list(answers(run, Chosen(probe="noise")))


def test_the_command_says_when_there_is_more(run: Path) -> None:
    shown = CliRunner().invoke(app, ["show", str(run), "--wrong", "--most", "2", "--json"])
    found = json.loads(shown.stdout)
    assert len(found["answers"]) == 2 and found["complete"] is False
    assert "first 2 answers" in CliRunner().invoke(app, ["show", str(run), "--most", "2"]).stdout
    assert "No answer fits" in CliRunner().invoke(app, ["show", str(run), "--id", "none"]).stdout
