"""Trials without an answer are told of wherever a run is read."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

import pfungst
from pfungst.cli.app import app
from pfungst.core import Dataset, Example, Run
from pfungst.report.card import clean_sides, read_findings
from pfungst.report.exports import export
from pfungst.report.gate import gate
from pfungst.web import bundle

DATA = Dataset(
    "numbers", [Example(f"q{n}", f"Is it {n}?", None, str(n), ("yes",), "yes") for n in range(20)], metric="exact"
)
TOLD = "6 queries got no answer, so 3 trials are left out of all numbers (control: 3)."


def fails(question: str) -> str:
    """Of three questions; wrong on others."""
    if question in {DATA[number].question for number in (1, 6, 11)}:
        raise ValueError("too hard")
    return "no" if question == DATA[2].question else "yes"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lacking") / "run"
    done = pfungst.examine(fails, DATA, ["control"], folder)
    assert any(TOLD in problem for problem in done.problems)
    return folder


def test_whoever_reads_a_run_says_how_many_trials_are_left_out(run: Path, tmp_path: Path) -> None:
    read = Run.open(run)
    assert read.missing == TOLD and read.left_out == {"control": 3}
    assert TOLD in (run / "report.html").read_text("utf-8")
    for command in (["report", str(run)], ["gate", str(run), "-r", "control.accuracy>=0"]):
        assert TOLD in CliRunner().invoke(app, command).stderr, command
    assert json.loads(CliRunner().invoke(app, ["report", str(run), "--json"]).stdout)["left_out"] == {"control": 3}
    for kind, file in (("junit", "junit.xml"), ("latex", "tables.tex")):
        export(run, kind, tmp_path / kind)
        assert "3 trials are left out of all numbers" in (tmp_path / kind / file).read_text("utf-8")
    suite = ElementTree.parse(tmp_path / "junit" / "junit.xml").getroot()[0]
    assert TOLD in (suite.findtext("system-out") or "")
    pytest.importorskip("starlette")
    bundle([run], tmp_path / "copy")
    (page,) = (tmp_path / "copy").glob("run-*.html")
    assert TOLD in page.read_text("utf-8")


def test_a_gate_cannot_judge_a_probe_that_lacks_trials_unless_the_exam_may_do_without(
    run: Path, tmp_path: Path
) -> None:
    (verdict,) = gate(run, ["control.accuracy>=0"])
    assert not verdict.met and verdict.bound is None and "3 trials of control are missing" in verdict.how
    called = CliRunner().invoke(app, ["gate", str(run), "-r", "control.accuracy>=0"])
    assert called.exit_code == 3 and "3 trials of control are missing" in called.stdout
    allowed = pfungst.examine(fails, DATA, ["control"], tmp_path / "allowed", max_errors=6)
    assert not allowed.problems and allowed.config["max_errors"] == 6
    pfungst.rescore(tmp_path / "allowed", DATA)
    (verdict,) = gate(tmp_path / "allowed", ["control.accuracy>=0"])
    assert verdict.met and Run.open(tmp_path / "allowed").missing == TOLD


def test_a_run_of_an_earlier_version_does_not_say_of_which_probe_its_lost_trials_are(run: Path, tmp_path: Path) -> None:
    for file in ("exam.json", "findings.json"):
        told = json.loads((run / file).read_text("utf-8"))
        told.pop("left out by probe", None)
        (tmp_path / file).write_text(json.dumps(told))
    assert Run.open(tmp_path).missing == TOLD.replace(" (control: 3)", "")
    assert not gate(tmp_path, ["control.accuracy>=0"])[0].met


def test_failed_queries_are_the_cause_that_clean_accuracies_differ(run: Path) -> None:
    (found,) = read_findings(run)
    other = {**found, "probe": "blind", "clean": {**found["clean"], "value": 0.9, "n": 20}}
    told = clean_sides([found, other], {"control": 3})
    assert "because queries failed" in told and "control: 17" in told and "can ask" not in told
    more = clean_sides([found, {**other, "clean": {**other["clean"], "n": 12}}], {"control": 3})
    assert "can ask" in more and "queries failed" in more
    assert "queries failed" not in clean_sides([found, other], {})
