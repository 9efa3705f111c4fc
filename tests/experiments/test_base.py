"""What all experiments have in common: the command, the folder, going on."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from pfungst.cli.experiments import Experiments
from pfungst.compute import Shard
from pfungst.core import DataError, UsageError
from pfungst.experiments import EXPERIMENTS, perform, run_cells
from pfungst.experiments.base import noted
from tests.experiments.small import EXPERIMENT, Inner, Small

app = typer.Typer(cls=Experiments, no_args_is_help=True)


@app.callback()
def _all() -> None:
    """Tables and figures."""


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    names: Any = EXPERIMENTS.builtin
    monkeypatch.setitem(names, "small", EXPERIMENT)
    monkeypatch.chdir(tmp_path)


def ask(*words: str) -> str:
    done = CliRunner().invoke(app, ["small", *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_fields_are_options_and_their_lines_the_help() -> None:
    text = " ".join(ask("--help").split())
    assert "Squares of numbers." in text and "The second paragraph." in text
    for words in ("--models", "Models, one column each. With commas", "--fit KEY=VALUE", "--set KEY=VALUE", "--steps",
                  "Steps of a run. [default: 4; x>=1]", "--loud", "--words", "What is squared.",
                  "[runs/small]"):  # fmt: skip
        assert words in text, words
    assert "--rate" not in text


def test_options_make_the_configuration_and_json_tells_everything() -> None:
    told = json.loads(
        ask("3", "4", "--steps", "7", "--fit", "rate=0.25", "--set", "size=8", "--set", "kind=x", "--json")
    )
    assert told["folder"] == "runs/small" and told["squares"] == {"3": 9, "4": 16}
    assert (told["steps"], told["rate"], told["changes"]) == (7, 0.25, {"size": 8, "kind": "x"})
    assert told["tables"][0]["rows"] == [["3", 9], ["4", 16]] and told["figures"][0]["title"] == "Squares"


def test_wrong_options_are_told_in_a_sentence() -> None:
    with pytest.raises(UsageError, match="The fit has no setting 'rat'. Did you mean rate"):
        ask("3", "--fit", "rat=1")
    with pytest.raises(UsageError, match="numbers of the experiment small"):
        ask("three")


def test_tables_and_figures_are_printed_and_written(tmp_path: Path) -> None:
    told = ask("2", "3", "--limit", "1", "--out", "here", "--models", "c,d", "--models", "e")
    assert "Squares" in told and "All of them." in told and "here" in told
    record = json.loads((tmp_path / "here" / "experiment.json").read_bytes())
    assert record["experiment"] == "small"
    assert record["config"]["numbers"] == [2, 3] and record["config"]["models"] == ["c", "d", "e"]
    assert "| 2 | 4 |" in (tmp_path / "here" / "tables.md").read_text()
    assert json.loads((tmp_path / "here" / "result.json").read_bytes())["squares"] == {"2": 4}
    drawn = (tmp_path / "here" / "small.svg").read_text()
    assert drawn.startswith("<svg") and "n &lt; 9" in drawn


def test_a_folder_is_of_one_configuration_but_free_fields_may_change(tmp_path: Path) -> None:
    perform(EXPERIMENT, Small((2,)), tmp_path)
    (tmp_path / "cells" / "2.json").write_text("5")
    assert perform(EXPERIMENT, Small((2,), models=("z",), device="cuda"), tmp_path)["squares"] == {"2": 5}
    with pytest.raises(DataError, match=r"other settings \(fit.steps was 4, now it is 5\)"):
        perform(EXPERIMENT, Small((2,), fit=Inner(steps=5)), tmp_path)
    (tmp_path / "cells" / "2.json").write_text("{")
    with pytest.raises(DataError, match="the file is damaged"):
        perform(EXPERIMENT, Small((2,)), tmp_path)


def _work(shard: Shard) -> bytes:
    return str(shard.payload * 2).encode()


@pytest.mark.parametrize("jobs", [1, 2])
def test_cells_are_done_once_and_more_can_be_added_in_front(tmp_path: Path, jobs: int) -> None:
    assert run_cells(_work, {"b.txt": 2}, tmp_path, jobs=jobs)["b.txt"].read_text() == "4"
    seen: list[Any] = []

    def counting(shard: Shard) -> bytes:
        seen.append(shard.payload)
        return _work(shard)

    files = run_cells(counting, {"a.txt": 1, "b.txt": 2}, tmp_path)
    assert {name: path.read_text() for name, path in files.items()} == {"a.txt": "2", "b.txt": "4"}
    assert seen == [1]


def test_a_run_that_was_stopped_is_noted_and_its_time_and_machines_are_added_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = tmp_path / "run.json"
    with pytest.raises(KeyboardInterrupt), noted(tmp_path):
        during = json.loads(note.read_text())
        assert during["unfinished"] and during["started"]
        time.sleep(0.2)
        raise KeyboardInterrupt
    stopped = json.loads(note.read_text())
    assert stopped["unfinished"] and 0.2 <= stopped["seconds"] < 5 and stopped["packages"]["numpy"]
    note.write_text(json.dumps({**stopped, "seconds": 100.0, "device": "another machine"}))
    for _ in range(2):
        with noted(tmp_path):
            pass
    done = json.loads(note.read_text())
    assert "unfinished" not in done and 100 <= done["seconds"] < 105
    assert (done["started"], done["device"]) == (stopped["started"], "another machine")
    assert [one["device"] for one in done["later_machines"]] == [stopped["device"]]
