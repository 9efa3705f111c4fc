from dataclasses import replace

import numpy as np
import pytest

from pfungst.core import Example
from pfungst.probes.game import GAMES, Board, GameRules, Layouts
from pfungst.probes.game.sight import Sight
from pfungst.world import visible_pixels
from pfungst.world.renderers import raycast


@pytest.mark.parametrize(
    "rules",
    [GAMES["paper-places"], GAMES["code"], replace(GAMES["paper-places"], ood=True)],
    ids=["paper", "code", "ood"],
)
def test_layouts_are_allowed_that_show_enough_of_every_object(examples: list[Example], rules: GameRules) -> None:
    rng = np.random.default_rng(0)
    crowded = max(examples, key=lambda one: len(one.scene["objects"]) if one.scene else 0)
    board = Board.of(crowded, rules)
    places = board.positions(rng.integers(0, board.cells, (12, len(board))))
    shown = np.array([visible_pixels(board.scene_at(layout)).min() for layout in places])
    sight = Sight(board, 320, 240)
    for bound in (1, 200, 600):
        assert (sight.allows(places, bound) == (shown >= bound)).all()


def test_nothing_is_counted_twice(small: list[Example], monkeypatch: pytest.MonkeyPatch) -> None:
    board = Board.of(small[0], GAMES["paper-places"])
    places = board.positions(Layouts(board).uniform(np.random.default_rng(0), 10))
    first = board.sight(320, 240).allows(places, 200)
    monkeypatch.setattr(raycast, "count_pixels", None)
    assert (board.sight(320, 240).allows(places, 200) == first).all()
