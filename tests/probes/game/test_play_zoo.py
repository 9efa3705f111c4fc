"""The parts of scripts/play_zoo.py: one process answers for all mini-games."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from pfungst.cli.games import games
from pfungst.core import Example, ProbeError
from pfungst.players import resolve
from pfungst.probes.game import Asker, MiniGame, boards_of, read_result
from pfungst.probes.game.adversaries.committee import Committee, Judge
from pfungst.probes.game.board import Board
from pfungst.probes.game.rules import rules_of
from pfungst.probes.game.tables import one_scenes
from pfungst.world import make
from tests.probes.game.scripted import ScenePlayer

torch = pytest.importorskip("torch")

from scripts._play.desk import Desk, Item, Request, players_of  # noqa: E402
from scripts._play.tasks import Task, tape_of, tasks_of  # noqa: E402
from scripts._play.work import DeskAsker, DeskCommittee  # noqa: E402

from pfungst.models import load_shipped  # noqa: E402
from pfungst.probes.game.gpu import DrawnPictures  # noqa: E402

RULES = rules_of("paper")
ROOT = Path(__file__).resolve().parents[3]


class Line:
    """To a desk in this process."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def send(self, message: tuple[str, Request]) -> None:
        self.request = message[1]

    def recv(self) -> Any:
        ((_, found),) = self._desk.answer([(self, self.request)])
        return found


@pytest.fixture(scope="module")
def pictures() -> DrawnPictures:
    return DrawnPictures("cpu", 300)


@pytest.fixture
def boards(small: list[Example]) -> list[Board]:
    return boards_of(small[:2], RULES)[0]


def desk_of(boards: list[Board], names: list[str], pictures: DrawnPictures) -> Desk:
    return Desk({board.example.id: board for board in boards}, players_of(names, pictures), pictures)


def items_of(board: Board, count: int = 4, take: int = 0) -> list[Item]:
    cells = np.random.default_rng(0).integers(0, board.cells, (count, len(board)))
    return [(board.example.id, one.tobytes(), take) for one in board.positions(cells)]


def test_the_desk_answers_as_the_player_does(boards: list[Board], pictures: DrawnPictures) -> None:
    desk, board = desk_of(boards, ["san", "rn-state"], pictures), boards[0]
    items = items_of(board)
    for name in ("san", "rn-state"):
        ((_, said),) = desk.answer([(None, Request((name,), items))])
        player = resolve(name)
        places = np.stack([np.frombuffer(layout).reshape(-1, 2) for _, layout, _ in items])
        alone = player.answer(board.queries(places, player.reads_scenes))  # type: ignore[attr-defined]
        assert [text for text, _ in said] == [one.text for one in alone]
        assert [sure for _, sure in said] == pytest.approx([one.confidence for one in alone], abs=0.02)


def test_members_at_the_desk_are_as_sure_as_members_here(boards: list[Board], pictures: DrawnPictures) -> None:
    items = items_of(boards[1])
    places = np.stack([np.frombuffer(layout).reshape(-1, 2) for _, layout, _ in items])
    desk = desk_of(boards, ["rn-state", "state-transformer"], pictures)
    ((_, sure),) = desk.answer([(None, Request(("rn-state", "state-transformer"), items, judge=True))])
    for row, name in zip(sure, ("rn-state", "state-transformer"), strict=True):
        assert row == pytest.approx(Judge(load_shipped(name)).sure(boards[1], places, []), abs=1e-4)


def test_what_a_committee_heard_is_known_and_what_is_asked_again_is_asked_again(
    boards: list[Board], pictures: DrawnPictures, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = desk_of(boards, ["rn-state"], pictures)
    player, asked = desk._players["rn-state"], []
    say = player.say
    monkeypatch.setattr(player, "say", lambda queries, truths: asked.append(len(queries)) or say(queries, truths))
    judging = Request(("rn-state",), items_of(boards[0]), judge=True)
    # Two committees at once, then a player about the same layouts, then the same a second time.
    first, second = (found for _, found in desk.answer([(1, judging), (2, judging)]))
    list(desk.answer([(3, Request(("rn-state",), items_of(boards[0])))]))
    list(desk.answer([(4, Request(("rn-state",), items_of(boards[0], take=1)))]))
    assert [count for count in asked if count] == [4, 4] and (first == second).all()


def test_a_committee_at_the_desk_plays_as_one_in_its_own_process(
    small: list[Example], boards: list[Board], pictures: DrawnPictures
) -> None:
    line = Line(desk_of(boards, ["rn-state", "state-transformer"], pictures))
    members = "rn-state+state-transformer"
    played = []
    for committee in (
        Committee(members=members, candidates=20),
        DeskCommittee(members=members, candidates=20, line=line, player="film"),
    ):
        game = MiniGame(boards, Asker(ScenePlayer(small)), RULES, budget=7)
        committee.attack(game, np.random.default_rng(1))
        played.append([(move.board, move.positions.tobytes()) for move in game.moves()])
    assert played[0] == played[1] and len(played[0]) == 14


def test_the_player_does_not_sit_at_the_desk_against_itself(boards: list[Board], pictures: DrawnPictures) -> None:
    line = Line(desk_of(boards, ["rn-state"], pictures))
    committee = DeskCommittee(members="rn-state+san", line=line, player="rn-state")
    assert committee.bench(DeskAsker(line, "rn-state")).members == ("san",)  # type: ignore[attr-defined]
    with pytest.raises(ProbeError, match="no member but the player"):
        DeskCommittee(members="rn-state", line=line, player="rn-state").bench(DeskAsker(line, "rn-state"))


def test_finished_mini_games_are_not_to_do_and_tapes_say_who_sat_in_the_committee(tmp_path: Path) -> None:
    given = Namespace(
        players=["film", "rn-state"], adversaries=["committee", "rsg"], budget=20, seeds=2, members="film+tbd",
        candidates=60, long_games=0, size=10, out=tmp_path,
    )  # fmt: skip
    exported: Any = Namespace(splits={"test": [str(number) for number in range(30)]})
    todo = tasks_of(given, exported)
    assert [(one.player, one.adversary, one.run) for one in todo[:3]] == [
        ("film", "committee", 0), ("rn-state", "committee", 0), ("film", "rsg", 0)
    ]  # fmt: skip
    assert len(todo) == 8 and dict(todo[0].options) == {"members": "film+tbd", "candidates": 60}
    assert {one.folder for one in todo if one.player == "film"} == {"film-committee-10", "film-rsg-10-20"}
    done = tape_of(tmp_path, todo[0])
    done.parent.mkdir(parents=True)
    done.touch()
    assert tasks_of(given, exported) == todo[1:]
    assert Task("film", "rsg").folder == "film-rsg-10"
    larger = tasks_of(Namespace(**{**vars(given), "size": 15}), exported)
    assert {one.run for one in larger} == {0, 1} and larger[0].folder == "film-committee-15"
    with pytest.raises(ProbeError, match="30 questions were prepared, too few for a mini-game of 100"):
        tasks_of(Namespace(**{**vars(given), "size": 100}), exported)


@pytest.mark.slow
def test_the_whole_script_leaves_runs_as_if_played_here(tmp_path: Path) -> None:
    make(tmp_path / "world", scenes=9, questions_per_scene=2, rephrasings=0, images=False, seed=3)
    script = [sys.executable, "scripts/play_zoo.py"]
    players = ["rn-state", "state-transformer"]
    calls = (
        ["prepare", "world", "export", "--test", "10", "--train", "4", "--candidates", "4", "--test-candidates", "12"],
        ["play", "export", "out", *players, "--adversaries", "committee", "rsg", "--members", "+".join(players),
         "--budget", "4", "--candidates", "8", "--device", "cpu", "--workers", "1", "--room", "100", "--strict"],
        ["collect", "export", "out", "runs"],
    )  # fmt: skip
    for what, *words in calls:
        places = [str(tmp_path / one) if one in ("world", "export", "out", "runs") else one for one in words]
        subprocess.run([*script, what, *places], check=True, cwd=ROOT, timeout=200)
    for player in players:
        committee, random = (
            read_result(tmp_path / "runs" / f"{player}-{name}") for name in ("committee-10-4", "rsg-10-4")
        )
        assert committee.counts["questions"] == random.counts["questions"] == 10
        assert committee.average("before") == random.average("before")
        assert len(one_scenes(committee)) == len(one_scenes(random)) > 5
        assert max(one.queries for one in committee.boards) == 4
    # They say how their players are made, so that scenes can be tried on all of them.
    runs = [str(tmp_path / "runs" / f"{player}-rsg-10-4") for player in players]
    app = typer.Typer()
    app.command()(games)
    done = CliRunner().invoke(app, [*runs, "--transfer", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["tables"][-1]["columns"][2:] == [f"zoo:{player}" for player in players]
