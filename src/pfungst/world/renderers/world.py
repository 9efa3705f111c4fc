"""A scene with its light as one flat array: what the kernels pass around, since one array is the cheapest argument.

The backdrop is a plane that curves up behind the objects. The light it throws on itself is solved once as a radiosity
problem on a coarse grid of patches: B = (I - a F)^-1 a E, with albedo a, direct irradiance E and form factors F. The
surface is concave, so every patch sees every other one. Objects are left out; they cover little of it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from pfungst.world.constants import LAMPS as BASE_LAMPS
from pfungst.world.constants import MAX_ANSWERABLE
from pfungst.world.renderers.look import (
    BACKDROP,
    BACKDROP_FRONT,
    BACKDROP_HALF_WIDTH,
    BACKDROP_HEIGHT,
    BACKDROP_RADIUS,
    BACKDROP_START,
    GROUND_ALBEDO,
    NEAR_CELLS,
    OUTER,
    SUN_ANGLE,
    SUN_DIRECTION,
    SUN_STRENGTH,
)
from pfungst.world.renderers.raycast import Floats, Ints, Packed

CELLS_ALONG, CELLS_ACROSS = 26, 24
"""Patches along the profile (front to top) and across it."""
ARC = BACKDROP_RADIUS * np.pi / 2
PROFILE = BACKDROP_FRONT + BACKDROP_START + ARC + max(BACKDROP_HEIGHT - BACKDROP_RADIUS, 0.0)
"""Length of the profile from the front edge to the top."""
STEP_ALONG, STEP_ACROSS = PROFILE / CELLS_ALONG, 2 * BACKDROP_HALF_WIDTH / CELLS_ACROSS

SUN_DISTANCE = 1000.0

_LOCK = threading.Lock()

POSITION, AIM, INTENSITY, EDGE_U, EDGE_V = 0, 3, 6, 9, 12
"""First columns of a light's position, direction, intensity (per colour), and half edges; then its reach and 1/area."""
REACH, PER_AREA = 15, 16
LIGHTS, LIGHT_COLUMNS = 4, 17


def lights(lamps: Floats) -> Floats:
    """The four lights (..., 4, 17) of lamps at positions (..., 3, 3): key, fill, back, sun.

    All are squares. The sun is one too, a thousand units away. Irradiance is intensity * cos * cos / distance^2, with a
    quarter of the lamp's watts as intensity. A lamp that is moved keeps the direction it had in its base position.
    """
    rows = np.broadcast_to(_base_lights(), (*lamps.shape[:-2], LIGHTS, LIGHT_COLUMNS)).copy()
    rows[..., : len(BASE_LAMPS), POSITION : POSITION + 3] = lamps
    return rows


@lru_cache(maxsize=1)
def _base_lights() -> Floats:
    rows = np.zeros((LIGHTS, LIGHT_COLUMNS))
    for row, lamp in zip(rows, BASE_LAMPS.values()):
        position = np.array(lamp.position)
        towards = -position / np.linalg.norm(position)
        _light(row, position, towards, lamp.watts / 4 * np.array(lamp.rgb), lamp.size / 2)
    sun = np.array(SUN_DIRECTION) / np.linalg.norm(SUN_DIRECTION)
    # A square as large as the sun's disc.
    half = SUN_DISTANCE * np.tan(SUN_ANGLE / 2) * np.sqrt(np.pi) / 2
    _light(rows[-1], SUN_DISTANCE * sun, -sun, np.full(3, SUN_STRENGTH * SUN_DISTANCE**2), half)
    return rows


def _light(row: Floats, position: Floats, towards: Floats, intensity: Floats, half: float) -> None:
    across = np.cross(towards, (0.0, 0.0, 1.0))
    across /= np.linalg.norm(across)
    row[POSITION : POSITION + 3], row[AIM : AIM + 3], row[INTENSITY : INTENSITY + 3] = position, towards, intensity
    row[EDGE_U : EDGE_U + 3], row[EDGE_V : EDGE_V + 3] = half * across, half * np.cross(across, towards)
    row[REACH], row[PER_AREA] = half * np.sqrt(2), 1 / (4 * half * half)


def backdrop_light(lamps: Floats, color: Sequence[float] = (GROUND_ALBEDO,) * 3) -> Floats:
    """What every patch sends out and receives (CELLS_ALONG, CELLS_ACROSS, 6): radiance, then indirect irradiance."""
    points, normals, _ = patches()
    direct = np.zeros_like(points)
    for row in lights(lamps):
        away = row[POSITION : POSITION + 3] - points
        square = np.einsum("pi,pi->p", away, away)
        away /= np.sqrt(square)[:, None]
        back = np.einsum("pi,i->p", away, -row[AIM : AIM + 3])
        facing = np.maximum(np.einsum("pi,pi->p", away, normals), 0) * np.maximum(back, 0) / square
        direct += facing[:, None] * row[INTENSITY : INTENSITY + 3]
    # Not a matrix product of a library: its threads would spin beside ours, and its sums differ between machines.
    radiosity = np.empty_like(direct)
    for albedo in dict.fromkeys(color):
        own = [at for at, value in enumerate(color) if value == albedo]
        radiosity[:, own] = np.einsum("pq,cq->pc", solved(albedo), np.ascontiguousarray(albedo * direct.T[own]))
    indirect = radiosity / np.array(color) - direct
    return np.concatenate([radiosity / np.pi, indirect], axis=1).reshape(CELLS_ALONG, CELLS_ACROSS, 6)


def patches() -> tuple[Floats, Floats, Floats]:
    """Centres (patches, 3), normals, and the form factors F of the patches."""
    with _LOCK:
        return _patches()


def solved(albedo: float) -> Floats:
    """The matrix (I - a F)^-1 of the patches; 3 MB each."""
    # Threads that ask at once wait for the first: each inverting the matrix for itself took them minutes.
    with _LOCK:
        return _solved(albedo)


@lru_cache(maxsize=1)
def _patches() -> tuple[Floats, Floats, Floats]:
    along = (np.arange(CELLS_ALONG) + 0.5) * STEP_ALONG - BACKDROP_FRONT
    across = (np.arange(CELLS_ACROSS) + 0.5) * STEP_ACROSS - BACKDROP_HALF_WIDTH
    angle = np.clip((along - BACKDROP_START) / BACKDROP_RADIUS, 0, np.pi / 2)
    ahead = np.minimum(along, BACKDROP_START) + BACKDROP_RADIUS * np.sin(angle)
    height = BACKDROP_RADIUS * (1 - np.cos(angle)) + np.maximum(along - BACKDROP_START - ARC, 0)
    forward, side = np.array([*BACKDROP, 0.0]), np.array([-BACKDROP[1], BACKDROP[0], 0.0])
    up = np.array([0.0, 0.0, 1.0])
    profile = ahead[:, None] * forward + height[:, None] * up
    points = (profile[:, None, :] + across[None, :, None] * side).reshape(-1, 3)
    normals = np.repeat(np.cos(angle)[:, None] * up - np.sin(angle)[:, None] * forward, CELLS_ACROSS, axis=0)
    apart = points[None] - points[:, None]
    square = (apart**2).sum(-1)
    np.fill_diagonal(square, 1.0)
    here, there = np.einsum("ijk,ik->ij", apart, normals), -np.einsum("ijk,jk->ij", apart, normals)
    area = STEP_ALONG * STEP_ACROSS
    # The disc formula keeps the form factor of close neighbours finite.
    factors = np.maximum(here, 0) * np.maximum(there, 0) * area / (square * (np.pi * square + area))
    return points, normals, factors


@lru_cache(maxsize=24)
def _solved(albedo: float) -> Floats:
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped,unused-ignore]

    factors = _patches()[2]
    # Where many processes start at once, threads of this library would wait for one another for seconds.
    with threadpool_limits(1, "blas"):
        return np.asarray(np.linalg.inv(np.eye(len(factors)) - albedo * factors), dtype=np.float64)


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
