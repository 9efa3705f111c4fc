"""Do all objects of a layout show enough of themselves? Remembered for a board, so that one move costs microseconds.

Objects stand on the cells of the board's grid or where they stood at first. For every two objects and every two of
these places the pixels that one hides of the other are counted once; the pixels hidden of an object in a whole layout
lie between the largest and the sum of what the others hide of it alone. That decides nearly every layout, and exactly
where at most one object hides another; the rest is counted in full.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from pfungst.world.camera import camera_basis
from pfungst.world.constants import CAMERA
from pfungst.world.renderers.pack import check_size

if TYPE_CHECKING:
    from pfungst.probes.game.board import Board

Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Counts: TypeAlias = npt.NDArray[np.int32]

FEW = 6
"""Layouts that are quicker drawn one by one than from sprites."""


class Sight:
    """What shows of one board's objects in images of one size."""

    def __init__(self, board: Board, width: int, height: int) -> None:
        self.board: Board = board
        self.size: tuple[int, int] = check_size(width, height)
        self.counted: int = 0
        """Layouts counted in full."""
        self.worth: int = 4 * len(board) ** 2
        """Layouts counted in full before the table is made, which costs about as much as these."""
        self._memory: dict[bytes, int] = {}

    def allows(self, positions: Floats, least: int) -> Bools:
        """Which layouts (layouts, objects, 2) show at least `least` pixels of every object."""
        if self.counted < self.worth or self.board.rules.ood:
            return self._in_full(positions, least)
        cells, known = self._cells(positions)
        good = np.zeros(len(positions), dtype=np.bool_)
        surely, surely_not = self._bounds(cells, least)
        good[known] = surely
        open_ones = ~known
        open_ones[known] = ~(surely | surely_not)
        if open_ones.any():
            good[open_ones] = self._in_full(positions[open_ones], least)
        return good

    def _in_full(self, positions: Floats, least: int) -> Bools:
        names = [one.tobytes() for one in positions]
        new = {name: one for name, one in zip(names, positions, strict=True) if name not in self._memory}
        if new:
            self.counted += len(new)
            self._memory.update(zip(new, self._least(np.stack(list(new.values()))), strict=True))
        return np.array([self._memory[name] >= least for name in names], dtype=np.bool_)

    def _least(self, positions: Floats) -> list[int]:
        from pfungst.world.renderers.visible import count_pixels, visible_pixels_many

        # In the out-of-distribution game the camera steps back from each layout by another distance.
        if self.board.rules.ood or len(positions) <= FEW:
            return [int(count_pixels(self.board.image(one).packed(), *self.size).min()) for one in positions]
        least: list[int] = visible_pixels_many(self.board.scene, positions, *self.size).min(axis=1).tolist()
        return least

    @cached_property
    def _places(self) -> Floats:
        """(objects, cells + 1, 2): the grid, then where the object stood at first."""
        return np.concatenate([self.board.places, np.asarray(self.board.start)[:, None]], axis=1)

    @cached_property
    def _table(self) -> tuple[Counts, Counts]:
        """(objects, places): pixels of an object that nothing hides. (objects, places, objects, places): pixels of i on
        its place a that j on its place b hides."""
        from pfungst.world.renderers import visible_pixels_many

        n, places = len(self.board), self._places
        spots = places.shape[1]
        a, b = (axis.ravel() for axis in np.meshgrid(np.arange(spots), np.arange(spots), indexing="ij"))
        pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
        # One call for all pairs, so that every object is drawn once a place; whoever is not meant stands outside the
        # image.
        layouts = np.full((n * spots + len(pairs) * len(a), n, 2), self._outside)
        for i in range(n):
            layouts[i * spots : (i + 1) * spots, i] = places[i]
        for number, (i, j) in enumerate(pairs):
            first = n * spots + number * len(a)
            layouts[first : first + len(a), i], layouts[first : first + len(a), j] = places[i][a], places[j][b]
        seen = visible_pixels_many(self.board.scene, layouts, *self.size).astype(np.int32)
        alone = np.stack([seen[i * spots : (i + 1) * spots, i] for i in range(n)])
        hidden = np.zeros((n, spots, n, spots), dtype=np.int32)
        for number, (i, j) in enumerate(pairs):
            both = seen[n * spots + number * len(a) :][: len(a)].reshape(spots, spots, n)
            hidden[i, :, j, :] = alone[i][:, None] - both[..., i]
            hidden[j, :, i, :] = (alone[j][None, :] - both[..., j]).T
        return alone, hidden

    @property
    def _outside(self) -> Floats:
        """A place far to the right of the image."""
        camera = self.board.scene.camera or CAMERA
        right, _, forward = camera_basis(camera)
        return np.asarray((np.asarray(camera) + 10.0 * np.asarray(forward) + 1000.0 * np.asarray(right))[:2])

    def _cells(self, positions: Floats) -> tuple[npt.NDArray[np.int64], Bools]:
        """The places of layouts as numbers, for those that know no others: (known, objects), and which are known."""
        same = (positions[:, :, None, :] == self._places[None]).all(axis=3)
        known = same.any(axis=2).all(axis=1)
        return same[known].argmax(axis=2), known

    def _bounds(self, cells: npt.NDArray[np.int64], least: int) -> tuple[Bools, Bools]:
        """Which layouts surely show enough, and which surely do not."""
        mine = np.arange(cells.shape[1])
        every, between = self._table
        hidden = between[mine[:, None], cells[:, :, None], mine[None, :], cells[:, None, :]]
        alone = every[mine, cells]
        surely = (alone - hidden.sum(axis=2) >= least).all(axis=1)
        surely_not = (alone - hidden.max(axis=2) < least).any(axis=1)
        return surely, surely_not
