"""What studies have in common: trainings that are kept, scores that are compared, numbers as they are shown."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pfungst.core import DataError, PfungstError
from pfungst.core.stats import over_runs
from pfungst.experiments.study import Scores, by_seed, cell, finished, line, missing_note, over_seeds, side

NUMBER = {"value": 0.366, "low": 0.351, "high": 0.3801}


def test_only_missing_trainings_are_done_and_those_that_are_there_are_read(tmp_path: Path) -> None:
    done: list[Any] = []

    def work(shard: Any) -> bytes:
        done.append(shard.payload)
        return b"{}"

    cells = {"a.json": 1, "b.json": 2}
    with pytest.raises(PfungstError, match="no training has finished yet"):
        finished(None, cells, tmp_path, what="training")
    assert finished(work, {"a.json": 1}, tmp_path) == ([tmp_path / "a.json"], 0)
    assert finished(None, cells, tmp_path) == ([tmp_path / "a.json"], 1)
    assert finished(work, cells, tmp_path) == ([tmp_path / "a.json", tmp_path / "b.json"], 0)
    assert done == [1, 2]
    assert missing_note(0) == "" and missing_note(3, "training").startswith(" 3 trainings are missing: run")


def test_what_runs_gain_is_paired_by_question_and_seed() -> None:
    images = ["a", "a", "b", "c"] * 5
    base, mine = (np.random.default_rng(seed).random((3, 20)) for seed in (0, 1))
    gain = Scores(mine, images) - Scores(base, images)
    wanted = over_runs(mine - base, images, bounds=(-1.0, 1.0))
    assert gain.mean() == wanted
    assert gain.interval() == {"value": wanted.value, "low": wanted.low, "high": wanted.high}
    assert gain.summary()["by_seed"] == pytest.approx((mine - base).mean(1).tolist())
    with pytest.raises(DataError, match="different questions"):
        Scores(mine, images) - Scores(base[:, :19], images[:19])


def test_a_run_without_a_known_score_has_no_mean() -> None:
    scores = Scores(np.array([[1.0, math.nan, 0.0], [math.nan] * 3]), ["a", "b", "c"])
    first, second = scores.by_seed()
    assert first == 0.5 and math.isnan(second)


def test_runs_are_found_by_what_they_are_about() -> None:
    runs = [{"model": m, "way": w, "seed": s} for m in "ab" for w in "xy" for s in (1, 0)]
    assert by_seed(runs, model="a", way="y") == {1: runs[2], 0: runs[3]}
    assert by_seed(runs, model="c") == {}


def test_a_value_per_seed_has_students_interval() -> None:
    found = over_seeds([0.1, 0.2, 0.3])
    assert found["value"] == pytest.approx(0.2)
    assert found["high"] - found["value"] == pytest.approx(4.3027 * 0.1 / math.sqrt(3), rel=1e-4)
    assert math.isnan(over_seeds([0.1])["low"])


def test_numbers_are_shown_in_one_way() -> None:
    assert cell(NUMBER) == "36.6 [35.1, 38.0]"
    assert cell(NUMBER, sign="+", ends=False) == "+36.6"
    assert cell(NUMBER, 3, scale=1) == "0.366 [0.351, 0.380]"
    assert cell({**NUMBER, "low": math.nan}) == "36.6"
    assert (cell(None), cell("as it is"), cell("")) == ("–", "as it is", "")
    assert [side({**NUMBER, "low": low, "high": high}) for low, high in ((1, 2), (-1, 1), (-2, -1))] == [1, 0, -1]
    drawn = line("name", [1, 2], [NUMBER, over_runs(np.ones((1, 4)), list("abcd"))])
    assert drawn.name == "name" and drawn.x == (1, 2) and drawn.y == (0.366, 1.0)
