"""A second opinion on fooled scenes: is the answer still the same, is the scene fair, can everything be seen?

Written apart from the game on purpose. It shares no code with the enforcers, the engine or the renderer: it reads the
published dictionaries, runs programs with its own interpreter, measures distances itself and counts visible pixels with
its own sharp-edged ray caster. Its pixel counts differ a little from the renderer's, whose cubes and cylinders have
rounded edges; `PIXEL_TOLERANCE` allows for that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

PIXEL_TOLERANCE = 0.12
"""Share by which the verifier's own pixel count may fall short of what the rules ask for."""
SIDES = ("left", "right", "behind", "front")
BASE_CAMERA = (7.481132, -6.50764, 5.343665)
HALF_SIZE = {"large": 0.7, "small": 0.35}
FOCAL = 35 / 32
CUBE_EDGE = 0.96
"""Half edge of the sharp cube that covers as many pixels as the published one, whose edges are rounded."""


@dataclass(frozen=True)
class Limits:
    """What a fair scene keeps to, spelled out once more."""

    gap: float = 0.25
    radius: Mapping[str, float] | None = None
    """By size; None for the sizes objects are drawn with."""
    cube_factor: float = 1.0
    margin: float = 0.4
    bound: float = 3.0
    pixels: int = 200
    width: int = 320
    height: int = 240
    objects: tuple[int, int] = (3, 10)


@dataclass(frozen=True)
class Verdict:
    """What the second opinion found; `problems` is empty where the scene is fair."""

    problems: tuple[str, ...]
    answer: str | None
    """The program's answer on the moved scene."""
    pixels: tuple[int, ...]
    """Visible pixels of every object, by the verifier's own count."""

    @property
    def fair(self) -> bool:
        return not self.problems


def verify(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    program: Sequence[Mapping[str, Any]],
    truth: str,
    limits: Limits | None = None,
) -> Verdict:
    """Check a manipulated scene against the original one, both as published dictionaries.

    truth: the right answer as text. `limits=None` checks the rules of CLEVR's generator.
    """
    limits = limits or Limits()
    problems = _same_objects(before, after)
    first, second = run_program(before, program), run_program(after, program)
    if first is None or first != truth:
        problems.append(f"the answer on the original scene is {first}, not {truth}")
    if second != truth:
        problems.append(f"the answer on the moved scene is {second}, not {truth}")
    problems += _layout(after, limits)
    pixels = count_pixels(after, limits.width, limits.height)
    least = math.floor((1 - PIXEL_TOLERANCE) * limits.pixels)
    problems += [f"object {i} shows {n} pixels, less than {limits.pixels}" for i, n in enumerate(pixels) if n < least]
    return Verdict(tuple(problems), second, tuple(pixels))


def _same_objects(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    old, new = before["objects"], after["objects"]
    if len(old) != len(new):
        return [f"there are {len(new)} objects instead of {len(old)}"]
    found = []
    for i, (a, b) in enumerate(zip(old, new, strict=True)):
        for key in ("shape", "size", "material", "color"):
            if a[key] != b[key]:
                found.append(f"object {i} changed its {key} from {a[key]} to {b[key]}")
        if abs(a["3d_coords"][2] - b["3d_coords"][2]) > 1e-9:
            found.append(f"object {i} left the ground")
    return found


def _layout(scene: Mapping[str, Any], limits: Limits) -> list[str]:
    things = scene["objects"]
    least, most = limits.objects
    found = [] if least <= len(things) <= most else [f"there are {len(things)} objects, not {least} to {most}"]
    for i, one in enumerate(things):
        x, y, _ = one["3d_coords"]
        if max(abs(x), abs(y)) > limits.bound + 1e-9:
            found.append(f"object {i} is at ({x:g}, {y:g}), out of bounds")
        for j in range(i):
            other = things[j]["3d_coords"]
            dx, dy = x - other[0], y - other[1]
            room = math.hypot(dx, dy) - _reach(one, limits) - _reach(things[j], limits)
            if room < limits.gap - 1e-9:
                found.append(f"objects {j} and {i} are {room:.3f} apart, less than {limits.gap:g}")
            for side in SIDES:
                way = scene["directions"][side]
                along = dx * way[0] + dy * way[1]
                if 1e-9 < along < limits.margin - 1e-9:
                    found.append(f"objects {j} and {i} are within the margin to the {side} ({along:.3f})")
    return found


def _reach(one: Mapping[str, Any], limits: Limits) -> float:
    radius = float((limits.radius or HALF_SIZE)[one["size"]])
    return radius * (limits.cube_factor if one["shape"] == "cube" else 1.0)


# --- programs: a recursive interpreter over names of objects ----------------------------------------------------------


def run_program(scene: Mapping[str, Any], program: Sequence[Mapping[str, Any]]) -> str | None:
    """The answer as text (yes, no, 3, rubber), None where a `unique` does not find exactly one object."""
    try:
        said = _value(scene, program, len(program) - 1)
    except LookupError:
        return None
    if isinstance(said, bool):
        return "yes" if said else "no"
    return str(said)


def _value(scene: Mapping[str, Any], program: Sequence[Mapping[str, Any]], node: int) -> Any:
    step, things = program[node], scene["objects"]
    kind, _, attribute = (step.get("function") or step["type"]).partition("_")
    told = list(step.get("value_inputs") or step.get("side_inputs") or [])
    a, b = [*(_value(scene, program, i) for i in step["inputs"]), None, None][:2]
    results: Mapping[str, Callable[[], Any]] = {
        "scene": lambda: set(range(len(things))),
        "filter": lambda: {i for i in a if things[i][attribute] == told[0]},
        "same": lambda: {i for i, one in enumerate(things) if i != a and one[attribute] == things[a][attribute]},
        "query": lambda: things[a][attribute],
        "unique": lambda: _only(a),
        "relate": lambda: _beside(scene, a, told[0]),
        "count": lambda: len(a),
        "exist": lambda: bool(a),
        "union": lambda: a | b,
        "intersect": lambda: a & b,
        "less": lambda: a < b,
        "greater": lambda: a > b,
        "equal": lambda: a == b,
    }
    return results[kind]()


def _only(found: set[int]) -> int:
    if len(found) != 1:
        raise LookupError
    return next(iter(found))


def _beside(scene: Mapping[str, Any], me: int, side: str) -> set[int]:
    way, mine = scene["directions"][side], scene["objects"][me]["3d_coords"]
    found = set()
    for i, one in enumerate(scene["objects"]):
        dx, dy, dz = (p - q for p, q in zip(one["3d_coords"], mine, strict=True))
        if dx * way[0] + dy * way[1] + dz * way[2] > 0.2:
            found.add(i)
    return found


# --- pixels: rays against spheres, boxes and cylinders with sharp edges -----------------------------------------------

_Array = npt.NDArray[np.float64]


def count_pixels(scene: Mapping[str, Any], width: int = 320, height: int = 240) -> list[int]:
    """Pixels whose centre shows each object, the camera being the scene's own or the base camera."""
    eye = np.array(scene.get("camera") or BASE_CAMERA, dtype=np.float64)
    ahead = -eye / np.linalg.norm(eye)
    right = np.cross(ahead, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    up = np.cross(right, ahead)
    u = ((np.arange(width) + 0.5) / width - 0.5) / FOCAL
    v = (0.5 - (np.arange(height) + 0.5) / height) * (height / width) / FOCAL
    nearest, owner = np.full((height, width), np.inf), np.full((height, width), -1)
    for i, one in enumerate(scene["objects"]):
        rows, columns = _window(one, eye, right, up, ahead, width, height)
        rays = ahead + u[None, columns, None] * right + v[rows, None, None] * up
        distance = _strike(one, eye, rays.reshape(-1, 3)).reshape(rays.shape[:2])
        closer = distance < nearest[rows, columns]
        nearest[rows, columns][closer] = distance[closer]
        owner[rows, columns][closer] = i
    counts: list[int] = np.bincount(owner.ravel() + 1, minlength=len(scene["objects"]) + 1)[1:].tolist()
    return counts


def _window(
    one: Mapping[str, Any], eye: _Array, right: _Array, up: _Array, ahead: _Array, width: int, height: int
) -> tuple[slice, slice]:
    """Rows and columns that a ball around the object can cover: no need to look elsewhere."""
    reach = 1.8 * HALF_SIZE[one["size"]]
    there = np.array(one["3d_coords"], dtype=np.float64) - eye
    depth = float(there @ ahead)
    if depth <= 2 * reach:
        return slice(0, height), slice(0, width)
    half = FOCAL * width * reach / (depth - reach)
    column = (FOCAL * float(there @ right) / depth + 0.5) * width
    row = height / 2 - FOCAL * width * float(there @ up) / depth
    # A ball off the axis is seen as an ellipse, a little longer than wide.
    half *= 1.3
    top, left = max(0, int(row - half)), max(0, int(column - half))
    return slice(top, max(top, min(height, int(row + half) + 2))), slice(
        left, max(left, min(width, int(column + half) + 2))
    )


def _strike(one: Mapping[str, Any], eye: _Array, rays: _Array) -> _Array:
    """Distance along every ray to the object, infinite where it misses."""
    size = HALF_SIZE[one["size"]]
    start = (eye - np.array(one["3d_coords"], dtype=np.float64)) / size
    turn = float(one.get("rotation") or 0.0)
    cos, sin = math.cos(turn), math.sin(turn)
    frame = np.array([[cos, sin, 0.0], [-sin, cos, 0.0], [0.0, 0.0, 1.0]])
    o, d = frame @ start, rays @ frame.T / size
    with np.errstate(divide="ignore", invalid="ignore"):
        if one["shape"] == "sphere":
            return _round(o, d, 3)[0]
        edge = CUBE_EDGE if one["shape"] == "cube" else 1.0
        low, high = (-edge - o) / d, (edge - o) / d
        enter, leave = np.minimum(low, high), np.maximum(low, high)
        if one["shape"] == "cube":
            first, last = enter.max(axis=1), leave.min(axis=1)
        else:
            side_in, side_out = _round(o, d, 2)
            first, last = np.maximum(side_in, enter[:, 2]), np.minimum(side_out, leave[:, 2])
    return np.where((first < last) & (first > 0), first, np.inf)


def _round(o: _Array, d: _Array, axes: int) -> tuple[_Array, _Array]:
    """Where rays enter and leave the unit ball (3 axes) or the unit cylinder (2)."""
    o, d = o[:axes], d[:, :axes]
    a, b, c = (d * d).sum(1), d @ o, float(o @ o) - 1.0
    inside = b * b - a * c
    root = np.sqrt(np.maximum(inside, 0.0))
    hit = inside > 0
    return np.where(hit, (-b - root) / a, np.inf), np.where(hit, (-b + root) / a, -np.inf)
