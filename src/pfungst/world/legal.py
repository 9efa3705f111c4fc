"""Which layouts a CLEVR scene may have: room between objects, plain relations, inside the bounds.

Three presets. `clevr` is the published generator; `paper` and `code` are the game's, as its paper says
(Measuring CLEVRness, appendix on image generation) and as its authors' code does. Visible pixels are the
renderer's to count; `Rules.min_pixels` says how many each preset asks for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pfungst.core import DataError
from pfungst.world.constants import BOUND, MARGIN, MIN_GAP, MIN_VISIBLE_PIXELS, RADIUS, RELATIONS
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
