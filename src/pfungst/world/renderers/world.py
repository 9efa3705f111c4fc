"""A scene with its light as one flat array: what the kernels pass around, since one array is the cheapest argument."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from pfungst.world.constants import MAX_ANSWERABLE
from pfungst.world.renderers.backdrop import CELLS_ACROSS, CELLS_ALONG, LIGHT_COLUMNS, LIGHTS, backdrop_light, lights
from pfungst.world.renderers.look import NEAR_CELLS, OUTER
from pfungst.world.renderers.pack import Floats, Ints, Packed

COUNT = 0
"""Where the number of objects stands."""
CAMERA = 1
"""Position, right, up, forward."""
LAMPS = CAMERA + 12
GROUND = LAMPS + LIGHTS * LIGHT_COLUMNS
"""Colour of the backdrop."""
ROUGHNESS = GROUND + 3
"""How many times as rough surfaces are as published."""
FAR = ROUGHNESS + 1
"""Light of the whole backdrop, coarse: radiance and indirect irradiance of every patch."""
NEAR = FAR + CELLS_ALONG * CELLS_ACROSS * 6
"""Radiance of the ground around the objects, with their shadows."""
THINGS = NEAR + NEAR_CELLS * NEAR_CELLS * 3
"""The objects, `STRIDE` numbers each."""
KIND, X, Y, Z, R, COS, SIN, RED, METAL, GLOW = 0, 1, 2, 3, 4, 5, 6, 7, 10, 11
"""Places within an object: shape, centre, radius, turn, colour, 1 for metal, radiosity of the sides (3 x 3)."""
BALL, SCALE, COS_SCALED, SIN_SCALED = 20, 21, 22, 23
"""What follows from these: radius of the ball around the object, 1 / radius, and the turn times that."""
STRIDE = 24

ROOM = MAX_ANSWERABLE + 1
"""Entries of a list of objects: how many there are, then where they stand in the array."""
LISTS = LIGHTS + 1
"""Lists of an object or a piece of ground: who may hide each light from it, and, the last, who bounces light on it."""
_OUTER = np.array(OUTER)


def lay_out(packed: Packed, lit: bool = True) -> tuple[Floats, Ints]:
    """The flat array, and space for lists, flat (objects + 1, LISTS, ROOM), of who changes whose light.

    There are lists for every object, and the last are for the piece of ground at hand. Without `lit` the lights are
    left out.
    """
    count = len(packed.kinds)
    w = np.empty(THINGS + count * STRIDE)
    w[COUNT] = count
    w[CAMERA:LAMPS] = packed.view.ravel()
    if lit:
        w[LAMPS:GROUND] = lights(packed.lamps).ravel()
        w[GROUND:FAR] = packed.look
        w[FAR:NEAR] = far_light(*far_key(packed))
    things = w[THINGS:].reshape(count, STRIDE)
    describe(packed, things)
    return w, np.empty((count + 1) * LISTS * ROOM, dtype=np.int64)


def describe(packed: Packed, things: Floats) -> None:
    """Fill rows (objects, STRIDE), but for what the objects send out."""
    things[:, KIND] = packed.kinds
    things[:, X:GLOW] = packed.objects
    things[:, BALL] = _OUTER[packed.kinds] * things[:, R]
    things[:, SCALE] = scale = 1.0 / things[:, R]
    things[:, COS_SCALED], things[:, SIN_SCALED] = things[:, COS] * scale, things[:, SIN] * scale


def far_key(packed: Packed) -> tuple[bytes, tuple[float, ...]]:
    """What the light of the backdrop depends on: its lamps and its colour."""
    return packed.lamps.tobytes(), tuple(packed.look[:3].tolist())


@lru_cache(maxsize=256)
def far_light(lamps: bytes, color: tuple[float, ...]) -> Floats:
    """The light of a backdrop of this colour under lamps at these positions, float64 (3, 3); 30 kB each."""
    return backdrop_light(np.frombuffer(lamps).reshape(3, 3), color).ravel()
