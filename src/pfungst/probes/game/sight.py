"""Do all objects of a layout show enough of themselves? Remembered for a board: a layout is often judged twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from pfungst.world.renderers.raycast import check_size

if TYPE_CHECKING:
    from pfungst.probes.game.board import Board

Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]


class Sight:
    """What shows of one board's objects in images of one size."""

    def __init__(self, board: Board, width: int, height: int) -> None:
        self.board: Board = board
        self.size: tuple[int, int] = check_size(width, height)
        self._memory: dict[bytes, int] = {}

    def allows(self, positions: Floats, least: int) -> Bools:
        """Which layouts (layouts, objects, 2) show at least `least` pixels of every object."""
        return np.array([self._least(layout) >= least for layout in positions], dtype=np.bool_)

    def _least(self, positions: Floats) -> int:
        """Pixels of the object that shows the fewest."""
        from pfungst.world.renderers.raycast import count_pixels

        key = positions.tobytes()
        if key not in self._memory:
            self._memory[key] = int(count_pixels(self.board.image(positions).packed(), *self.size).min())
        return self._memory[key]
