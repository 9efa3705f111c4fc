"""The camera: where things appear in the image, and which way is left.

The camera looks at the origin with z up. For a point at c_x to the right, c_y above and d ahead of the camera,
x = F c_x / d + 1/2 and y = F (w/h) c_y / d + 1/2 in units of the image (origin below left), F = 35/32; the published
pixel coordinates are round(x w) and round(h - y h).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pfungst.core import DataError
from pfungst.world.constants import CAMERA, DEFAULT_HEIGHT, DEFAULT_WIDTH, FOCAL, RELEASED_SIZE, Vector
from pfungst.world.scene import Floats, Scene


class Basis(NamedTuple):
    """The camera's axes: unit vectors, float64 (3,)."""

    right: Floats
    up: Floats
    forward: Floats


class CameraFit(NamedTuple):
    """A camera recovered from pixel coordinates."""

    position: Vector
    width: int
    height: int
    error: float
    """Largest distance in pixels between the scene's coordinates and those the camera gives."""


def camera_basis(camera: Sequence[float] = CAMERA) -> Basis:
    """The axes of a camera at `camera` (x, y, z) that looks at the origin, z up."""
    position = _position(camera)
    forward = -position / _length(position)
    right = np.cross(forward, (0.0, 0.0, 1.0))
    right /= _length(right)
    return Basis(right, np.cross(right, forward), forward)


def camera_directions(camera: Sequence[float] = CAMERA) -> dict[str, Vector]:
    """The camera's directions on the ground: its view and its left, projected onto the plane and normalised.

    Keys in the order of the published generator: behind, front, left, right, above, below.
    """
    basis = camera_basis(camera)
    ways = (
        ("behind", "front", _on_ground(basis.forward)),
        ("left", "right", _on_ground(-basis.right)),
        ("above", "below", (0.0, 0.0, 1.0)),
    )
    directions: dict[str, Vector] = {}
    for name, opposite, (x, y, z) in ways:
        directions |= {name: (x, y, z), opposite: (-x, -y, -z)}
    return directions


def pixel_coords(
    scene: Scene | Mapping[str, Any] | npt.ArrayLike,
    camera: Sequence[float] | None = None,
    width: int = DEFAULT_WIDTH,
    height: int = DEFAULT_HEIGHT,
) -> list[tuple[int, int, float]]:
    """Column, row and depth of every centre, as the published scenes list them.

    `scene` is a scene or coordinates (objects, 3). `camera` is a position; by default the scene's own, else the base
    camera. The depth is the distance along the view axis, in scene units.
    """
    if isinstance(scene, (Scene, Mapping)):
        scene = Scene.of(scene)
        camera = camera if camera is not None else scene.camera
        coords = scene.coords
    else:
        coords = np.asarray(scene, dtype=np.float64)
        if coords.ndim != 2 or coords.shape[1] != 3:
            raise DataError(f"The coordinates have the shape {coords.shape}; (objects, 3) is needed.")
    place = CAMERA if camera is None else camera
    x, y, depth = project(coords - np.asarray(place, dtype=np.float64), camera_basis(place), width, height)
    columns, rows = np.rint(x).astype(int).tolist(), np.rint(y).astype(int).tolist()
    return list(zip(columns, rows, depth.tolist(), strict=True))


def estimate_camera(scene: Scene | Mapping[str, Any], width: int | None = None, height: int | None = None) -> CameraFit:
    """The camera of a scene that lists pixel coordinates but not its camera, as the released ones.

    Gauss-Newton on columns, rows and depths from the base camera. Without `width` and `height` the two published sizes
    (480x320, 320x240) are tried and the better one kept. At least two objects are needed.
    """
    scene = Scene.of(scene)
    pixels = [one.pixel_coords for one in scene.objects if one.pixel_coords is not None]
    if len(pixels) < len(scene) or len(scene) < 2:
        raise DataError("A camera can be recovered only from two or more objects that all list pixel_coords.")
    seen = np.array(pixels, dtype=np.float64)
    sizes = [(width, height)] if width and height else [RELEASED_SIZE, (DEFAULT_WIDTH, DEFAULT_HEIGHT)]
    fits = []
    for size in sizes:
        fits.append(_fit(scene.coords, seen, *size))
        if fits[-1].error == 0.0:
            break
    return min(fits, key=lambda fit: fit.error)


def _position(camera: Sequence[float]) -> Floats:
    position = np.asarray(camera, dtype=np.float64)
    if position.shape != (3,) or not np.isfinite(position).all() or not position[:2].any():
        raise DataError(f"The camera is at {camera!r}; it must be three finite numbers, not straight above the origin.")
    return position


def _on_ground(vector: Floats) -> Vector:
    x, y = (vector[:2] / _length(vector[:2])).tolist()
    return (x, y, 0.0)


def project(from_camera: Floats, basis: Basis, width: int, height: int) -> tuple[Floats, Floats, Floats]:
    """Column, row and depth (...) of places (..., 3) relative to the camera."""
    depth = along(from_camera, basis.forward)
    x = FOCAL * along(from_camera, basis.right) / depth + 0.5
    y = FOCAL * (width / height) * along(from_camera, basis.up) / depth + 0.5
    return x * width, height - y * height, depth


def along(rows: Floats, vector: Floats) -> Floats:
    """Scalar products (...) of rows (..., 3) with a vector.

    Summed here, as in `_length`: every BLAS sums in an order of its own, and a scene must be the same on every machine.
    """
    x, y, z = vector.tolist()
    return np.asarray(rows[..., 0] * x + rows[..., 1] * y + rows[..., 2] * z)


def _length(vector: Floats) -> float:
    return math.sqrt(sum(x * x for x in vector.tolist()))


def _fit(coords: Floats, seen: Floats, width: int, height: int) -> CameraFit:
    # Depths are listed in single precision, pixels are rounded: weight each by how well it is known.
    weights = np.array([1.0, 1.0, 1e4])

    def misfit(camera: Floats) -> Floats:
        found = np.stack(project(coords - camera, camera_basis(camera.tolist()), width, height), axis=1)
        return np.asarray((found - seen) * weights).ravel()

    camera = np.array(CAMERA)
    for _ in range(12):
        error = misfit(camera)
        slope = np.stack([(misfit(camera + nudge) - error) / 1e-6 for nudge in 1e-6 * np.eye(3)], axis=1)
        step = np.linalg.lstsq(slope, error, rcond=None)[0]
        camera = camera - step
        if np.abs(step).max() < 1e-9:
            break
    x, y, z = camera.tolist()
    rounded = np.array(pixel_coords(coords, (x, y, z), width, height))
    return CameraFit((x, y, z), width, height, float(np.abs(rounded[:, :2] - seen[:, :2]).max()))
