"""Scenes in the published CLEVR format, and the camera that sees them.

A `Scene` is the published JSON dictionary, checked and frozen. Unknown keys, the order of keys and the spelling of
numbers survive a round trip, so that a file read and written again is the same file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isfinite
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from pfungst.core import DataError
from pfungst.world.constants import (
    ATTRIBUTES,
    CAMERA,
    DEFAULT_HEIGHT,
    DEFAULT_WIDTH,
    DIRECTIONS,
    FOCAL,
    MAX_ANSWERABLE,
    RELATION_THRESHOLD,
    RELATIONS,
    RELEASED_SIZE,
    Vector,
)

Floats: TypeAlias = npt.NDArray[np.float64]
Relationships: TypeAlias = dict[str, list[list[int]]]

LARGEST = 16384
"""Pixels a side of an image."""

_OBJECT_KEYS = ("color", "size", "rotation", "shape", "3d_coords", "material", "pixel_coords")
_OBJECT_FIELDS = frozenset(_OBJECT_KEYS)
_SCENE_FIELDS = frozenset({"objects", "directions", "relationships"})
_NUMBERS = frozenset({float, int, np.float64})
_INDICES = [frozenset(range(count)) for count in range(MAX_ANSWERABLE + 1)]
_VALUES = {attribute: frozenset(values) for attribute, values in ATTRIBUTES.items()}


@dataclass(frozen=True, slots=True)
class SceneObject:
    """One object of a scene."""

    shape: str
    size: str
    material: str
    color: str
    coords: Vector
    """Centre x, y, z in scene units; z is the radius for an object on the ground."""
    rotation: float | None = None
    """About the vertical. Drawn in 0..360 by the published generator and used by it as radians."""
    pixel_coords: tuple[int, int, float] | None = None
    """Column and row of the centre, and its depth along the view axis; None where the scene does not say."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Keys we do not know, kept as they are."""
    keys: tuple[str, ...] = field(default=_OBJECT_KEYS, repr=False, compare=False)
    """The order in which the keys stood in the file."""

    @classmethod
    def from_json(cls, record: Mapping[str, Any], where: str = "The scene", index: int = 0) -> SceneObject:
        """Read entry `index` of a scene's `objects`; `where` opens the sentence of an error."""
        where = f"{where}, object {index}"
        if not isinstance(record, Mapping):
            raise DataError(f"{where}: an object must be a dictionary, not {type(record).__name__}.")
        for attribute, known in _VALUES.items():
            value = record.get(attribute)
            if not isinstance(value, str) or value not in known:
                raise _bad_attribute(where, attribute, value)
        rotation = record.get("rotation")
        if rotation is not None and not _is_number(rotation):
            raise DataError(f"{where}: rotation must be a finite number, not {rotation!r}.")
        coords = _vector(record.get("3d_coords"), where, "3d_coords")
        pixels = None if record.get("pixel_coords") is None else _vector(record["pixel_coords"], where, "pixel_coords")
        extra: dict[str, Any] = {}
        if not _OBJECT_FIELDS.issuperset(record) or None in record.values():
            extra = _left_over(record, _OBJECT_FIELDS)
        return cls(
            record["shape"],
            record["size"],
            record["material"],
            record["color"],
            coords,
            rotation,
            cast("tuple[int, int, float] | None", pixels),
            extra,
            tuple(record),
        )

    def to_json(self) -> dict[str, Any]:
        """The published dictionary, keys in the order they were read in."""
        known = {
            "color": self.color,
            "size": self.size,
            "rotation": self.rotation,
            "shape": self.shape,
            "3d_coords": list(self.coords),
            "material": self.material,
            "pixel_coords": None if self.pixel_coords is None else list(self.pixel_coords),
        }
        return _in_order(self.keys, known, self.extra)


@dataclass(frozen=True)
class Scene:
    """A CLEVR scene graph.

    >>> scene = Scene.from_json(record)        # one entry of "scenes" in a published file
    >>> scene.to_json() == record
    True
    """

    objects: tuple[SceneObject, ...]
    directions: Mapping[str, Vector] = field(default_factory=lambda: DIRECTIONS)
    """Unit vectors by name; those of the release where the file has none."""
    relationships: Mapping[str, Sequence[Sequence[int]]] | None = None
    """As the file says, or None; `relationships(scene)` computes them."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """All other keys: split, image_index, image_filename, camera, lamps, ..."""
    keys: tuple[str, ...] = field(default=("objects", "relationships", "directions"), repr=False, compare=False)
    """The order in which the keys stood in the file."""

    @classmethod
    def from_json(cls, record: Mapping[str, Any], where: str = "") -> Scene:
        """Check and freeze a published scene dictionary.

        `where` (file and record) opens the sentence of an error; by default the scene's own image name does.
        Raises DataError for attributes CLEVR does not have, no object or more than 64, coordinates that are not finite,
        and directions or relationships that do not fit.
        """
        if not isinstance(record, Mapping):
            raise DataError(f"{where or 'The scene'}: a scene must be a dictionary, not {type(record).__name__}.")
        if not where:
            where = f"Scene {record['image_filename']}" if "image_filename" in record else "The scene"
        listed = record.get("objects")
        if not isinstance(listed, (list, tuple)):
            raise DataError(f"{where}: it has no list of objects.")
        count = len(listed)
        if not 1 <= count <= MAX_ANSWERABLE:
            raise DataError(f"{where}: it has {count} objects; scenes of 1 to {MAX_ANSWERABLE} objects are supported.")
        objects = tuple([SceneObject.from_json(one, where, i) for i, one in enumerate(listed)])
        given, size = record.get("directions"), record.get("image_size")
        if size is not None and not is_size(size):
            raise DataError(f"{where}: image_size must be a width and a height of 1 to {LARGEST} pixels, not {size!r}.")
        return cls(
            objects,
            DIRECTIONS if given is None else _directions(given, where),
            _relationships(record.get("relationships"), count, where),
            _left_over(record, _SCENE_FIELDS),
            tuple(record),
        )

    @classmethod
    def of(cls, scene: Scene | Mapping[str, Any]) -> Scene:
        """The scene itself, or the scene a published dictionary describes."""
        return scene if isinstance(scene, Scene) else cls.from_json(scene)

    def to_json(self) -> dict[str, Any]:
        """The published dictionary, keys in the order they were read in."""
        relations = self.relationships
        known = {
            "objects": [one.to_json() for one in self.objects],
            "directions": {name: list(vector) for name, vector in self.directions.items()},
            "relationships": None
            if relations is None
            else {name: [list(row) for row in rows] for name, rows in relations.items()},
        }
        return _in_order(self.keys, known, self.extra)

    def __len__(self) -> int:
        return len(self.objects)

    @cached_property
    def coords(self) -> Floats:
        """Centres, float64 (objects, 3), read-only."""
        coords = np.array([one.coords for one in self.objects], dtype=np.float64)
        coords.flags.writeable = False
        return coords

    @property
    def positions(self) -> Floats:
        """Centres on the ground, float64 (objects, 2), read-only."""
        return self.coords[:, :2]

    @cached_property
    def columns(self) -> dict[str, list[str]]:
        """Attributes by name, each a list with one word an object."""
        return {name: [getattr(one, name) for one in self.objects] for name in ATTRIBUTES}

    @property
    def camera(self) -> Vector | None:
        """Where the camera stood, if the scene says (sampled scenes do, released ones do not)."""
        camera = self.extra.get("camera")
        return None if camera is None else cast(Vector, _vector(camera, "The scene", "camera"))

    def moved(self, positions: npt.ArrayLike) -> Scene:
        """The same objects elsewhere on the ground, with relationships computed anew.

        `positions` (objects, 2). Pixel coordinates are recomputed where the camera is known, else left out. The camera,
        lamps and all other keys stay.
        """
        from pfungst.world.scene import pixel_coords

        where = check_positions(positions, len(self), layouts=False)
        coords: list[Vector] = [
            (float(x), float(y), one.coords[2]) for (x, y), one in zip(where.tolist(), self.objects, strict=True)
        ]
        camera = self.camera
        pixels: Sequence[tuple[int, int, float] | None] = [None] * len(self)
        if camera is not None:
            pixels = pixel_coords(coords, camera, *(self.extra.get("image_size") or ()))
        objects = tuple(
            replace(one, coords=place, pixel_coords=pixel)
            for one, place, pixel in zip(self.objects, coords, pixels, strict=True)
        )
        bare = replace(self, objects=objects, relationships=None)
        return replace(bare, relationships=relationships(bare))


def relationships(scene: Scene | Mapping[str, Any]) -> Relationships:
    """Who is left, right, behind and in front of whom, from the coordinates.

    `result[relation][i]` lists, in ascending order, the objects j with dot(c_j - c_i, direction) > 0.2. Computed in
    float64, term by term in the published order, because released scenes come within 2e-6 of the threshold. The order
    of relations is that of the scene's directions.
    """
    scene = Scene.of(scene)
    coords = scene.coords
    delta = coords[None, :, :] - coords[:, None, :]
    result: Relationships = {}
    for name, (x, y, z) in scene.directions.items():
        if name not in RELATIONS:
            continue
        # A matrix product may fuse or reorder the terms; this is the sum the published generator forms.
        dots = (delta[:, :, 0] * x + delta[:, :, 1] * y) + delta[:, :, 2] * z
        result[name] = [[j for j, yes in enumerate(row) if yes] for row in (dots > RELATION_THRESHOLD).tolist()]
    return result


def check_positions(positions: npt.ArrayLike, objects: int, layouts: bool = True) -> Floats:
    """Positions as C-ordered float64 (layouts, objects, 2), or (objects, 2) without `layouts`; DataError if not."""
    try:
        array = np.ascontiguousarray(positions, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"The positions cannot be read as an array of numbers: {error}.") from error
    if array.ndim != 2 + layouts or array.shape[-2:] != (objects, 2):
        wanted = f"(layouts, {objects}, 2)" if layouts else f"({objects}, 2)"
        raise DataError(f"The positions have the shape {array.shape}; this scene needs {wanted}.")
    # A sum is finite only if every term is: one quick pass in the good case.
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(array.sum())
    if not isfinite(total) and not np.isfinite(array).all():
        first = np.argwhere(~np.isfinite(array))[0]
        place = f"layout {first[0]}, object {first[1]}" if layouts else f"object {first[0]}"
        raise DataError(f"The positions are not finite at {place}; give every object an x and a y.")
    return array


def _left_over(record: Mapping[str, Any], fields: frozenset[str]) -> dict[str, Any]:
    # A known key that says null stays among the others: it must come back as null, not vanish.
    return {key: value for key, value in record.items() if key not in fields or value is None}


def _in_order(keys: tuple[str, ...], known: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    result = {}
    for key in keys:
        if key not in known:
            result[key] = deepcopy(extra[key])
        elif known[key] is not None or key in extra:
            result[key] = known[key]
    for key, value in known.items():
        # Relationships computed for a scene that was read without any belong to what is written.
        if value is not None and key not in result and key != "directions":
            result[key] = value
    for key, value in extra.items():
        if key not in result:
            result[key] = deepcopy(value)
    return result


def is_size(value: object) -> bool:
    """Whether this is the width and height of an image."""
    two = isinstance(value, (list, tuple)) and len(value) == 2
    return two and all(_is_number(one) and 1 <= one <= LARGEST for one in cast("Sequence[Any]", value))


def _is_number(value: object) -> bool:
    try:
        return type(value) in _NUMBERS and isfinite(cast(float, value))
    except OverflowError:  # a whole number too large for a float
        return False


def _vector(value: object, where: str, name: str) -> tuple[Any, Any, Any]:
    if not isinstance(value, (list, tuple)) or len(value) != 3:
        raise DataError(f"{where}: {name} must be three numbers, not {value!r}.")
    if not (_is_number(value[0]) and _is_number(value[1]) and _is_number(value[2])):
        raise DataError(f"{where}: {name} is {list(value)!r}; all three must be finite numbers.")
    return value[0], value[1], value[2]


def _bad_attribute(where: str, attribute: str, value: object) -> DataError:
    known = ", ".join(ATTRIBUTES[attribute])
    if value is None:
        return DataError(f"{where}: it has no {attribute}; give it one of {known}.")
    return DataError(f"{where}: {attribute} {value!r} is unknown; CLEVR has {known}.")


def _directions(given: object, where: str) -> Mapping[str, Vector]:
    if not isinstance(given, Mapping):
        raise DataError(f"{where}: directions must be a dictionary of vectors, not {type(given).__name__}.")
    missing = [name for name in RELATIONS if name not in given]
    if missing:
        raise DataError(f"{where}: directions lack {', '.join(missing)}.")
    return {name: _vector(one, where, f"direction {name}") for name, one in given.items()}


def _are_indices(row: Sequence[object], count: int) -> bool:
    try:
        return _INDICES[count].issuperset(row)
    except TypeError:  # a list among them, which no set can hold
        return False


def _relationships(given: object, count: int, where: str) -> Mapping[str, Sequence[Sequence[int]]] | None:
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise DataError(f"{where}: relationships must be a dictionary of lists, not {type(given).__name__}.")
    for name, rows in given.items():
        if not isinstance(rows, (list, tuple)) or len(rows) != count:
            raise DataError(f"{where}: relationships {name!r} must list {count} objects' neighbours, one list each.")
        for i, row in enumerate(rows):
            if not isinstance(row, (list, tuple)) or not _are_indices(row, count):
                raise DataError(f"{where}: relationships {name!r} of object {i} name an object that does not exist.")
    return cast("Mapping[str, Sequence[Sequence[int]]]", given)


# --- the camera: where things appear in the image, and which way is left --------------------------------------------
#
# The camera looks at the origin with z up. For a point at c_x to the right, c_y above and d ahead of the camera,
# x = F c_x / d + 1/2 and y = F (w/h) c_y / d + 1/2 in units of the image (origin below left), F = 35/32; the published
# pixel coordinates are round(x w) and round(h - y h).


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
