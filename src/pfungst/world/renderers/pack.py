"""Scenes as arrays: what every renderer reads, checked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import cos, hypot, isfinite, sin, sqrt
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pfungst.core import DataError
from pfungst.world.constants import CAMERA, CAMERA_JITTER, COLOR_RGB, LAMP_JITTER, LAMPS, RADIUS
from pfungst.world.renderers.look import GROUND_ALBEDO
from pfungst.world.scene import Scene, SceneObject

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

SPHERE, CUBE, CYLINDER = 0, 1, 2
_KINDS = {"sphere": SPHERE, "cube": CUBE, "cylinder": CYLINDER}

X, Y, Z, R, COS, SIN, RED, GREEN, BLUE, METAL = range(10)
"""Columns of `Packed.objects`."""

MAX_PIXELS = 1 << 26
MOST_ALBEDO = 0.95
"""Of a backdrop: one that sends back all its light would be infinitely bright."""

_LINEAR = {name: tuple(value / 255.0 for value in rgb) for name, rgb in COLOR_RGB.items()}
_BASE_LAMPS = np.array([lamp.position for lamp in LAMPS.values()])
_BASE_LAMPS.flags.writeable = False


PUBLISHED_LOOK = np.array([GROUND_ALBEDO, GROUND_ALBEDO, GROUND_ALBEDO, 1.0])
PUBLISHED_LOOK.flags.writeable = False


@dataclass(frozen=True, slots=True)
class Packed:
    """One scene, ready to draw."""

    kinds: Ints
    """(objects,): SPHERE, CUBE or CYLINDER."""
    objects: Floats
    """(objects, 10): centre x, y, z, radius, cosine and sine of the rotation, linear red, green, blue, 1 for metal."""
    view: Floats
    """(4, 3): camera position, right, up, forward."""
    lamps: Floats
    """(3, 3): positions of key, fill and back."""
    look: Floats = field(default_factory=lambda: PUBLISHED_LOOK)
    """(4,): linear red, green, blue of the backdrop, and how many times as rough surfaces are as published."""

    def moved(self, positions: Floats) -> Packed:
        """The same with its objects elsewhere on the ground, (objects, 2)."""
        objects = self.objects.copy()
        objects[:, :2] = positions
        return replace(self, objects=objects)

    @property
    def camera(self) -> Floats:
        camera: Floats = self.view[0]
        return camera


def pack(scene: Scene | Mapping[str, Any], camera: Sequence[float] | None = None, seed: int | None = None) -> Packed:
    """Check a scene and lay it out in arrays.

    The camera is the one given, else the scene's own, else the base camera; `seed` moves the base camera and the lamps
    as the published generator does (0.5 and 1.0 at most per axis), unless the scene or the caller names them.
    """
    scene = Scene.of(scene)
    lamps = _BASE_LAMPS
    place: Sequence[float] | Floats | None = camera if camera is not None else scene.camera
    if seed is not None:
        rng = np.random.default_rng(seed)
        shift = rng.uniform(-CAMERA_JITTER, CAMERA_JITTER, 3)
        lamps = lamps + rng.uniform(-LAMP_JITTER, LAMP_JITTER, (3, 3))
        place = np.array(CAMERA) + shift if place is None else place
    if scene.extra.get("lamps") is not None:
        lamps = _lamps(scene.extra["lamps"])
    kinds = np.array([_KINDS[one.shape] for one in scene.objects], dtype=np.int64)
    objects = np.array([_row(one) for one in scene.objects])
    view = _view(CAMERA if place is None else place)
    _check_camera(view[0], objects)
    return Packed(kinds, objects, view, lamps, _look(scene))


def _row(one: SceneObject) -> tuple[float, ...]:
    turn = one.rotation or 0.0
    return (*one.coords, RADIUS[one.size], cos(turn), sin(turn), *_LINEAR[one.color], float(one.material == "metal"))


def _view(camera: Sequence[float] | Floats) -> Floats:
    try:
        x, y, z = (float(value) for value in camera)
    except (TypeError, ValueError) as error:
        raise DataError(f"The camera is {camera!r}; it must be three numbers x, y, z.") from error
    level = hypot(x, y)
    if not (isfinite(x) and isfinite(y) and isfinite(z)) or level == 0.0:
        raise DataError(
            f"The camera is at {[x, y, z]}; it must be three finite numbers, not straight above the origin."
        )
    # As pfungst.world.scene.camera_basis, without the cost of small arrays: this runs once an image.
    far = sqrt(x * x + y * y + z * z)
    right, forward = (-y / level, x / level, 0.0), (-x / far, -y / far, -z / far)
    up = (right[1] * forward[2], -right[0] * forward[2], right[0] * forward[1] - right[1] * forward[0])
    return np.array([(x, y, z), right, up, forward])


def check_size(width: int, height: int) -> tuple[int, int]:
    """Width and height of an image as integers, or a sentence."""
    for name, value in (("width", width), ("height", height)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise DataError(f"The {name} of the image is {value!r}; it must be a whole number of at least 1.")
    if width * height > MAX_PIXELS:
        raise DataError(f"An image of {width}x{height} is too large; at most {MAX_PIXELS} pixels can be rendered.")
    return int(width), int(height)


def _lamps(given: object) -> Floats:
    try:
        lamps = np.array([given[name] for name in LAMPS], dtype=np.float64)  # type: ignore[index]
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"The scene's lamps must name a position each for {', '.join(LAMPS)}.") from error
    if lamps.shape != (3, 3) or not np.isfinite(lamps).all() or (lamps[:, 2] <= 0).any():
        raise DataError("The scene's lamps must be three finite numbers each, above the ground.")
    return lamps


def _look(scene: Scene) -> Floats:
    """What a scene says of its looks: `backdrop`, a colour, and `roughness`, times the published one."""
    backdrop, rough = scene.extra.get("backdrop"), scene.extra.get("roughness")
    if backdrop is None and rough is None:
        return PUBLISHED_LOOK
    try:
        given = (*([GROUND_ALBEDO] * 3 if backdrop is None else backdrop), 1.0 if rough is None else rough)
        look = np.array([float(value) for value in given])
    except (TypeError, ValueError) as error:
        raise DataError("The scene's backdrop must be three numbers, and its roughness one.") from error
    if look.shape != (4,) or not ((look[:3] > 0) & (look[:3] <= MOST_ALBEDO)).all() or not 0.1 <= look[3] <= 4:
        raise DataError(
            f"The scene's backdrop must be three numbers above 0 and up to {MOST_ALBEDO}, and its roughness one from "
            "0.1 to 4."
        )
    return look


def _check_camera(position: Floats, objects: Floats) -> None:
    if position[2] <= 0.0:
        raise DataError(f"The camera is at {position.tolist()}, below the ground; give it a height above 0.")
    # Half diagonal of the box every shape fits into: nothing is drawn from inside it.
    apart = np.abs(objects[:, :3] - position)
    inside = (np.hypot(apart[:, 0], apart[:, 1]) <= np.sqrt(2.0) * objects[:, R]) & (apart[:, 2] <= objects[:, R])
    if inside.any():
        raise DataError(f"The camera is at {position.tolist()}, inside object {int(inside.argmax())}; move it away.")
