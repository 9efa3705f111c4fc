from itertools import product

import numpy as np

from pfungst.core import Example
from pfungst.probes.game import GAMES, Enforcers, GameRules, Layouts, boards_of
from pfungst.world import is_legal


def test_every_drawn_layout_is_legal(examples: list[Example]) -> None:
    rng = np.random.default_rng(0)
    sizes = set()
    for board in boards_of(examples, GAMES["paper-places"])[0][::3]:
        layouts, n = Layouts(board), len(board)
        sizes.add(n)
        assert is_legal(board.scene, board.positions(layouts.uniform(rng, 20))).all()
        cells, masks, whole = layouts.sequential(rng, np.full((n, 49), 1 / 49), 20)
        legal = is_legal(board.scene, board.positions(cells))
        assert (legal == whole).all()
        assert np.take_along_axis(masks, cells[..., None], 2)[whole].all()
    assert max(sizes) >= 8  # where uniform draws alone would hardly find one


def test_uniform_draws_reach_exactly_the_legal_layouts_and_none_more_than_others(small: list[Example]) -> None:
    rules = GameRules(bins=3)
    board = next(b for b in boards_of(small, rules)[0] if len(b) == min(len(x) for x in boards_of(small, rules)[0]))
    n = len(board)
    every = np.array(list(product(range(9), repeat=n)))
    legal = every[is_legal(board.scene, board.positions(every))]
    assert 0 < len(legal) < 20_000
    drawn = Layouts(board).uniform(np.random.default_rng(0), 40 * len(legal))
    names, counts = np.unique(drawn @ (9 ** np.arange(n)), return_counts=True)
    assert set(names.tolist()) <= set((legal @ (9 ** np.arange(n))).tolist())
    expected = len(drawn) / len(legal)
    assert len(names) == len(legal)
    assert ((counts - expected) ** 2 / expected).sum() < len(legal) + 6 * np.sqrt(2 * len(legal))


def test_sequential_draws_follow_the_weights(small: list[Example]) -> None:
    board = boards_of(small, GAMES["paper-places"])[0][0]
    weights = np.zeros((len(board), 49))
    target = Layouts(board).uniform(np.random.default_rng(4), 1)[0]
    weights[np.arange(len(board)), target] = 1.0
    cells, _, whole = Layouts(board).sequential(np.random.default_rng(0), weights, 5)
    assert whole.all() and (cells == target).all()


def test_displacements_start_where_the_object_stands_and_may_not_leave_the_scene(small: list[Example]) -> None:
    rules, rng = GAMES["paper"], np.random.default_rng(0)
    board = boards_of(small, rules)[0][0]
    moved = board.places - board.start[:, None]
    assert np.allclose(moved, moved.round()) and np.abs(moved).max() == 3.0 and len(np.unique(moved[0], axis=0)) == 49
    cells = rng.integers(0, 49, (300, len(board)))
    places = board.positions(cells)
    outside = (np.abs(places) > 3.0).any((1, 2))
    assert outside.any() and not Enforcers.of(rules).allow(board, places[outside]).any()
    drawn = board.positions(Layouts(board).uniform(rng, 50))
    assert len(drawn) and (np.abs(drawn) <= 3.0).all() and is_legal(board.scene, drawn).all()


def test_a_crowd_without_room_gives_no_layout(small: list[Example]) -> None:
    rules = GameRules(bins=2)  # four corners
    board = max(boards_of(small, rules)[0], key=len)
    assert len(board) > 4
    assert len(Layouts(board).uniform(np.random.default_rng(0), 5)) == 0
    cells, _, whole = Layouts(board).sequential(np.random.default_rng(0), np.full((len(board), 4), 0.25), 3)
    assert not whole.any() and cells.shape == (3, len(board))
