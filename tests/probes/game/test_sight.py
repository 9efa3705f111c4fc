import numpy as np
import pytest

from pfungst.core import Example
from pfungst.probes.game import GAMES, Board, Layouts
from pfungst.probes.game.sight import Sight
from pfungst.world import visible_pixels_many


def shown(board: Board, places: np.ndarray) -> np.ndarray:
    return np.asarray(visible_pixels_many(board.scene, places, 320, 240).min(axis=1))


@pytest.mark.parametrize("preset", ["paper", "code"])
def test_the_table_decides_as_a_full_count_does(examples: list[Example], preset: str) -> None:
    rng = np.random.default_rng(0)
    crowded = max(examples, key=lambda one: len(one.scene["objects"]) if one.scene else 0)
    board = Board.of(crowded, GAMES[preset])
    places = board.positions(rng.integers(0, board.cells, (600, len(board))))
    places[::7, 0] = np.asarray(board.start)[0]  # objects that were not moved
    sight = Sight(board, 320, 240)
    sight.counted = sight.worth
    least = shown(board, places)
    for bound in (1, 200, 600):
        assert (sight.allows(places, bound) == (least >= bound)).all()
    assert sight.counted - sight.worth < 300  # most were decided without counting


def test_places_off_the_grid_are_counted_in_full(small: list[Example]) -> None:
    board = Board.of(small[0], GAMES["paper"])
    sight = Sight(board, 320, 240)
    sight.counted = sight.worth
    rng = np.random.default_rng(1)
    places = rng.uniform(-3, 3, (40, len(board), 2))
    assert (sight.allows(places, 200) == (shown(board, places) >= 200)).all()
    assert sight.counted == sight.worth + 40


def test_nothing_is_counted_twice(small: list[Example]) -> None:
    board = Board.of(small[0], GAMES["paper"])
    places = board.positions(Layouts(board).uniform(np.random.default_rng(0), 10))
    sight = board.sight(320, 240)
    first = sight.allows(places, 200)
    assert (board.sight(320, 240).allows(places, 200) == first).all() and sight.counted == len(places)
