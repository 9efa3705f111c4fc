"""The hardening matrix: what each way learns from, and how gains are told."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from pfungst.core import AnsweredTrial, DataError, Example, PfungstError, UsageError
from pfungst.data import load
from pfungst.experiments import perform
from pfungst.experiments.matrix import (
    BEFORE,
    BLOCKS_FILE,
    EXPERIMENT,
    MEASURES,
    NONE,
    WAYS,
    MatrixConfig,
    exists,
    kit,
    matrix_tables,
    measured,
    summarise,
)
from pfungst.training.config import FitConfig
from tests.tables import answered, write_run

SMALL: dict[str, Any] = {
    "models": ("rn-state",),
    "ways": ("none", "scenes"),
    "seeds": 1,
    "data": "world?split=train&scenes=12&seed=3&rephrasings=0",
    "test": "world?scenes=10&seed=11&rephrasings=0",
    "questions": 24,
    "limit": 24,
    "games": 1,
    "budget": 2,
    "train_games": 2,
    "train_budget": 10,
    "fit": FitConfig(steps=2, batch=8, rate=2e-4),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("matrix")
    return out, perform(EXPERIMENT, MatrixConfig(**SMALL), out)


def test_every_way_of_a_model_is_trained_and_examined_by_every_probe_it_can_carry(made: Any) -> None:
    out, result = made
    assert [row["way"] for row in result["rows"]] == [BEFORE, *SMALL["ways"]]
    carried = set(MEASURES) - {"picture"}  # a model that reads scenes sees no image
    assert all(set(row["accuracy"]) == carried for row in result["rows"])
    assert result["missing"] == 0 and (out / "matrix.svg").exists()


def test_a_model_of_the_package_may_be_named_with_zoo_in_front() -> None:
    from pfungst.experiments.matrix_training import model_of

    assert model_of("zoo:rn-state").fingerprint == model_of("rn-state").fingerprint


def test_a_way_learns_from_its_own_questions_beside_the_plain_ones(made: Any) -> None:
    from pfungst.experiments.matrix_training import load_kit

    out, _ = made
    shared = load_kit("rn-state", MatrixConfig(**SMALL), out)
    plain = shared.blocks["plain"]
    assert plain == 24
    starts = {"noise": plain, "rephrase": plain + shared.blocks["noise"]}
    starts["scenes"] = starts["rephrase"] + shared.blocks["rephrase"]
    for way, start in starts.items():
        rows = shared.rows(way, 0.5, 0)
        others = rows[rows >= plain]
        assert set(np.arange(plain)) <= set(rows.tolist())
        assert len(others) >= plain and set(others.tolist()) <= set(range(start, start + shared.blocks[way]))
    for way in ("none", "hidden", "cycle"):
        assert shared.rows(way, 0.5, 0).tolist() == list(range(plain))


def test_noisy_training_questions_begin_with_the_question_itself(made: Any) -> None:
    out, _ = made
    texts = json.loads(next(out.glob("texts/*/noise.json")).read_text())
    asked = {example.id: example.question for example in load(SMALL["data"])}
    assert len(texts) == 24
    assert all(text.startswith(asked[key]) and len(text) > len(asked[key]) for key, text in texts.items())


def test_a_finished_matrix_is_read_and_trained_no_second_time(made: Any) -> None:
    out, result = made
    before = {path: path.stat().st_mtime_ns for path in (out / "cells").glob("*.json")}
    again = perform(EXPERIMENT, MatrixConfig(**SMALL), out)
    read = perform(EXPERIMENT, MatrixConfig(**SMALL, read=True), out)
    assert {path: path.stat().st_mtime_ns for path in (out / "cells").glob("*.json")} == before
    assert json.dumps(again) == json.dumps(read) == json.dumps(result)


def cells_of(plain: list[list[int]], noisy: list[list[int]]) -> list[dict[str, Any]]:
    """Trainings of one model with the scores of its questions, seed by seed, each about an image of its own."""
    cells = []
    for seed, pair in enumerate(zip(plain, noisy, strict=True)):
        for way, scores in zip((NONE, "noise"), pair, strict=True):
            names = [f"{number}" for number in range(len(scores))]
            part = {"ids": names, "images": names, "scores": scores}
            cells.append({"model": "m", "way": way, "seed": seed, "scores": {"clean": part, "noise": part}})
    return cells


def test_gains_are_paired_by_seed_and_question() -> None:
    cells = cells_of([[1, 0] * 10, [0, 0, 1, 0] * 5] * 2, [[1, 1, 1, 0] * 5] * 4)
    rows = summarise(cells)["rows"]
    assert [row["way"] for row in rows] == [NONE, "noise"]
    gain = rows[1]["gain"]["noise"]
    assert gain["by_seed"] == [0.25, 0.5] * 2 and gain["value"] == pytest.approx(0.375)
    assert gain["low"] > 0.0 and not rows[0]["gain"]
    told = matrix_tables({"rows": rows, "missing": 2})
    assert told[0].rows[0][3:] == ("37.5", "37.5") and told[0].rows[1][4].startswith("+37.5 [")
    assert "2 trainings are missing" in told[0].note and "2 of 2 intervals exclude 0" in told[0].note
    cells[-1]["scores"]["noise"] = {"ids": ["a"] * 20, "images": ["i"] * 20, "scores": [1] * 20}
    with pytest.raises(DataError, match="different questions by the probe noise"):
        summarise(cells)


def test_a_way_that_changes_nothing_and_a_probe_with_few_questions_are_said_so() -> None:
    same = matrix_tables({**summarise(cells_of([[1, 0] * 10], [[1, 0] * 10])), "missing": 0})
    assert same[0].rows[1][3:] == ("0.0 (all the same)",) * 2 and "0 of 2 intervals" in same[0].note
    assert same[1].rows[0][4:] == ("none", "none", 0)
    few = cells_of([[1, 0] * 10], [[1, 1] * 10])
    for cell in few:
        cell["scores"]["noise"] = {name: values[:9] for name, values in cell["scores"]["noise"].items()}
    assert "noise" not in summarise(few)["rows"][1]["gain"]


def test_measures_read_the_variant_that_counts(tmp_path: Path) -> None:
    def trial(name: str, **scores: float) -> AnsweredTrial:
        return answered(Example(name, "?", image_id=name), [("x", one) for one in scores.values()], list(scores))

    told = {
        "noise": [trial("a", clean=1.0, first=0.0, second=1.0), trial("b", clean=0.0)],
        "game": [trial("a", clean=1.0, again=1.0, moved=0.0)],
        "contrast": [trial("a", q0i0=1.0, q0i1=0.0), trial("b", q0i0=1.0, q0i1=1.0)],
    }
    write_run(tmp_path, told)
    assert measured("noise", tmp_path) == {"ids": ["a"], "images": ["a"], "scores": [0.5]}
    assert measured("game", tmp_path) == {"ids": ["a"], "images": ["a"], "scores": [0.0]}
    found = measured("contrast", tmp_path)
    assert found is not None and found["scores"] == [0.0, 1.0]
    assert measured("picture", tmp_path) is None


def test_a_way_without_questions_does_not_exist_for_a_model(tmp_path: Path) -> None:
    place = kit("butd-vqa2", tmp_path)
    place.mkdir(parents=True)
    (place / BLOCKS_FILE).write_text(json.dumps({"plain": 3, "noise": 3, "rephrase": 2, "scenes": 0}))
    assert {way: exists(way, "butd-vqa2", tmp_path) for way in WAYS} == {way: way != "scenes" for way in WAYS}
    assert exists("scenes", "film", tmp_path)


def test_what_cannot_be_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no way of hardening 'prayer'"):
        MatrixConfig(("rn-state",), ways=("prayer",))
    with pytest.raises(UsageError, match="--photographs FOLDER"):
        MatrixConfig(("butd-vqa2",))
    with pytest.raises(UsageError, match="share"):
        MatrixConfig(("rn-state",), share=1.0)
    with pytest.raises(PfungstError, match="no training of the matrix has finished"):
        perform(EXPERIMENT, MatrixConfig(("rn-state",), read=True), tmp_path / "empty")
    assert math.isclose(MatrixConfig(("rn-state",)).cycle.start, 0.4)
