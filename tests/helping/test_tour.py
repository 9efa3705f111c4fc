"""The tour really runs, and can be left at any time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pfungst.helping import STEPS, tour, walk
from tests.cli.conftest import Command


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch, pfungst: Command) -> None:
    """The commands of the tour run in this process: that costs no start of Python each."""

    def run(words: list[str], output: object) -> int:
        pfungst(*words)
        return 0

    monkeypatch.setattr(tour, "_run", run)


def test_every_step_works_and_leaves_two_reports(pfungst: Command, folder: Path, inside: None) -> None:
    told = json.loads(pfungst("tour", "--json", "--out", "walk"))
    assert [step["code"] for step in told["steps"]] == [0] * len(STEPS)
    assert (folder / "walk" / "first" / "report.html").exists() and (
        folder / "walk" / "second" / "report.html"
    ).exists()


def test_without_torch_the_tour_has_another_player(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tour, "installed", lambda package: None)
    told: list[str] = []
    done = walk(tmp_path, lambda command: "skip", told.append)
    assert done[0].command.startswith("pfungst examine prior ") and "pfungst[torch]" in told[0]
    assert {step.code for step in done} == {None}


def test_q_ends_it_and_s_skips(tmp_path: Path) -> None:
    choices = iter(["skip", "quit"])
    done = walk(tmp_path, lambda command: next(choices), lambda text: None)
    assert [step.title for step in done] == [STEPS[0].title]


def test_a_step_that_fails_is_told_and_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tour, "_run", lambda words, output: 1)
    told: list[str] = []
    done = walk(tmp_path, lambda command: "run", told.append)
    assert [step.code for step in done] == [1] * len(STEPS) and any("pfungst doctor" in text for text in told)


def test_pfungst_alone_greets_with_commands_that_exist(pfungst: Command) -> None:
    from tests.cli.test_json import LEAVES

    told = pfungst()
    named = [line.split()[1] for line in told.splitlines() if line.startswith("  pfungst ")]
    assert len(named) == 3 and {(name,) for name in named} <= set(LEAVES)
    assert "--help" in told and "docs/" in told
