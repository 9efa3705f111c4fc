"""Layouts on a grid: the places the objects of the game can be moved to, as cell indices."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pfungst.core import DataError
from pfungst.world.constants import BOUND, GRID_BINS
from pfungst.world.legal import Rules, ground_ways, is_legal, rules_of
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
    """Layouts of one scene whose objects stand on given places.

    `grid` is a number of bins an axis, `"paper"` (7x7 over the scene) or `"code"` (7x7 steps about every object's own
    place), or places of one's own: (cells, 2) for all objects, or (objects, cells, 2) one set an object. `preset` names
    the legality rules. Layouts are cell indices (layouts, objects).

    >>> masks = GridMasks(scene, "paper")
    >>> cells = rng.integers(0, masks.cells, (1_000_000, len(scene)), dtype=np.uint8)
    >>> legal = cells[masks.legal(cells)]
    >>> answers = answer_moved(program, scene, masks.positions(legal))
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

    def legal(self, cells: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Which layouts keep the rules, (layouts,): `is_legal` on `positions(cells)`."""
        return is_legal(self.scene, self.positions(cells), self.rules)

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
