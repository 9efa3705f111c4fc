"""From a number back to what was asked and said."""

import io
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import pfungst
from pfungst.cli.app import app
from pfungst.core import Answer, BytesImage, Dataset, Exam, Example, PfungstError
from pfungst.core.images import NamedImage
from pfungst.probes.control import Control
from pfungst.report.answers import Chosen, answers
from pfungst.report.image_files import image_files
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


def test_fewer_answers_than_none_are_refused_with_a_sentence(run: Path) -> None:
    found = CliRunner().invoke(app, ["show", str(run), "--most", "-1"])
    assert found.exit_code == 2 and "--most" in found.output


def test_answers_are_chosen_by_flip_and_words(run: Path) -> None:
    assert {row["example_id"] for row in answers(run, Chosen(flip="right to wrong"))} == {"1", "3", "5"}
    assert list(answers(run, Chosen(flip="wrong to right"))) == []
    assert {row["example_id"] for row in answers(run, Chosen(text="HOW 5"))} == {"5"}
    with pytest.raises(PfungstError, match="no flip called 'sideways'. There are: right to wrong"):
        list(answers(run, Chosen(flip="sideways")))


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
