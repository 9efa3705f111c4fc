"""`pfungst play` as a user types it."""

import json
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from pfungst.cli.play import play
from pfungst.core import PfungstError, Run
from pfungst.experiments.games import tables
from pfungst.probes.game import fooled_rows, read_moves, read_result

PLAYER = """
from pfungst.core import Answer
from pfungst.world import answer, answer_text


class Weak:
    name, fingerprint, reads_scenes = "weak", "weak-1", True

    def __init__(self, data=None):
        self.programs = {one.question: one.program for one in data}

    def answer(self, queries):
        return [Answer(self.one(query)) for query in queries]

    def one(self, query):
        text = answer_text(answer(self.programs[query.question], query.scene))
        x = query.scene["objects"][0]["3d_coords"][0]
        return {"yes": "no", "no": "yes"}.get(text, "none") if x >= 2 else text
"""
WORDS = ["weak.py:Weak", "--size", "2", "--seeds", "2", "-a", "cross-entropy", "--budget", "15", "--limit", "80",
         "--data", "world?scenes=40"]  # fmt: skip


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "weak.py").write_text(PLAYER)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str, code: int = 0) -> str:
    app = typer.Typer()
    app.command()(play)
    done = CliRunner().invoke(app, list(words))
    if isinstance(done.exception, PfungstError):
        raise done.exception
    assert done.exit_code == code, done.output
    return done.stdout


def test_it_plays_prints_its_tables_and_writes_the_run_folder(here: Path) -> None:
    said = run(*WORDS, "--out", "run", "--strips", "1", "--fairness", "none")
    assert "at most 80 questions to weak.py:Weak: 2 x 2 x 15" in said
    assert "Results of the games (Table 2)" in said and "a drop of" in said
    assert {"exam.json", "answers.sqlite", "game", "findings.json"} <= {p.name for p in Path("run").iterdir()}
    assert list(Path("run/game/strips").glob("*.png"))
    report = Path("run/report.html").read_text()
    assert "Success against query budget" in report and "data:image/webp;base64," in report
    assert report.count("<script") == 1
    for heading in (
        "Sensitivity by question type",
        "Convergence",
        "Distribution over mini-games",
        "Rarity of fooling scenes",
    ):
        assert heading in report
    found = json.loads(run(*WORDS, "--out", "run", "--transfer", "run", "--json", "--fairness", "none"))
    assert found["tables"][0]["rows"][0][0] == "weak" and found["findings"][0]["probe"] == "game"
    (transfer,) = found["extras"]["tables"]
    assert transfer["title"] == "Transfer of fooling scenes" and transfer["rows"][0][2]["value"] == 1.0


def test_runs_stand_side_by_side_and_their_scenes_are_tried_on_each_other(here: Path) -> None:
    from pfungst.cli.play import games

    (here / "strong.py").write_text(
        PLAYER.replace('"weak"', '"strong"').replace("weak-1", "strong-1").replace(">= 2", ">= 9")
    )
    run(*WORDS, "--out", "a", "--json", "--strips", "0", "--fairness", "none")
    run("strong.py:Weak", *WORDS[1:], "--out", "b", "--json", "--strips", "0", "--fairness", "none")
    app = typer.Typer()
    app.command()(games)
    done = CliRunner().invoke(app, ["a", "b", "--transfer", "--json"])
    assert done.exit_code == 0, done.output
    tables = {table["title"]: table for table in json.loads(done.stdout)["tables"]}
    assert len(tables["Results of the games (Table 2)"]["rows"]) == 2
    matrix = tables["Transfer of fooling scenes"]
    assert matrix["columns"] == ["found against", "scenes", "weak", "strong"]
    assert matrix["rows"][0][2]["value"] == 1.0 and matrix["rows"][0][3]["value"] == 0.0
    assert tables["Success against query budget"]["rows"][1][3] == "0.0%"


def test_scenes_that_a_player_gives_no_answer_to_are_missing_from_the_transfer(here: Path) -> None:
    from pfungst.cli.play import games

    fails = """
        x = query.scene["objects"][0]["3d_coords"][0]
        if os.path.exists("broken") and abs(x - float(open("broken").read())) < 1e-9:
            raise ValueError("cannot look")
"""
    clumsy = PLAYER.replace('"weak"', '"clumsy"').replace("weak-1", "clumsy-1").replace(">= 2", ">= 9")
    clumsy = clumsy.replace("    def one(self, query):\n", "    def one(self, query):" + fails)
    (here / "clumsy.py").write_text("import os\n" + clumsy)
    plain = ("--strips", "0", "--fairness", "none")
    run(*WORDS, "--out", "a", "--json", *plain)
    run("clumsy.py:Weak", *WORDS[1:], "--seed", "3", "--out", "b", "--json", *plain)
    first = [np.ravel(row["after"])[0] for row in fooled_rows(read_moves(here / "a"))]
    (here / "broken").write_text(str(first[0]))
    lost = first.count(first[0])
    app = typer.Typer()
    app.command()(games)
    done = CliRunner().invoke(app, ["a", "b", "--transfer"])
    said = f"clumsy on weak: 0 scenes left out whose questions the data lack, {lost} without an answer."
    assert said in " ".join(done.stdout.split())
    with pytest.raises(
        PfungstError, match=f"{lost} scenes got no answer and are missing from the transfer.*cannot look"
    ):
        raise done.exception
    with pytest.raises(PfungstError, match=f"{lost} scenes got no answer"):
        run("clumsy.py:Weak", *WORDS[1:], "--seed", "3", "--out", "b", "--transfer", "a", *plain)
    assert f"{lost} without an answer" in (here / "b" / "report.html").read_text()


def test_scenes_of_other_rules_are_tried_as_they_were_shown(here: Path) -> None:
    (here / "weak.py").write_text(PLAYER.replace(">= 2 else", '>= 1 and query.scene["image_size"] == [224, 224] else'))
    plain = ("--json", "--strips", "0", "--fairness", "none")
    run(*WORDS, "--out", "code", "--preset", "code", *plain)
    found = json.loads(run(*WORDS, "--out", "places", "--transfer", "code", *plain))
    (row,) = found["extras"]["tables"][0]["rows"]
    assert row[1] > 0 and row[2]["value"] == 1.0
    beside = {table.title: table for table in tables([read_result(Path("code")), read_result(Path("places"))])}
    assert beside["Results of the games (Table 2)"].columns[3:5] == (
        "Average Accuracy, cross-entropy", "Average Accuracy, cross-entropy (paper-places)",
    )  # fmt: skip


@pytest.mark.slow
def test_processes_write_the_same_games_as_one_process(here: Path) -> None:
    run(*WORDS, "--out", "one", "--json")
    run(*WORDS, "--out", "two", "--on", "processes", "--workers", "2", "--json")
    assert Path("one/game/moves.parquet").read_bytes() == Path("two/game/moves.parquet").read_bytes()


@pytest.mark.parametrize("on", ["local", pytest.param("processes", marks=pytest.mark.slow)])
def test_questions_without_an_answer_are_counted_by_all_and_asked_again(here: Path, on: str) -> None:
    silent = PLAYER.replace(
        "def one(self, query):",
        """def one(self, query):
        import pathlib
        if query.question == list(self.programs)[0] and not pathlib.Path("speaks").exists():
            raise ValueError("hung up")""",
    )
    (here / "weak.py").write_text(silent)
    data = ["--data", "world?scenes=8", "--size", "4", "--seeds", "2", "--limit", "8", "-a", "rsg", "--budget", "3"]
    whole = ["weak.py:Weak", *data, "--fairness", "none", "--strips", "0"]
    words = [*whole, "--on", on]
    found = json.loads(run(*words, "--out", "run", "--json", code=1))
    (row,) = found["findings"]
    assert dict(row["tables"][0]["rows"])["questions"] == found["counts"]["questions"] == row["clean"]["n"] == 7
    assert found["counts"]["questions without an answer"] == 1
    numbers = json.loads(Path("run/findings.json").read_text())
    assert numbers["left out by probe"] == {"game": 1} and "ValueError: hung up." in numbers["failed"][0][1]
    assert Run.open("run").missing == "1 query got no answer, so 1 trial is left out of all numbers (game: 1)."
    run(*words, "--out", "run", "--max-errors", "1")
    Path("speaks").touch()
    run(*words, "--out", "run")
    run(*whole, "--on", "local", "--out", "whole")
    assert Path("run/findings.json").read_bytes() == Path("whole/findings.json").read_bytes()
    assert read_result(Path("run")).counts["questions"] == 8


def test_mistakes_are_explained(here: Path) -> None:
    with pytest.raises(PfungstError, match="no adversary called 'a3c'"):
        run("weak.py:Weak", "--adversary", "a3c")
    with pytest.raises(PfungstError, match="cannot be drawn"):
        run("weak.py:Weak", "--size", "1000", "--out", "run")
    with pytest.raises(PfungstError, match="nowhere is not a run folder"):
        run(*WORDS, "--out", "run", "--transfer", "nowhere")
    (here / "plain.jsonl").write_text('{"id": "1", "question": "Why?", "answer": "yes", "image": "x.png"}\n')
    (here / "mine.py").write_text("def answer(image, question):\n    return 'yes'\n")
    with pytest.raises(PfungstError, match=r"None of the 1 questions can be played: 1 x no scene"):
        run("mine.py:answer", "--data", "plain.jsonl", "--size", "1", "--out", "run2")


def test_open_questions_are_asked_without_choices(here: Path) -> None:
    player = PLAYER.replace(
        "def one(self, query):", "def one(self, query):\n        assert not query.choices, query.choices"
    )
    (here / "picky.py").write_text(player)
    words = ["picky.py:Weak", *WORDS[1:], "--out", "run", "--json", "--strips", "0", "--fairness", "none"]
    with pytest.raises(PfungstError, match=r"\('no', 'yes'\)"):
        run(*words)
    assert json.loads(run(*words, "--open"))["findings"][0]["probe"] == "game"
