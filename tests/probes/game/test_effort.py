"""How much an adversary tries on a question in a mini-game of any size, and the control that moves at random."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pfungst.core import Asker, Dataset, Example
from pfungst.core.errors import UsageError
from pfungst.probes.game import GAMES, GameSettings, MiniGame, boards_of, play
from pfungst.probes.game.results import is_won
from pfungst.probes.game.tables import read_result, table_controls
from tests.probes.game.scripted import ScenePlayer, first_object_in

pytest.importorskip("torch")

from pfungst.probes.game.adversaries import a2c

PAPER = GAMES["paper-places"]
PLAIN = a2c.PlainA2C(features="own", patience=10_000)


def played(examples: list[Example], draws: int, settings: a2c.A2C) -> MiniGame:
    """Against a player that is never wrong."""
    game = MiniGame(boards_of(examples, PAPER)[0], Asker(ScenePlayer(examples)), PAPER, budget=10_000, draws=draws)
    a2c.train(settings, game, np.random.default_rng(0))
    return game


@pytest.mark.parametrize("size", [1, 6])
def test_a_question_gets_the_same_training_in_a_mini_game_of_any_size(small: list[Example], size: int) -> None:
    game = played(small[:size], 40, a2c.PlainA2C(features="own", patience=10_000, boards=2))
    assert [game.draws(n) for n in range(size)] == [40] * size
    assert [game.updates(n) for n in range(size)] == [10] * size
    assert all(game.out_of_draws(n) for n in range(size))
    refused = sum(game.illegal.values())
    assert sum(game.legal_draws(n) for n in range(size)) == 40 * size - refused


def test_the_control_draws_every_cell_alike_and_learns_nothing(small: list[Example]) -> None:
    game = MiniGame(boards_of(small[:1], PAPER)[0], Asker(ScenePlayer(small)), PAPER, budget=10_000, draws=4000)
    policy, _ = a2c.make_policy(PLAIN.untrained, 7, seed=1)
    table = a2c.BoardTable(game, PLAIN.untrained, None, np.random.default_rng(1))
    x, y, _ = table.decide(policy, [0])
    assert table.entropies([0], x, y) == pytest.approx([1.0])
    cells, _ = a2c.BoardTable(game, a2c.PlainA2C(samples=4900), None, np.random.default_rng(2)).sample(
        0, x[0], y[0], np.random.default_rng(3)
    )
    counts = np.stack([np.bincount(column, minlength=49) for column in cells.T])
    expected = 4900 / 49
    assert (((counts - expected) ** 2 / expected).sum(1) < 90).all()  # chi square with 48 degrees: p of 2e-4
    after = a2c.train(PLAIN.untrained, game, np.random.default_rng(0))
    assert all((value == 0).all() for value in after.actor[-1].parameters()) and game.entropy[0] == pytest.approx(1.0)


def test_a_policy_that_settled_on_few_moves_shows_by_its_entropy_and_its_scenes(small: list[Example]) -> None:
    eager = a2c.PlainA2C(features="own", patience=10_000, learning_rate=0.05)
    settled, control = (played(small[:2], 800, settings) for settings in (eager, eager.untrained))
    for number in range(2):
        assert settled.draws(number) == control.draws(number) == 800
        assert settled.entropy[number] < 0.5 < control.entropy[number]
    assert sum(settled.queries(n) for n in range(2)) < sum(control.queries(n) for n in range(2)) / 2


def test_what_an_adversary_finds_is_said_beside_what_its_control_finds(small: list[Example], tmp_path: Path) -> None:
    settings = GameSettings("a2c-plain", 3, 2, draws=400, budget=30, options={"features": "own"})
    player = ScenePlayer(small, first_object_in(1.0, -3.0))
    result = play(player, Dataset("w", small, "exact", "x"), tmp_path, settings)
    assert len(player.seen) == len(set(player.seen)) <= settings.most_queries() == 6 * (2 * 30 + 2 + 2 * 3)
    control = result.control
    assert control is not None and control.adversary == "uniform (a2c-plain)" and len(control.boards) == 6
    won, random = ([float(is_won(board)) for board in one.boards] for one in (result, control))
    assert sum(random) > 0
    (found,) = json.loads((tmp_path / "findings.json").read_text())["findings"]
    rows = {(row["name"], row["condition"]): row["value"] for row in found["rows"]}
    assert rows["fooled by a uniform policy", ""] == pytest.approx(np.mean(random))
    assert rows["beyond controls", "uniform policy"] == pytest.approx(np.mean(won) - np.mean(random))
    asked = [board.queries for board in control.boards]
    assert rows["different legal scenes asked about", "uniform policy"] == pytest.approx(np.mean(asked))
    assert "A uniform policy with as many draws and queries fools" in found["verdict"]
    table = next(table for table in found["tables"] if table["title"] == "How much was tried on a question")
    assert table["columns"] == ["", "adversary", "uniform policy"] and len(table["rows"]) == 5
    (row,) = table_controls([result]).rows
    assert row[2:4] == ("a2c-plain", "uniform (a2c-plain)")
    assert [one.value for one in row[4:7]] == pytest.approx(
        [np.mean(won), np.mean(random), np.mean(won) - np.mean(random)]
    )


def test_a_run_from_before_draws_were_counted_means_the_places_that_its_preset_meant(
    small: list[Example], tmp_path: Path
) -> None:
    settings = GameSettings("rsg", 3, 1, budget=3)
    play(ScenePlayer(small), Dataset("w", small, "exact", "x"), tmp_path, settings)
    config = json.loads((tmp_path / "exam.json").read_text())
    (probe,) = config["probes"]
    assert probe["settings"]["preset"] == "paper-places"
    probe["settings"]["preset"] = "paper"
    (tmp_path / "exam.json").write_text(json.dumps(config))
    assert read_result(tmp_path).settings.rules.moves == "displacement"
    del probe["settings"]["draws"]
    (tmp_path / "exam.json").write_text(json.dumps(config))
    assert read_result(tmp_path).settings.rules == PAPER


def test_the_control_counts_where_a_player_is_paid() -> None:
    alone, both = (GameSettings("a2c", 2, 2, max_queries=80, uniform=uniform) for uniform in (False, True))
    assert alone.queries_each() == 15 and both.queries_each() == 6
    assert alone.most_queries() == 80 == both.most_queries()
    assert GameSettings("rsg", 2, 2, max_queries=80).queries_each() == 15
    with pytest.raises(UsageError, match="at least as many draws"):
        GameSettings(budget=500, draws=100)
