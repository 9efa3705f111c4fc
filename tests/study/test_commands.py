"""`pfungst study serve` as a process of its own: what it says, and what is left when it is killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pfungst.cli.app import app
from pfungst.study import StudySettings, new_study, open_study
from tests.study.conftest import visiting

pytest.importorskip("uvicorn", reason="serving needs the extra web")


def begin(folder: Path, *words: str) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "pfungst", "study", *words, "--port", "0", "--json"], stdout=subprocess.PIPE, text=True,
        cwd=folder,
    )  # fmt: skip
    assert process.stdout is not None
    told = ""
    for line in process.stdout:
        told += line
        if line.startswith("}"):
            return process, json.loads(told)
    raise AssertionError(told)


def test_an_answer_survives_a_killed_server_and_is_not_saved_twice(tmp_path: Path, questions: Path) -> None:
    settings = StudySettings("withheld:training=0,conditions=IQA", str(questions), check_every=0)
    study = new_study(tmp_path / "study", settings, limit=3).study
    worker = study.book.join("w")
    study.book.consent(worker)
    path = f"w/{study.keys.token(worker.id, worker.code)}"
    study.close()
    process, told = begin(tmp_path, "serve", "study")
    assert told["admin_token"] == study.keys.admin
    with visiting(told["address"]) as visitor:
        text = visitor.get(path).text
        given = {name: visitor.field(text, name) for name in ("form_token", "worker", "turn")}
        assert "Saved:" in visitor.post("answer", **given, choice="1").text
        process.send_signal(signal.SIGKILL)
        process.wait()
        process, told = begin(tmp_path, "serve", "study")
        visitor.address = told["address"]
        text = visitor.get(path).text
        again = {**given, "form_token": visitor.field(text, "form_token")}
        assert "You answered this already" in visitor.post("answer", **again, choice="2").text
    process.terminate()
    process.wait()
    kept = open_study(tmp_path / "study")
    assert [row["value"] for row in kept.book.answers()] == [{"choice": "1"}]
    kept.close()


def test_the_demo_serves_the_study_that_is_there(tmp_path: Path, questions: Path) -> None:
    new_study(tmp_path / "study-demo", StudySettings("rephrase", str(questions)), limit=1).study.close()
    process, told = begin(tmp_path, "demo")
    with visiting("") as visitor:
        assert "Before you begin" in visitor.get(told["link"]).text
    process.terminate()
    process.wait()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["new", "rephrase", "--data", "questions.jsonl", "--out", "other", "--limit", "0"], "--limit"),
        (["workers", "people", "--add", "-2"], "--add"),
        (["serve", "people", "--port", "99999"], "--port"),
        (["serve", "people", "--port", "0", "--public", "ftp://study.example.org"], "such as https://"),
    ],
)
def test_what_makes_no_sense_is_a_sentence(
    tmp_path: Path, questions: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    new_study(tmp_path / "people", StudySettings("rephrase", str(questions)), limit=1).study.close()
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(app, ["study", *words])
    told = found.output if isinstance(found.exception, SystemExit) else str(found.exception)
    assert found.exit_code != 0 and said in told and "Traceback" not in told


def test_a_new_study_says_how_many_workers_it_needs(tmp_path: Path, questions: Path) -> None:
    def fewest(kind: str, **settings: Any) -> int:
        made = new_study(tmp_path / f"{len(list(tmp_path.iterdir()))}", StudySettings(kind, str(questions), **settings))
        made.study.close()
        return made.workers

    assert fewest("withheld", wanted=3) == 3 * 4, "nobody sees a question in two conditions"
    assert fewest("withheld:conditions=IQA,training=0", wanted=2, per_worker=4) == 2 * 12 / 4
    assert fewest("rephrase", wanted=2) == 1 + 2, "nobody judges their own"


def test_without_the_extra_a_sentence_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['sqlalchemy'] = None\n"
        "from pfungst.cli import main\n"
        "sys.argv = ['pfungst', 'study', 'results', '.']\n"
        "main()"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert "pip install 'pfungst[study]'" in said.stderr
    assert "Traceback" not in said.stderr
    assert said.returncode == 1


def test_the_commands_it_prints_can_be_pasted(tmp_path: Path, questions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = CliRunner().invoke(app, ["study", "new", "withheld", "-d", str(questions), "--limit", "3", "-o", "my study"])
    assert "pfungst study workers 'my study' --add" in told.output and "pfungst study serve 'my study'" in told.output
