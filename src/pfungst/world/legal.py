"""Which layouts a CLEVR scene may have: room between objects, plain relations, inside the bounds.

Three presets. `clevr` is the published generator; `paper` and `code` are the game's, as its paper says
(Measuring CLEVRness, appendix on image generation) and as its authors' code does. Visible pixels are the
renderer's to count; `Rules.min_pixels` says how many each preset asks for. `GridMasks` judges layouts as cell
indices, of places the objects of the game can be moved to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pfungst.core import DataError
from pfungst.world.constants import BOUND, GRID_BINS, MARGIN, MIN_GAP, MIN_VISIBLE_PIXELS, RADIUS, RELATIONS
from pfungst.world.scene import Floats, Scene, SceneObject, check_positions


@dataclass(frozen=True)
class Rules:
    """What a layout must keep to."""

    gap: float = MIN_GAP
    """Least distance - r_i - r_j of two objects on the ground."""
    radius: Mapping[str, float] = field(default_factory=lambda: RADIUS)
    """By size; zeros make `gap` a distance of centres."""
    cube_factor: float = 1.0
    """A cube's radius is its size's times this."""
    margin: float = MARGIN
    """Rejected where 0 < dot(c_i - c_j, direction) < margin for one of the four directions."""
    bound: float = BOUND
    """x and y in [-bound, bound]."""
    min_pixels: int = MIN_VISIBLE_PIXELS
    """Pixels every object must show at 320x240 (not checked here)."""

    def radii(self, objects: tuple[SceneObject, ...]) -> Floats:
        """Radius of every object, (objects,)."""
        return np.array([self.reach(one.shape, one.size) for one in objects], dtype=np.float64)

    def reach(self, shape: str, size: str) -> float:
        """Radius of one object."""
        return self.radius[size] * (self.cube_factor if shape == "cube" else 1.0)


PRESETS: Mapping[str, Rules] = {
    "clevr": Rules(),
    "paper": Rules(radius={"large": 0.0, "small": 0.0}),
    "code": Rules(radius={"large": 0.7, "small": 0.3}, cube_factor=1.0 / math.sqrt(2.0), min_pixels=100),
}
"""`clevr`: surfaces 0.25 apart, 200 pixels. `paper`: centres 0.25 apart, 200 pixels. `code`: surfaces 0.25 apart with
radii 0.7 and 0.3 (cubes / sqrt 2), 100 pixels. Margin 0.4 and bounds [-3, 3] in all."""


class Violation(NamedTuple):
    """One broken rule."""

    rule: str
    """`bounds`, `gap` or `margin`."""
    objects: tuple[int, ...]
    """The object, or the two, that break it."""
    amount: float
    """What was measured: the coordinate, the gap, or the distance along the direction, in scene units."""
    limit: float
    direction: str = ""

    def __str__(self) -> str:
        if self.rule == "bounds":
            return f"object {self.objects[0]} is at {self.amount:g}, outside [-{self.limit:g}, {self.limit:g}]"
        pair = f"objects {self.objects[0]} and {self.objects[1]}"
        if self.rule == "gap":
            return f"{pair} are {self.amount:g} apart, less than {self.limit:g}"
        return f"{pair} differ by {self.amount:g} to the {self.direction}, less than the margin of {self.limit:g}"


def rules_of(preset: str | Rules) -> Rules:
    """The rules a preset names; rules of one's own pass through."""
    if isinstance(preset, Rules):
        return preset
    if preset not in PRESETS:
        raise DataError(f"The legality preset {preset!r} is unknown; there are {', '.join(PRESETS)}.")
    return PRESETS[preset]


def is_legal(
    scene: Scene | Mapping[str, Any], positions: npt.ArrayLike | None = None, preset: str | Rules = "clevr"
) -> npt.NDArray[np.bool_]:
    """Which layouts keep the rules: surface gap, margins along the scene's directions, bounds.

    `positions` (layouts, objects, 2) gives a bool array (layouts,); (objects, 2) or nothing (the scene's own places)
    gives a single one, shape (). A layout is left at the first pair that breaks a rule; `why_illegal` names them all.
    """
    scene, rules = Scene.of(scene), rules_of(preset)
    given = scene.positions if positions is None else np.asarray(positions)
    single = given.ndim == 2
    places = check_positions(given[None] if single else given, len(scene))
    legal = np.empty(len(places), dtype=np.bool_)
    radii, ways = rules.radii(scene.objects), ground_ways(scene)
    _compiled()(places, radii, ways, rules.gap, rules.margin, rules.bound, legal)
    return legal.reshape(()) if single else legal


@cache
def _compiled() -> Callable[..., None]:
    """`_judge` as machine code; compiled when it is first needed, because loading numba takes a second."""
    import numba

    compiled: Callable[..., None] = numba.njit(cache=True, nogil=True)(_judge)
    return compiled


def _judge(
    positions: Floats, radii: Floats, ways: Floats, gap: float, margin: float, bound: float, out: npt.NDArray[np.bool_]
) -> None:
    # No fast-math: a distance must be the same number as in `why_illegal`.
    for x in range(len(positions)):
        good = True
        for i in range(len(radii)):
            px, py = positions[x, i, 0], positions[x, i, 1]
            good = abs(px) <= bound and abs(py) <= bound
            for j in range(i):
                dx, dy = px - positions[x, j, 0], py - positions[x, j, 1]
                for k in range(len(ways)):
                    along = dx * ways[k, 0] + dy * ways[k, 1]
                    good &= not (0.0 < along < margin)
                good &= math.sqrt(dx * dx + dy * dy) - radii[i] - radii[j] >= gap
                if not good:
                    break
            if not good:
                break
        out[x] = good


def why_illegal(
    scene: Scene | Mapping[str, Any], positions: npt.ArrayLike | None = None, preset: str | Rules = "clevr"
) -> list[Violation]:
    """Every rule one layout (objects, 2) breaks, each with a sentence (`str`); an empty list where it is legal."""
    scene, rules = Scene.of(scene), rules_of(preset)
    given = scene.positions if positions is None else positions
    places = check_positions(given, len(scene), layouts=False).tolist()
    radii, ways = rules.radii(scene.objects).tolist(), ground_ways(scene).tolist()
    found: list[Violation] = []
    for i, (x, y) in enumerate(places):
        worst = max(x, y, key=abs)
        if abs(worst) > rules.bound:
            found.append(Violation("bounds", (i,), worst, rules.bound))
        for j, (other_x, other_y) in enumerate(places[:i]):
            dx, dy = x - other_x, y - other_y
            gap = math.sqrt(dx * dx + dy * dy) - radii[i] - radii[j]
            if gap < rules.gap:
                found.append(Violation("gap", (j, i), gap, rules.gap))
            for name, (way_x, way_y) in zip(RELATIONS, ways, strict=True):
                along = dx * way_x + dy * way_y
                if 0.0 < along < rules.margin:
                    found.append(Violation("margin", (j, i), along, rules.margin, name))
    return found


def ground_ways(scene: Scene) -> Floats:
    """The four directions on the ground, (4, 2), in the order of RELATIONS."""
    return np.array([scene.directions[name][:2] for name in RELATIONS], dtype=np.float64)


# --- layouts on a grid ------------------------------------------------------------------------------------------------

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
