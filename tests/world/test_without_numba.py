"""The loops in numpy against the compiled ones."""

import numpy as np
import pytest

from pfungst.probes.game.board import Board
from pfungst.probes.game.layouts import Layouts
from pfungst.probes.game.rules import rules_of
from pfungst.world import embedded
from pfungst.world import without_numba as plain
from pfungst.world.legal import Rules, is_legal

kernels = pytest.importorskip("pfungst.world.kernels")


@pytest.fixture(scope="module")
def boards() -> list[Board]:
    examples = [one for one in embedded(scenes=12, seed=5, cache=False) if one.id == one.group]
    return [Board.of(one, rules_of("paper")) for one in examples]


def test_programs_give_the_same_answers(boards: list[Board], monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    layouts = [board.positions(rng.integers(0, board.cells, (300, len(board)))) for board in boards]
    free = [rng.uniform(-3, 3, one.shape) for one in layouts]
    compiled = [board.moved.codes(one).codes for board, one in zip(boards * 2, layouts + free, strict=True)]
    monkeypatch.setattr(kernels, "answer_positions", plain.answer_positions)
    ours = [board.moved.codes(one).codes for board, one in zip(boards * 2, layouts + free, strict=True)]
    assert len({code for codes in compiled for code in codes.tolist()}) > 5
    for one, other in zip(compiled, ours, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("rules", [Rules(), Rules(gap=0.0, margin=0.1), Rules(margin=0.0), Rules(bound=2.0)])
def test_layouts_are_judged_alike(boards: list[Board], rules: Rules, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    seen = set()
    for board in boards[:12:3]:
        layouts = Layouts(board)
        drawn = rng.integers(0, board.cells, (2000, len(board)), dtype=np.uint8)
        fair = layouts.uniform(rng, 100)
        drawn[: len(fair)] = fair
        places = board.positions(drawn)
        compiled = is_legal(board.scene, places, rules), layouts._masks.legal(drawn)
        with monkeypatch.context() as patch:
            patch.setattr(kernels, "legal_positions", plain.legal_positions)
            patch.setattr(kernels, "legal_cells", plain.legal_cells)
            ours = is_legal(board.scene, places, rules), layouts._masks.legal(drawn)
        for one, other in zip(compiled, ours, strict=True):
            assert np.array_equal(one, other)
            seen |= set(one.tolist())
    assert seen == {True, False}
