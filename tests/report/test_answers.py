"""From a number back to what was asked and said."""

import io
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import pfungst
from pfungst.cli.app import app
from pfungst.core import Answer, BytesImage, Dataset, Exam, Example, PfungstError, Run
from pfungst.core.images import NamedImage
from pfungst.probes.control import Control
from pfungst.report.page import image_files
from tests.conftest import png


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
    read = Run.open(run)
    everything = list(read.rows())
    assert [row["example_id"] for row in everything] == [str(n) for n in range(6) for _ in range(2)]
    assert [(r["variant"], r["answer"], r["score"]) for r in read.rows([("example_id", "=", "1")])] == [
        ("clean", "3", 1.0),
        ("again", "4", 0.0),
    ]
    assert {row["example_id"] for row in read.answers(wrong=True)} == {"1", "3", "5"}
    assert {row["example_id"] for row in read.answers(answer_type="other")} == {"0", "2", "4"}
    with pytest.raises(PfungstError, match="no probe noise; its probes are: control"):
        read.answers("noise")


def test_the_command_says_when_there_is_more(run: Path) -> None:
    shown = CliRunner().invoke(app, ["show", str(run), "--wrong", "--most", "2", "--json"])
    found = json.loads(shown.stdout)
    assert len(found["answers"]) == 2 and found["complete"] is False
    assert "first 2 answers" in CliRunner().invoke(app, ["show", str(run), "--most", "2"]).stdout
    assert "No answer fits" in CliRunner().invoke(app, ["show", str(run), "--id", "none"]).stdout


def test_fewer_answers_than_none_are_refused_with_a_sentence(run: Path) -> None:
    found = CliRunner().invoke(app, ["show", str(run), "--most", "-1"])
    assert found.exit_code == 2 and "--most" in found.output


def test_answers_are_chosen_by_flip_and_words(run: Path) -> None:
    read = Run.open(run)
    assert [row["example_id"] for row in read.rows([("flip", "=", "right to wrong")])] == ["1", "3", "5"]
    assert list(read.rows([("flip", "=", "wrong to right")])) == []
    assert {row["example_id"] for row in read.rows([("text", "has", "HOW 5")])} == {"5"}
    with pytest.raises(PfungstError, match="no flip called 'sideways'. There are: right to wrong"):
        list(read.rows([("flip", "=", "sideways")]))


def test_trials_come_in_the_order_that_is_asked_for(run: Path) -> None:
    read = Run.open(run)
    trials = list(read.trials([("variant", "=", "again")], "-score"))
    assert [trial[0]["example_id"] for trial in trials] == ["0", "2", "4", "1", "3", "5"]
    assert [len(trial) for trial in trials] == [2] * 6
    least = list(read.trials([("role", "=", "control")], "score", 2, whole=False))
    assert [[row["variant"] for row in trial] for trial in least] == [["again"], ["again"]]
    assert [trial[0]["example_id"] for trial in least] == ["1", "3"]
    assert [row["example_id"] for row in read.rows([("score", "<", 1), ("example_id", "in", ["3", "4"])])] == ["3"]
    for wrong in (("colour", "=", 1), ("score", "~", 1)):
        with pytest.raises(PfungstError, match="There is no condition"):
            list(read.trials([wrong]))


def test_a_table_is_read_by_columns_and_pandas_has_them_all(run: Path) -> None:
    read = Run.open(run)
    assert read.table("control", ("trial", "place")).to_pydict() == {
        "trial": [n for n in range(6) for _ in range(2)], "place": [0, 1] * 6,
    }  # fmt: skip
    frame = read.to_pandas()
    assert len(frame) == 12 and set(frame["probe"]) == {"control"} and frame["flip"].isna().sum() == 6
    assert [one.role for one in read.findings] == ["control"] and read.judge is None
    with pytest.raises(PfungstError, match="has no reading 'other'"):
        read.open(run, "other").table("control")


def test_images_are_links_in_the_terminal_and_files_in_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PFUNGST_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "data"
    folder.mkdir()
    for n in range(2):
        (folder / f"{n}.png").write_bytes(png(100 * n).read())
    rows = [{"id": f"q{n}", "question": "Is it?", "image": f"{n}.png", "answer": "yes"} for n in range(2)]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "run"
    pfungst.examine("oracle", folder / "data.jsonl", ["control", "blind"], out)
    shown = json.loads(CliRunner().invoke(app, ["show", str(out), "--probe", "blind", "--id", "q1", "--json"]).stdout)
    files = {row["variant"]: row["image_file"] for row in shown["answers"]}
    # The variants that take the image away, or show another, have no link to it.
    assert files["clean"] == str(folder / "1.png")
    assert files["blank image"] is files["question only"] is files["other image"] is None
    piped = CliRunner().invoke(app, ["show", str(out), "--probe", "control"]).stdout
    assert str(folder / "0.png") in piped
    without = CliRunner().invoke(app, ["show", str(out), "--probe", "control", "--no-images"]).stdout
    assert "0.png" not in without


def test_an_image_in_an_archive_is_copied_once_and_named_by_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PFUNGST_CACHE", str(tmp_path / "cache"))
    content = io.BytesIO()
    png(90).pil().save(content, format="WEBP")
    image = BytesImage(content.getvalue())
    data = Dataset("d", [Example("a", "?", image), Example("b", "?", NamedImage("gone.jpg"))])
    rows = [{"probe": "control", "example_id": one.id, "image": one.image and one.image.digest} for one in data]
    first, missing = image_files(rows, data)
    assert first is not None and first.suffix == ".webp" and first.read_bytes() == image.read() and missing is None
    assert image_files(rows, data)[0] == first and len(list(first.parent.iterdir())) == 1
