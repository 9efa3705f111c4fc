"""The scene an adversary commits itself to is asked about again and verified; the mean over all its scenes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pfungst.core import Asker, Dataset, Example, Query
from pfungst.probes.game import GAMES, GameSettings, MiniGame, boards_of, play, read_moves, table_b3
from pfungst.probes.game.layouts import fair_layouts
from pfungst.probes.game.results import numbers_of
from pfungst.probes.game.rows import BoardSummary, settle
from tests.probes.game.scripted import ScenePlayer, first_object_in

PAPER = GAMES["paper-places"]


class Fickle(ScenePlayer):
    """Right whenever it is asked a second time; `truths` by question."""

    truths: Mapping[str, str]

    def _one(self, query: Query) -> str:
        said = super()._one(query)
        return self.truths[query.question] if query.take else said


def summary_of(player: ScenePlayer, example: Example) -> BoardSummary:
    """Commits itself to the first legal scene with object 0 in the east, which was not asked about before."""
    game = MiniGame(boards_of([example], PAPER)[0], Asker(player), PAPER, budget=5)
    board = game.boards[0]
    fair = fair_layouts(board, game.enforcers, np.random.default_rng(0), 60)
    east = next(one for one in fair if one[0, 0] >= 2.0)
    game.commit({0: east})
    return settle(game, True).boards[0]


def test_a_wrong_answer_on_the_committed_scene_is_confirmed_and_the_scene_verified(small: list[Example]) -> None:
    found = summary_of(ScenePlayer(small, first_object_in(2.0, -3.0)), small[0])
    assert found.committed is False and found.queries == 0 and found.scenes is None
    assert (found.committed_confirmed, found.committed_verified, found.one_scene) == (True, True, False)
    wavering = Fickle(small, first_object_in(2.0, -3.0))
    wavering.truths = {small[0].question: found.truth}
    fickle = summary_of(wavering, small[0])
    assert (fickle.committed, fickle.committed_confirmed, fickle.one_scene) == (False, False, True)
    perfect = summary_of(ScenePlayer(small), small[0])
    assert (perfect.committed, perfect.committed_confirmed, perfect.committed_verified) == (True, None, None)
    assert replace(found, committed_verified=False).one_scene is None


def test_accuracy_on_all_scenes_is_the_mean_over_questions_of_the_mean_over_scenes(
    small: list[Example], tmp_path: Path
) -> None:
    settings = GameSettings(size=3, seeds=2, adversary="rsg", budget=20)
    data = Dataset("w", small, "exact", "x")
    result = play(ScenePlayer(small, first_object_in(2.0, -3.0)), data, tmp_path, settings)
    scenes: dict[str, list[bool]] = {}
    for row in sorted(read_moves(tmp_path).to_pylist(), key=lambda row: row["query"]):
        scenes.setdefault(row["example_id"], []).append(row["new_answer"] == row["truth"])
    every = np.mean([np.mean(some) for some in scenes.values()])
    late = np.mean([np.mean(some[-(len(some) // 4) :]) for some in scenes.values()])
    (found,) = json.loads((tmp_path / "findings.json").read_text())["findings"]
    told = {row["name"]: row["value"] for row in found["rows"]}
    assert told["accuracy on all scenes asked about"] == pytest.approx(every) and 0.1 < every < 0.95
    assert told["accuracy on the last quarter of each question's scenes"] == pytest.approx(late)
    assert result.average("scenes") == pytest.approx(every)
    table = table_b3([result])
    shown = dict(zip(table.columns, table.rows[0], strict=True))
    assert str(shown["rsg: accuracy on all its scenes (drop)"]).startswith(f"{100 * every:.1f} (")


def test_questions_without_a_moved_scene_have_no_accuracy_on_moved_scenes(small: list[Example]) -> None:
    game = MiniGame(boards_of(small[:2], PAPER)[0], Asker(ScenePlayer(small)), PAPER, budget=5)
    assert np.isnan(numbers_of(settle(game, False)).scenes)
