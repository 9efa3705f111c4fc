from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from pfungst.core import Answer, Asker, Example, PlayerDied, PlayerError, ProbeError, Query, UsageError
from pfungst.core.store import AnswerStore
from pfungst.probes.game import GAMES, Enforcers, MiniGame, Rewards, boards_of
from pfungst.probes.game.board import Board, Bools, Floats
from pfungst.probes.game.layouts import Layouts
from pfungst.probes.game.minigame import UNASKED
from tests.probes.game.scripted import ScenePlayer, first_object_in

PAPER = GAMES["paper-places"]


def fair_layouts(game: MiniGame, number: int, count: int) -> list[np.ndarray]:
    board = game.boards[number]
    drawn = board.positions(Layouts(board).uniform(np.random.default_rng(0), 400))
    return list(drawn[game.enforcers.allow(board, drawn)][:count])


def test_each_outcome_earns_the_reward_of_the_paper(small: list[Example]) -> None:
    boards, _ = boards_of(small, PAPER)
    corner = ScenePlayer(small, first_object_in(2.0, -3.0))
    game = MiniGame(boards, Asker(corner), PAPER)
    number = next(n for n in range(len(boards)) if game.was_right(n))
    fair = fair_layouts(game, number, 200)
    moves = game.step([number] * len(fair), fair)
    for move in moves:
        wrong = move.positions[0, 0] >= 2.0
        assert (move.status, move.reward) == (("fooled", 1.0) if wrong else ("same", -0.1))
    assert {"fooled", "same"} <= {move.status for move in moves}
    crowded = np.zeros_like(fair[0])
    (refused,) = game.step([number], [crowded])
    assert (refused.status, refused.reward, refused.refused_by) == ("invalid", -0.8, "gap")


def test_a_wrong_answer_that_changes_earns_the_consistency_reward(small: list[Example]) -> None:
    boards, _ = boards_of(small, PAPER)
    before = boards[0].scene.positions[0, 0]
    game = MiniGame(boards[:1], Asker(ScenePlayer(small, lambda s: s["objects"][0]["3d_coords"][0] == before)), PAPER)
    assert not game.was_right(0)
    (move,) = game.step([0], fair_layouts(game, 0, 1))
    assert (move.status, move.reward) == ("changed", 0.1)
    assert game.fooled(0) is None and game.changed(0) is move and game.live() == []


def test_summed_rewards_add_every_condition_that_holds() -> None:
    rewards = Rewards(summed=True)
    assert [rewards.of(s) for s in ("fooled", "changed", "same", "invalid")] == pytest.approx([1.1, 0.1, -0.1, -0.9])
    assert [Rewards().of(s) for s in ("fooled", "changed", "same", "invalid")] == [1.0, 0.1, -0.1, -0.8]


def test_nothing_is_asked_twice_not_even_the_scene_as_it_stands(small: list[Example], tmp_path: object) -> None:
    player = ScenePlayer(small)
    boards, _ = boards_of(small, PAPER)
    game = MiniGame(boards, Asker(player), PAPER)
    fair = fair_layouts(game, 0, 3)
    game.step([0, 0, 0, 0, 0], [fair[0], fair[0], fair[1], fair[0], boards[0].start])
    game.step([0, 0], [fair[1], fair[2]])
    assert len(player.seen) == len(set(player.seen)) == len(boards) + 3
    assert game.queries(0) == 3


def test_a_second_game_takes_its_answers_from_the_store(small: list[Example], tmp_path) -> None:
    boards, _ = boards_of(small, PAPER)
    with AnswerStore(tmp_path / "answers.sqlite") as store:
        for expected in (len(boards) + 2, 0):
            player = ScenePlayer(small)
            game = MiniGame(boards, Asker(player, store), PAPER)
            fair = fair_layouts(game, 1, 2)
            moves = game.step([1, 1], fair)
            assert len(player.seen) == expected and all(move.status == "same" for move in moves)


def test_the_budget_is_never_exceeded(small: list[Example]) -> None:
    boards, _ = boards_of(small, PAPER)
    player = ScenePlayer(small)
    game = MiniGame(boards[:1], Asker(player), PAPER, budget=2)
    moves = game.step([0] * 5, fair_layouts(game, 0, 5))
    assert [move.status for move in moves] == ["same"] * 2 + [UNASKED] * 3
    assert len(player.seen) == 3 and game.live() == []
    assert len(game.moves()) == 2


class Blind:
    """Fails on some questions; remembers what it was shown."""

    name, fingerprint = "blind", "blind-1"
    batch_size = 4

    def __init__(self, dies_after: int = 10**9, fails: Sequence[str] = ()) -> None:
        self.asked, self.dies_after, self.fails = 0, dies_after, set(fails)
        self.scenes: list[object] = []

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        self.scenes += [query.scene for query in queries]
        self.asked += len(queries)
        if self.asked > self.dies_after or any(query.question in self.fails for query in queries):
            raise RuntimeError("boom")
        return [Answer("certainly") for _ in queries]


def test_a_player_that_reads_no_scenes_sees_none(small: list[Example]) -> None:
    player = Blind()
    game = MiniGame(boards_of(small, PAPER)[0], Asker(player), PAPER)
    game.step([0], fair_layouts(game, 0, 1))
    assert player.scenes and set(player.scenes) == {None}


def test_nonsense_is_wrong_and_counted(small: list[Example]) -> None:
    game = MiniGame(boards_of(small, PAPER)[0], Asker(Blind()), PAPER)
    game.step([0], fair_layouts(game, 0, 1))
    assert game.nonsense == len(small) + 1
    assert not any(game.was_right(n) for n in range(len(small)))


def test_one_failing_question_costs_only_itself(small: list[Example]) -> None:
    asker = Asker(Blind(fails=[small[2].question]))
    game = MiniGame(boards_of(small, PAPER)[0], asker, PAPER)
    lost = [n for n in range(len(small)) if game.old_answer(n) is None]
    assert lost == [n for n, one in enumerate(small) if one.question == small[2].question]
    assert asker.failed == len(lost) and "boom" in asker.last_error
    assert not set(lost) & set(game.live())


def test_a_player_that_fails_on_everything_is_taken_for_dead(small: list[Example]) -> None:
    player = Blind(dies_after=len(small))
    game = MiniGame(boards_of(small, PAPER)[0], Asker(player, patience=3), PAPER)
    with pytest.raises(PlayerDied, match="last 3 questions.*boom"):
        game.step([0] * 8, fair_layouts(game, 0, 8))
    assert issubclass(PlayerDied, PlayerError)


def test_enforcers_can_be_composed_anew(small: list[Example]) -> None:
    boards, _ = boards_of(small, PAPER)
    only_bounds = Enforcers(tuple(p for p in Enforcers.of(PAPER).parts if p.name == "bounds"))
    game = MiniGame(boards, Asker(Blind()), PAPER, enforcers=only_bounds)
    (move,) = game.step([0], [np.zeros((len(boards[0]), 2))])
    assert move.status == "same"


def test_a_layout_of_the_wrong_shape_is_explained(small: list[Example]) -> None:
    game = MiniGame(boards_of(small, PAPER)[0], Asker(Blind()), PAPER)
    with pytest.raises(ProbeError, match="shape"):
        game.step([0], [np.zeros((1, 2))])


def test_the_curve_follows_the_game(small: list[Example]) -> None:
    boards, _ = boards_of(small, PAPER)
    game = MiniGame(boards[:2], Asker(ScenePlayer(small, first_object_in(2.0, -3.0))), PAPER)
    fair = fair_layouts(game, 0, 60)
    game.step([0] * 60, fair)
    game.step([0], [np.zeros_like(fair[0])])
    first, last = game.curve
    assert first.queries == last.queries == 60 and first.fooled == last.fooled == 0.5
    assert (first.legal, last.legal, last.reward, last.hits) == (1.0, 0.0, -0.8, 0.0)
    assert first.hits == np.mean([one[0, 0] >= 2.0 for one in fair])


def test_presets_differ_as_the_paper_and_its_code_do(small: list[Example]) -> None:
    paper, code = GAMES["paper-places"], GAMES["code"]
    assert (paper.moves, code.moves) == ("grid", "step")
    assert (paper.legality.min_pixels, code.legality.min_pixels) == (200, 100)
    assert code.legality.radius == {"large": 0.7, "small": 0.3}
    board = boards_of(small, code)[0][0]
    assert board.size == (224, 224)
    offsets = board.places[0] - board.start[0]
    free = offsets[(np.abs(board.places[0]) < 3.0).all(axis=1)]
    assert np.allclose(free / 0.3, np.round(free / 0.3))
    assert np.abs(offsets).max() == pytest.approx(0.9) and np.abs(board.places).max() <= 3.0
    with pytest.raises(UsageError, match="grid, displacement or step"):
        replace(paper, moves="jump")


def test_what_the_enforcers_agreed_to_is_not_judged_again_when_it_is_tried(small: list[Example]) -> None:
    class Counted:
        """Allows everything, and counts."""

        name = "counted"
        layouts = 0

        def allows(self, board: Board, positions: Floats) -> Bools:
            self.layouts += len(positions)
            return np.ones(len(positions), dtype=np.bool_)

    counted = Counted()
    boards = boards_of(small[:2], PAPER)[0]
    game = MiniGame(boards, Asker(ScenePlayer(small)), PAPER, enforcers=Enforcers((counted,)))
    drawn = [board.positions(Layouts(board).uniform(np.random.default_rng(0), 4)) for board in boards]
    assert game.enforcers.allow(boards[0], drawn[0]).all() and counted.layouts == 4
    game.step([0] * 4, list(drawn[0]))
    assert counted.layouts == 4 and game.queries(0) == 4
    game.step([1] * 4, list(drawn[1]))  # nobody asked about these
    assert counted.layouts == 8 and game.queries(1) == 4
