"""A skeleton passes its own tests and its own check, installed as any package is."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pfungst.core import PfungstError, UsageError
from pfungst.helping import KINDS, write_skeleton
from pfungst.scores import METRICS, check_metric
from tests.cli.conftest import Command


@pytest.fixture(scope="module")
def skeletons(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of each kind, in a folder that Python searches, with the metadata that an installation leaves there."""
    folder = tmp_path_factory.mktemp("skeletons")
    for kind in KINDS:
        write_skeleton(kind, f"my-{kind}", folder / kind)
        project = tomllib.loads((folder / kind / "pyproject.toml").read_text("utf-8"))["project"]
        info = folder / "site" / f"my_{kind}-{project['version']}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 0.1.0\n")
        lines = [
            f"[{group}]\n{name} = {place}\n"
            for group, entries in project["entry-points"].items()
            for name, place in entries.items()
        ]
        (info / "entry_points.txt").write_text("".join(lines))
    return folder


def test_their_own_tests_pass(skeletons: Path) -> None:
    path = os.pathsep.join(str(skeletons / kind / "src") for kind in KINDS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", *KINDS],
        cwd=skeletons, env={**os.environ, "PYTHONPATH": path, "PYTEST_ADDOPTS": ""},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout and "skipped" not in done.stdout


def test_they_pass_their_checks_and_an_exam_under_their_names(
    skeletons: Path, pfungst: Command, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    from PIL import Image

    for kind in KINDS:
        monkeypatch.syspath_prepend(skeletons / kind / "src")
    monkeypatch.syspath_prepend(skeletons / "site")
    Image.new("RGB", (8, 8), "red").save(folder / "1.png")
    rows = [{"id": 1, "image": "1.png", "question": "Which color is it?", "answer": "red"}]
    (folder / "questions.json").write_text(json.dumps(rows))
    for line in (
        "check player my-player",
        "check probe my-probe",
        "check metric my-metric",
        "data check my-data:.",
        "examine my-player --data my-data:. --probe my-probe --metric my-metric --option threshold=0.1 --out run",
    ):
        pfungst(*line.split())
    listed = json.loads(pfungst("list", "--json"))
    for kind, plural in {"player": "players", "probe": "probes", "metric": "metrics", "data": "data"}.items():
        assert [row[1] for row in listed[plural] if row[0] == f"my-{kind}" and row[1]], plural
    assert "my-probe" in (folder / "run" / "findings.json").read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_the_code_is_clean(kind: str, skeletons: Path) -> None:
    done = subprocess.run(
        ["ruff", "check", "--isolated", "--line-length", "120", "--select", "E,F,W,B,UP", str(skeletons / kind)],
        executable=str(Path(sys.executable).with_name("ruff")), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["My Model", "9lives", "../up", "a--b", "class", "", "modèle", "-x"])
def test_a_bad_name_is_wrong_usage(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be called"):
        write_skeleton("player", name, tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("kind", "name"), [("probe", "noise"), ("player", "film"), ("metric", "anls"), ("data", "gqa")]
)
def test_the_name_of_a_part_of_ours_is_taken(kind: str, name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="would be found first"):
        write_skeleton(kind, name, tmp_path / "new")


def test_the_name_of_a_module_is_taken(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="already has a module 'json'"):
        write_skeleton("player", "json", tmp_path / "new")


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(PfungstError, match="already exists"):
        write_skeleton("probe", "newest-probe", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_an_unknown_kind_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="There are: player, probe, metric, data"):
        write_skeleton("horse", "hans")


@pytest.mark.parametrize("name", METRICS)
def test_our_metrics_keep_the_rules(name: str) -> None:
    assert check_metric(METRICS[name]) == []


@pytest.mark.parametrize(
    ("metric", "problem"),
    [
        (lambda example, answer: 100.0, "from 0 to 1"),
        (lambda example, answer: 0.5, "right answer is unknown"),
        (lambda example, answer: float(len(answer.text) > 20), "more than the right answer"),
        (lambda example, answer: float(answer.text == example.target.lower()), "failed on"),
        (lambda example, answer: "good", "failed on"),
        (lambda example, answer, turns=itertools.count(): next(turns) % 2, "then"),
    ],
    ids=["percent", "unknown", "length", "None", "text", "moody"],
)
def test_a_metric_that_breaks_a_rule_is_told_so(metric, problem: str) -> None:
    assert any(problem in told for told in check_metric(metric))
