"""A mini-game that was played elsewhere, replayed here."""

import json

import numpy as np
import pytest

from pfungst.core import Example, PfungstError
from pfungst.probes.game import Asker, MiniGame
from pfungst.probes.game.adversaries.rsg import RandomScenes
from pfungst.probes.game.board import boards_of
from pfungst.probes.game.rows import ask_again, settle
from pfungst.probes.game.rules import rules_of
from pfungst.probes.game.tape import Heard, record, replay
from tests.probes.game.scripted import ScenePlayer, first_object_in

RULES = rules_of("paper")


def played(small: list[Example]) -> MiniGame:
    boards, _ = boards_of(small, RULES)
    asker = Heard(Asker(ScenePlayer(small, first_object_in(0.0, 0.0))), [one.id for one in small])
    game = MiniGame(boards, asker, RULES, budget=20)
    RandomScenes(batch=5).attack(game, np.random.default_rng(3))
    return game


def test_a_replayed_game_is_the_game_that_was_played(small: list[Example]) -> None:
    game = played(small)
    ask_again(game)
    again = replay(json.loads(json.dumps(record(game))), {one.id: one for one in small}, RULES)
    there, here = settle(game, True), settle(again, True)
    assert here.boards == there.boards
    assert here.table.to_pylist() == there.table.to_pylist()
    assert any(one.fooled_after for one in here.boards) and any(one.committed is False for one in here.boards)


def test_a_tape_with_a_scene_that_is_not_legal_is_refused(small: list[Example]) -> None:
    tape = record(played(small))
    step, board, places = tape["moves"][0]
    tape["moves"][0] = [step, board, [0.0] * len(places)]
    with pytest.raises(PfungstError, match="refused here"):
        replay(tape, {one.id: one for one in small}, RULES)


def test_a_tape_about_other_questions_is_refused(small: list[Example]) -> None:
    tape = record(played(small))
    with pytest.raises(PfungstError, match="not here"):
        replay(tape, {}, RULES)
    with pytest.raises(PfungstError, match="version"):
        replay({**tape, "version": 9}, {one.id: one for one in small}, RULES)
