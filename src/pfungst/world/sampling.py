"""New scenes, drawn as the published generator draws them.

Between three and ten objects; attributes uniform; places by rejection (surface gap, margins, bounds). What an image
must show (visible pixels) is the renderer's business: pass its check as `accept`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from pfungst.core import DataError
from pfungst.world.constants import (
    CAMERA,
    CAMERA_JITTER,
    COLORS,
    DEFAULT_HEIGHT,
    DEFAULT_WIDTH,
    DIRECTIONS,
    LAMP_JITTER,
    LAMPS,
    MATERIALS,
    MAX_OBJECTS,
    MIN_OBJECTS,
    RADIUS,
    RELATIONS,
    SHAPES,
    SIZES,
    Vector,
)
from pfungst.world.legal import Rules, rules_of
from pfungst.world.scene import Scene, SceneObject, camera_directions, pixel_coords, relationships

_OBJECT_TRIES = 50
"""Draws for the place of one object before the scene is begun anew, as in the published generator."""
_WORDS = (SHAPES, SIZES, MATERIALS, COLORS)


def sample_scene(
    rng: np.random.Generator,
    n_objects: int | None = None,
    *,
    index: int = 0,
    split: str = "new",
    prefix: str = "CLEVR",
    min_objects: int = MIN_OBJECTS,
    max_objects: int = MAX_OBJECTS,
    preset: str | Rules = "clevr",
    camera_jitter: float = CAMERA_JITTER,
    lamp_jitter: float = LAMP_JITTER,
    directions: str = "camera",
    width: int = DEFAULT_WIDTH,
    height: int = DEFAULT_HEIGHT,
    accept: Callable[[Scene], bool] | None = None,
    max_tries: int = 10_000,
) -> Scene:
    """Draw a scene; the same generator state gives the same scene.

    `n_objects` fixes the number of objects, else it is uniform in `min_objects`..`max_objects`. Camera and lamps are
    displaced by up to their jitter on each axis. `directions` is `"camera"` (those of the displaced camera, as the
    generator computes them) or `"released"` (the base camera's, which every released scene carries whatever its
    camera). `accept` may turn a scene down, for example for want of visible pixels; objects and places are then drawn
    again, number of objects, camera and lamps stay. Raises DataError after `max_tries` attempts.

    The scene has the published keys, and `camera` (x, y, z), `lamps` (name -> x, y, z) and `image_size` [w, h], so
    that a renderer can draw it.
    """
    count = _count(rng, n_objects, min_objects, max_objects)
    if directions not in ("camera", "released"):
        raise DataError(f"The directions {directions!r} are unknown; there are camera and released.")
    camera = _jittered(rng, CAMERA, camera_jitter)
    lamps = {name: _jittered(rng, lamp.position, lamp_jitter) for name, lamp in LAMPS.items()}
    ways = camera_directions(camera) if directions == "camera" else dict(DIRECTIONS)
    rules = rules_of(preset)
    image = f"{prefix}_{split}_{index:06d}"
    extra: dict[str, Any] = {
        "split": split,
        "image_index": index,
        "image_filename": f"{image}.png",
        "camera": list(camera),
        "lamps": {name: list(place) for name, place in lamps.items()},
        "image_size": [width, height],
    }
    keys = ("split", "image_index", "image_filename", "objects", "directions", "relationships", *list(extra)[3:])
    for _ in range(max_tries):
        drawn = _objects(rng, count, ways, rules)
        if drawn is None:
            continue
        pixels = pixel_coords([one.coords for one in drawn], camera, width, height)
        objects = tuple(replace(one, pixel_coords=pixel) for one, pixel in zip(drawn, pixels, strict=True))
        bare = Scene(objects, ways, None, extra, keys)
        scene = replace(bare, relationships=relationships(bare))
        if accept is None or accept(scene):
            return scene
    raise DataError(
        f"No scene of {count} objects was found in {max_tries} tries; "
        "ask for fewer objects, a smaller gap or margin, or a less strict `accept`."
    )


def _count(rng: np.random.Generator, n_objects: int | None, least: int, most: int) -> int:
    if n_objects is None:
        if not 1 <= least <= most:
            raise DataError(
                f"Scenes of {least} to {most} objects cannot be drawn; give 1 <= min_objects <= max_objects."
            )
        return int(rng.integers(least, most + 1))
    if n_objects < 1:
        raise DataError(f"A scene of {n_objects} objects cannot be drawn; give at least 1.")
    return int(n_objects)


def _jittered(rng: np.random.Generator, place: Vector, jitter: float) -> Vector:
    x, y, z = (np.asarray(place) + rng.uniform(-jitter, jitter, 3)).tolist()
    return (x, y, z)


def _objects(
    rng: np.random.Generator, count: int, directions: Mapping[str, Vector], rules: Rules
) -> list[SceneObject] | None:
    """Objects at places that keep the rules, or None where one found no room."""
    ways = [directions[name][:2] for name in RELATIONS]
    taken: list[tuple[float, float, float]] = []
    drawn: list[SceneObject] = []
    for _ in range(count):
        # One call for everything an object may need: single draws cost a microsecond each.
        picks = rng.integers(0, [len(words) for words in _WORDS]).tolist()
        rotation = 360.0 * rng.random()
        tries = rng.uniform(-rules.bound, rules.bound, (_OBJECT_TRIES, 2)).tolist()
        shape, size, material, color = (words[pick] for words, pick in zip(_WORDS, picks, strict=True))
        radius = rules.reach(shape, size)
        place = _place(tries, radius, taken, ways, rules)
        if place is None:
            return None
        taken.append((*place, radius))
        drawn.append(SceneObject(shape, size, material, color, (*place, RADIUS[size]), rotation))
    return drawn


def _place(
    tries: list[list[float]],
    radius: float,
    taken: list[tuple[float, float, float]],
    ways: list[tuple[float, float]],
    rules: Rules,
) -> tuple[float, float] | None:
    for x, y in tries:
        for other_x, other_y, other_radius in taken:
            dx, dy = x - other_x, y - other_y
            if math.sqrt(dx * dx + dy * dy) - radius - other_radius < rules.gap:
                break
            if any(0.0 < dx * way_x + dy * way_y < rules.margin for way_x, way_y in ways):
                break
        else:
            return x, y
    return None
