"""The A2C adversary ends up playing what fooled the player, and asks nothing for it."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pfungst.core import Asker, Example
from pfungst.core.store import AnswerStore
from pfungst.probes.game import GAMES, MiniGame, boards_of
from pfungst.probes.game.layouts import Layouts
from tests.probes.game.scripted import ScenePlayer

torch = pytest.importorskip("torch")

from pfungst.probes.game.adversaries import a2c, a2c_networks  # noqa: E402
from pfungst.probes.game.adversaries.a2c import Memory  # noqa: E402

PAPER = GAMES["paper-places"]


def rare(scene: Mapping[str, Any]) -> bool:
    """A weakness without any sense: one layout in thirty, whatever stands where."""
    places = [round(value) for one in scene["objects"] for value in one["3d_coords"][:2]]
    return zlib.crc32(repr(places).encode()) % 30 == 0


def played(examples: list[Example], seed: int = 0, store: AnswerStore | None = None, **settings: Any) -> MiniGame:
    asker = Asker(ScenePlayer(examples, rare), store)
    game = MiniGame(boards_of(examples, PAPER)[0], asker, PAPER, budget=40, draws=80)
    a2c.train(a2c.A2C(features="own", **settings), game, np.random.default_rng(seed))
    return game


def fooled(game: MiniGame) -> list[int]:
    return [n for n in range(len(game.boards)) if game.fooled(n) is not None]


@pytest.mark.parametrize("heads", ["objects", "paper"])
def test_what_fooled_once_is_what_the_policy_commits_itself_to(small: list[Example], heads: str) -> None:
    game = played(small, heads=heads)
    assert len(fooled(game)) >= 3
    assert [game.committed(n) for n in fooled(game)] == [False] * len(fooled(game))
    without = played(small, heads=heads, imitate=0.0)
    assert len(fooled(without)) >= 3 and any(without.committed(n) for n in fooled(without))


def test_settling_changes_what_is_committed_and_nothing_that_is_asked(small: list[Example]) -> None:
    short, long = played(small, settle=0, imitate=0.001), played(small, imitate=0.001)
    moves = [[(move.board, move.positions.tobytes()) for move in game.moves()] for game in (short, long)]
    assert moves[0] == moves[1]
    assert sum(long.committed(n) is False for n in fooled(long)) > sum(
        short.committed(n) is False for n in fooled(long)
    )
    player = long.asker.player  # type: ignore[attr-defined]
    tried = {move.positions.tobytes() for move in long.moves()}
    shown = [long.committed_to(n) for n in range(len(small))]
    new = sum(one is not None and one.tobytes() not in tried for one in shown)
    assert new <= len(small) - len(fooled(long))
    assert len(player.seen) == len(small) + sum(long.queries(n) for n in range(len(small))) + new


def test_a_game_that_goes_on_from_its_answers_commits_itself_to_the_same(small: list[Example], tmp_path: Path) -> None:
    with AnswerStore(tmp_path / "answers.sqlite") as store:
        first = played(small[:4], store=store)
        again = played(small[:4], store=store)
    assert first.asker.asked > 0 and again.asker.asked == 0
    for number in range(4):
        one, other = first.committed_to(number), again.committed_to(number)
        assert (one is None and other is None) or np.array_equal(one, other)  # type: ignore[arg-type]


def test_a_policy_that_does_not_learn_imitates_nothing(small: list[Example], tmp_path: Path) -> None:
    settings = a2c.A2C(features="own")
    policy, _ = a2c.make_policy(settings, 7, seed=3)
    a2c_networks.save_policy(policy, tmp_path / "policy.safetensors", settings)
    fixed = a2c.A2C(features="own", weights=str(tmp_path / "policy.safetensors"), learn=False)
    asker = Asker(ScenePlayer(small, rare))
    game = MiniGame(boards_of(small, PAPER)[0], asker, PAPER, budget=60, draws=80)
    after = a2c.train(fixed, game, np.random.default_rng(0))
    assert fooled(game)
    assert all(
        torch.equal(a, b) for a, b in zip(policy.state_dict().values(), after.state_dict().values(), strict=True)
    )


def test_a2c_to_the_letter_of_the_paper_remembers_nothing() -> None:
    assert a2c.PlainA2C().imitate == 0.0 < a2c.A2C().imitate


def test_a_memory_keeps_the_first_move_and_teaches_each_head_its_part() -> None:
    policy = a2c.Policy("state", "paper", 7, 16, 1.0, given=4)
    seen, tokens, objects = torch.eye(4)[:2], torch.zeros(2, 50, dtype=torch.int64), torch.zeros(2, 10, 18)
    heads = [np.array([9, 0, 4]), np.array([1, 2, 3])]

    class Table:
        """What two questions look like to the policy."""

        def decide(self, policy: Any, some: list[int]) -> Any:
            return policy.decide(policy.features(seen[some], tokens[some]), objects[some])

    Table.heads = heads
    memory = Memory(Table(), 7)
    memory.add(0, np.array([48, 0, 10]), 1.0)
    memory.add(0, np.array([1, 2, 3]), 1.0)
    assert memory.numbers == [0]
    with torch.no_grad():
        x, y, value = policy.decide(policy.features(seen, tokens), objects)
        log_p = x[0, 9, 6] + y[0, 9, 6] + x[0, 0, 0] + y[0, 0, 0] + x[0, 4, 1] + y[0, 4, 3]
    assert memory.loss(policy, [0]).item() == pytest.approx(float(-log_p * (1.0 - value[0])), rel=1e-5)
    assert not memory.settled(policy)
    optimiser = torch.optim.Adam(policy.parameters(), lr=0.01)

    def learn(loss: Any) -> None:
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    steps = memory.settle(policy, learn, 300, np.random.default_rng(0))
    assert 0 < steps < 300 and memory.settled(policy)
    assert memory.settle(policy, learn, 300, np.random.default_rng(0)) == 0


def test_the_greedy_layout_is_the_likeliest_where_it_is_legal_and_legal_where_that_is_not(small: list[Example]) -> None:
    board = boards_of(small[:1], PAPER)[0][0]
    layouts, rng = Layouts(board), np.random.default_rng(0)
    legal = layouts.uniform(rng, 1)[0]
    weights = rng.random((len(board), board.cells))
    weights[np.arange(len(board)), legal] += 2.0
    assert (layouts.greedy(np.log(weights)) == legal).all()
    crowd = np.zeros((len(board), board.cells))
    crowd[:, 24] = np.arange(len(board))  # all want the middle, the last one most
    (found,) = layouts.greedy(crowd)
    assert found[-1] == 24 and (found[:-1] != 24).all()
    assert all(layouts.room(i, j)[found[i], found[j]] for i in range(len(board)) for j in range(i))
