"""Layouts on a grid, as cell indices: every pair of cells is compared once, and then only looked up.

The game's action space is small: 49 places an object. Whether one cell is left of another, and whether two objects may
stand on two cells, goes into tables; answering and judging a layout is then a few look-ups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from pfungst.core import DataError
from pfungst.world.constants import BOUND, GRID_BINS, RELATION_THRESHOLD, RELATIONS
from pfungst.world.legal import Rules, ground_ways, rules_of
from pfungst.world.moved import AnswerCodes, MovedProgram
from pfungst.world.programs import Program
from pfungst.world.scene import Floats, Scene

STEP = 0.3
"""Step of the game's displacements in its authors' code: -0.9 .. 0.9 on each axis."""


def grid_places(bins: int = GRID_BINS, bound: float = BOUND) -> Floats:
    """Centres of a bins x bins grid over [-bound, bound], (bins * bins, 2): cell = bins * (x index) + (y index).

    The action space of the game in its paper (section 4: each axis in N = 7 bins).
    """
    if bins < 1:
        raise DataError(f"A grid of {bins} bins a side has no cells; give at least 1.")
    axis = np.linspace(-bound, bound, bins) if bins > 1 else np.zeros(1)
    return np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)


def step_places(scene: Scene | Mapping[str, Any], step: float = STEP, bins: int = GRID_BINS) -> Floats:
    """Places of every object displaced by whole steps, clipped to the bounds, (objects, bins * bins, 2).

    The action space of the game in its authors' code: -0.9 .. 0.9 in steps of 0.3 on each axis.
    """
    offsets = (np.arange(bins) - bins // 2) * step
    grid = np.stack(np.meshgrid(offsets, offsets, indexing="ij"), axis=-1).reshape(-1, 2)
    return np.asarray(np.clip(Scene.of(scene).positions[:, None, :] + grid[None, :, :], -BOUND, BOUND))


class GridMasks:
    """Tables for layouts of one scene whose objects stand on given places.

    `grid` is a number of bins an axis, `"paper"` (7x7 over the scene) or `"code"` (7x7 steps about every object's own
    place), or places of one's own: (cells, 2) for all objects, or (objects, cells, 2) one set an object. `preset` names
    the legality rules. Layouts are cell indices (layouts, objects), quickest as uint8.

    >>> masks = GridMasks(scene, "paper")
    >>> cells = rng.integers(0, masks.cells, (1_000_000, len(scene)), dtype=np.uint8)
    >>> legal = cells[masks.legal(cells)]
    >>> answers = masks.answers(program, legal)
    """

    def __init__(
        self,
        scene: Scene | Mapping[str, Any],
        grid: int | str | npt.ArrayLike = "paper",
        preset: str | Rules = "clevr",
    ) -> None:
        self.scene = Scene.of(scene)
        self.rules = rules_of(preset)
        self.places = _places(self.scene, grid)
        """(1 or objects, cells, 2)"""

    @property
    def cells(self) -> int:
        """Number of cells an object can stand on."""
        return int(self.places.shape[1])

    def positions(self, cells: npt.ArrayLike) -> Floats:
        """The positions (layouts, objects, 2) that cell indices stand for."""
        index = self._check(cells)
        own = np.arange(len(self.scene)) if len(self.places) > 1 else 0
        placed: Floats = self.places[own, index]
        return placed

    def codes(self, program: MovedProgram | Program | Sequence[Mapping[str, Any]], cells: npt.ArrayLike) -> AnswerCodes:
        """Answers as integer codes and a table, see `answer_codes`; identical to those on `positions(cells)`."""
        from pfungst.world.kernels import answer_cells

        moved = program if isinstance(program, MovedProgram) else MovedProgram.of(program, self.scene)
        if moved.scene is not self.scene and moved.scene != self.scene:
            raise DataError("The program was made ready for another scene than the one of these grid masks.")
        index, lowered = self._check(cells), moved.lowered
        if lowered.invalid or not len(lowered.ops):
            return moved.constant(len(index))
        if self.cells > 64:
            return moved.codes(self.positions(index))
        sides, stride = self._sides
        codes, masks = moved.buffers(len(index))
        answer_cells(*lowered.program, index, sides, stride, codes, masks)
        return moved.finish(codes, masks)

    def answers(
        self, program: MovedProgram | Program | Sequence[Mapping[str, Any]], cells: npt.ArrayLike
    ) -> npt.NDArray[np.object_]:
        """Answers (layouts,), None where invalid; identical to `answer_moved` on `positions(cells)`."""
        return self.codes(program, cells).decode()

    def legal(self, cells: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Which layouts keep the rules, (layouts,); identical to `is_legal` on `positions(cells)`."""
        from pfungst.world.kernels import legal_cells

        index = self._check(cells)
        legal = np.empty(len(index), dtype=np.bool_)
        legal_cells(index, self.rooms.reshape(-1).view(np.uint8), self.cells**2, self.cells, legal)
        return legal

    def free_cells(self, cells: npt.ArrayLike, mover: int) -> npt.NDArray[np.bool_]:
        """Where object `mover` may stand while all others stay, (layouts, cells)."""
        from pfungst.world.kernels import free_cells

        if not 0 <= mover < len(self.scene):
            raise DataError(f"Object {mover} is not in this scene of {len(self.scene)} objects.")
        index = self._check(cells)
        free = np.empty((len(index), self.cells), dtype=np.bool_)
        free_cells(index, mover, self.rooms.reshape(-1).view(np.uint8), self.cells**2, self.cells, free)
        return free

    def _check(self, cells: npt.ArrayLike) -> npt.NDArray[np.unsignedinteger]:
        index = np.asarray(cells)
        objects = len(self.scene)
        if index.ndim != 2 or index.shape[1] != objects or index.dtype.kind not in "iu":
            raise DataError(
                f"The cells are {index.dtype} of shape {index.shape}; integers (layouts, {objects}) are needed."
            )
        if index.size and not (index.min() >= 0 and index.max() < self.cells):
            raise DataError(f"The cells must lie in 0..{self.cells - 1}; {index.min()}..{index.max()} were given.")
        return np.ascontiguousarray(index, dtype=np.uint8 if self.cells <= 256 else np.uint32)

    def _apart(self, i: int, j: int) -> Floats:
        """(cells, cells, 2): from a cell of object i to a cell of object j."""
        shared = len(self.places) == 1
        mine, other = self.places[0 if shared else i], self.places[0 if shared else j]
        return np.asarray(other[None, :, :] - mine[:, None, :])

    @cached_property
    def _sides(self) -> tuple[npt.NDArray[np.uint64], int]:
        """For each direction and cell the cells on that side, as bits; flat over (pairs of objects,) cells.

        The second part is the step from one pair of objects to the next, 0 where all pairs are alike.
        """
        n, heights = len(self.scene), self.scene.coords[:, 2]
        ways = [self.scene.directions[name] for name in RELATIONS]
        alike = len(self.places) == 1 and all(way[2] == 0.0 for way in ways)
        bits = np.uint64(1) << np.arange(self.cells, dtype=np.uint64)
        sides = np.empty((4, 1 if alike else n * n, self.cells), dtype=np.uint64)
        for pair, (i, j) in enumerate([(0, 0)] if alike else product(range(n), repeat=2)):
            delta = self._apart(i, j)
            for k, (x, y, z) in enumerate(ways):
                dots = (delta[:, :, 0] * x + delta[:, :, 1] * y) + (heights[j] - heights[i]) * z
                sides[k, pair] = np.where(dots > RELATION_THRESHOLD, bits, np.uint64(0)).sum(axis=1)
        return sides.reshape(4, -1), 0 if alike else self.cells

    @cached_property
    def rooms(self) -> npt.NDArray[np.bool_]:
        """(objects, objects, cells, cells): whether object i on its cell a leaves object j its cell b.

        A pair (i, i) tells whether i may use a cell at all.
        """
        n, rules = len(self.scene), self.rules
        radii, ways = rules.radii(self.scene.objects), ground_ways(self.scene)
        table = np.empty((n, n, self.cells, self.cells), dtype=np.bool_)
        inside = np.broadcast_to((np.abs(self.places) <= rules.bound).all(axis=2), (n, self.cells))
        for j in range(n):
            table[j, j] = inside[j][:, None]
            for i in range(j):
                # The later object minus the earlier one, as the published generator placed them.
                dx, dy = np.moveaxis(self._apart(i, j), 2, 0)
                good = np.sqrt(dx * dx + dy * dy) - radii[j] - radii[i] >= rules.gap
                for x, y in ways:
                    along = dx * x + dy * y
                    good &= ~((along > 0.0) & (along < rules.margin))
                table[i, j], table[j, i] = good, good.T
        return table


def _places(scene: Scene, grid: int | str | npt.ArrayLike) -> Floats:
    if isinstance(grid, str):
        if grid not in ("paper", "code"):
            raise DataError(f"The grid {grid!r} is unknown; there are paper and code, or give your own places.")
        grid = step_places(scene) if grid == "code" else grid_places()
    elif isinstance(grid, (int, np.integer)):
        grid = grid_places(int(grid))
    places = np.array(grid, dtype=np.float64)
    if places.ndim == 2:
        places = places[None]
    if places.ndim != 3 or places.shape[0] not in (1, len(scene)) or places.shape[1] < 1 or places.shape[2] != 2:
        raise DataError(
            f"The grid's places have the shape {places.shape}; (cells, 2) or ({len(scene)}, cells, 2) is needed."
        )
    if not np.isfinite(places).all():
        raise DataError("The grid's places must be finite numbers.")
    return places
