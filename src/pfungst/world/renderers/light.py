"""Light that arrives: lamps with soft shadows, and the backdrop seen along a ray (numba).

`w` is the flat array of `world.lay_out`, `lists` who may throw a shadow on whom; lights and objects are named by where
they stand in `w`.

The rays of one lamp lead to the points of a lattice. Most of them pass a shape well outside, or well inside; that is
told for all without a branch, as bits, so that the compiler takes several rays in one step. Few are left to be
followed.
"""

from __future__ import annotations

import math

import numpy as np

from pfungst.world.renderers.geometry import HIDDEN, INF, OPEN, hit, into, shadowing
from pfungst.world.renderers.jit import Vec, along, dot, inlined, jit, mix, sub, vec
from pfungst.world.renderers.look import (
    BACKDROP,
    BACKDROP_FRONT,
    BACKDROP_HALF_WIDTH,
    BACKDROP_HEIGHT,
    BACKDROP_RADIUS,
    BACKDROP_START,
    CUBE_INNER,
    CYLINDER_INNER,
    NEAR_CELLS,
    NEAR_HALF,
    SHADOW_RAYS,
    SPHERE_RADIUS,
    lattice,
)
from pfungst.world.renderers.raycast import CUBE, SPHERE, Floats, Ints
from pfungst.world.renderers.world import (
    AIM,
    ARC,
    BALL,
    CELLS_ACROSS,
    CELLS_ALONG,
    COUNT,
    EDGE_U,
    EDGE_V,
    FAR,
    INTENSITY,
    KIND,
    LAMPS,
    LIGHT_COLUMNS,
    LIGHTS,
    LISTS,
    NEAR,
    POSITION,
    REACH,
    ROOM,
    SCALE,
    STEP_ACROSS,
    STEP_ALONG,
    STRIDE,
    THINGS,
    X,
)

LATTICE_U, LATTICE_V = np.ascontiguousarray(lattice(SHADOW_RAYS).T)
ALL = (1 << SHADOW_RAYS) - 1


@inlined
def ones(bits: int) -> int:
    """How many of the lowest sixteen bits are set."""
    bits = (bits & 0x5555) + (bits >> 1 & 0x5555)
    bits = (bits & 0x3333) + (bits >> 2 & 0x3333)
    bits = (bits & 0x0F0F) + (bits >> 4 & 0x0F0F)
    return (bits & 0x00FF) + (bits >> 8)


@inlined
def stopped_by_sphere(o: Vec, d: Vec, u: Vec, v: Vec) -> int:
    """Bits of the rays o + t (d + a u + b v), 0 < t < 1, that meet the unit shape; (a, b) are the lattice's points."""
    c = dot(o, o) - SPHERE_RADIUS * SPHERE_RADIUS
    bits = 0
    # From inside nothing is met.
    if c <= 0.0:
        return bits
    for j in range(SHADOW_RAYS):
        x = d[0] + LATTICE_U[j] * u[0] + LATTICE_V[j] * v[0]
        y = d[1] + LATTICE_U[j] * u[1] + LATTICE_V[j] * v[1]
        z = d[2] + LATTICE_U[j] * u[2] + LATTICE_V[j] * v[2]
        a = x * x + y * y + z * z
        b = o[0] * x + o[1] * y + o[2] * z
        # It comes before the lamp where the middle of the chord does, or where the lamp is inside.
        meets = (b * b > a * c) & (b < 0.0) & ((a + b > 0.0) | (a + 2.0 * b + c < 0.0))
        bits |= int(meets) << j
    return bits


@inlined
def sorted_by_cube(o: Vec, d: Vec, u: Vec, v: Vec) -> tuple[int, int]:
    """Bits of the rays that surely meet the unit cube, and of those that surely do not or surely do.

    A segment misses a box where their shadows on some axis are apart: the box's axes, and these across the segment.
    """
    sure, met = 0, 0
    for j in range(SHADOW_RAYS):
        x = d[0] + LATTICE_U[j] * u[0] + LATTICE_V[j] * v[0]
        y = d[1] + LATTICE_U[j] * u[1] + LATTICE_V[j] * v[1]
        z = d[2] + LATTICE_U[j] * u[2] + LATTICE_V[j] * v[2]
        ax, ay, az = abs(x), abs(y), abs(z)
        # Twice the middle of the segment: its end points lie at half of (middle -+ the ray).
        mx, my, mz = abs(2.0 * o[0] + x), abs(2.0 * o[1] + y), abs(2.0 * o[2] + z)
        cx, cy, cz = abs(o[1] * z - o[2] * y), abs(o[2] * x - o[0] * z), abs(o[0] * y - o[1] * x)
        sx, sy, sz = ay + az, az + ax, ax + ay
        apart = (mx > ax + 2.0) | (my > ay + 2.0) | (mz > az + 2.0) | (cx > sx) | (cy > sy) | (cz > sz)
        near = (mx < ax + 2.0 * CUBE_INNER) & (my < ay + 2.0 * CUBE_INNER) & (mz < az + 2.0 * CUBE_INNER)
        inside = near & (cx < CUBE_INNER * sx) & (cy < CUBE_INNER * sy) & (cz < CUBE_INNER * sz)
        met |= int(inside) << j
        sure |= int(inside | apart) << j
    return met, sure


@inlined
def sorted_by_cylinder(o: Vec, d: Vec, u: Vec, v: Vec) -> tuple[int, int]:
    """The same for the cylinder: a ray is inside a round and a flat slab between two places of its own each."""
    sure, met = 0, 0
    square = o[0] * o[0] + o[1] * o[1]
    for j in range(SHADOW_RAYS):
        x = d[0] + LATTICE_U[j] * u[0] + LATTICE_V[j] * v[0]
        y = d[1] + LATTICE_U[j] * u[1] + LATTICE_V[j] * v[1]
        z = d[2] + LATTICE_U[j] * u[2] + LATTICE_V[j] * v[2]
        a = x * x + y * y + 1e-300
        b = o[0] * x + o[1] * y
        outer, inner = b * b - a * (square - 1.0), b * b - a * (square - CYLINDER_INNER * CYLINDER_INNER)
        over = 1.0 / (abs(z) + 1e-300)
        # All places are multiplied by a.
        middle, half = -o[2] * math.copysign(over, z) * a, over * a
        wide, tight = math.sqrt(max(outer, 0.0)), math.sqrt(max(inner, 0.0))
        enter, leave = max(-b - wide, max(middle - half, 0.0)), min(-b + wide, min(middle + half, a))
        half = CYLINDER_INNER * half
        first, last = max(-b - tight, max(middle - half, 0.0)), min(-b + tight, min(middle + half, a))
        apart = (outer <= 0.0) | (enter > leave)
        inside = (inner > 0.0) & (first < last)
        met |= int(inside) << j
        sure |= int(inside | apart) << j
    return met, sure


@jit
def stopped(kind: int, o: Vec, d: Vec, u: Vec, v: Vec) -> int:
    """How many of the rays to the lattice's points meet a unit shape on their way."""
    met, sure = 0, 0
    if kind == SPHERE:
        met, sure = stopped_by_sphere(o, d, u, v), ALL
    # From within the box around it a ray may start inside the shape, and meets nothing then: all are followed.
    elif max(abs(o[0]), max(abs(o[1]), abs(o[2]))) > 1.0:
        if kind == CUBE:
            met, sure = sorted_by_cube(o, d, u, v)
        else:
            met, sure = sorted_by_cylinder(o, d, u, v)
    count = ones(met)
    if sure != ALL:
        for j in range(SHADOW_RAYS):
            if sure >> j & 1 == 0 and hit(kind, o, mix(1.0, d, LATTICE_U[j], u, LATTICE_V[j], v)) < 1.0:
                count += 1
    return count


BX, BY = BACKDROP
NEAR_STEP = 2 * NEAR_HALF / NEAR_CELLS
PER_NEAR, PER_ALONG, PER_ACROSS = 1.0 / NEAR_STEP, 1.0 / STEP_ALONG, 1.0 / STEP_ACROSS
"""Cells per length: a product is quicker than a quotient."""
DARK = (0.0, 0.0, 0.0)


@jit
def list_shadowers(w: Floats, lists: Ints, centre: Vec, radius: float, skip: int, who: int) -> None:
    """Note in the lists of `who` the objects, but for `skip`, that may stand between a light and a point of a ball.

    A list begins with how many they are, or with -1 where one of them hides the light from all of the ball.
    """
    for i in range(LIGHTS):
        lamp = LAMPS + LIGHT_COLUMNS * i
        start = (who * LISTS + i) * ROOM
        count, hidden = 0, False
        way = sub(vec(w, lamp + POSITION), centre)
        square = dot(way, way)
        for number in range(int(w[COUNT])):
            if number == skip:
                continue
            k = THINGS + STRIDE * number
            c = sub(vec(w, k + X), centre)
            # Nearest point of the way to the light. The ball widens the way, and so does the lamp's own size.
            ahead = min(max(dot(c, way) / square, 0.0), 1.0)
            apart = along(c, -ahead, way)
            outer = w[k + BALL]
            wide = outer + radius + w[lamp + REACH] * ahead
            if dot(apart, apart) >= wide * wide:
                continue
            spread = radius + w[lamp + REACH] * (ahead + outer / math.sqrt(square))
            kind = int(w[k + KIND])
            how = shadowing(kind, into(w, k, (-c[0], -c[1], -c[2])), into(w, k, way), spread * w[k + SCALE])
            # A ball around a sphere says as much as the sphere; of a sphere beside the ball it says more.
            if how == OPEN and kind != SPHERE:
                continue
            hidden = hidden or how == HIDDEN
            count += 1
            lists[start + count] = k
        lists[start] = -1 if hidden else count


@inlined
def open_part(w: Floats, k: int, lamp: int, p: Vec, way: Vec, near: float) -> float:
    """Part of a light that one object leaves visible from p; `way` leads to the light, and is 1 / `near` long."""
    c = sub(vec(w, k + X), p)
    ahead = dot(c, way) * (near * near)
    outer = w[k + BALL]
    far = ahead + outer * near
    if far <= 0.0 or ahead >= 1.0:
        return 1.0
    apart = along(c, -ahead, way)
    spread = w[lamp + REACH] * far
    if dot(apart, apart) >= (outer + spread) * (outer + spread):
        return 1.0
    kind = int(w[k + KIND])
    o, d = into(w, k, (-c[0], -c[1], -c[2])), into(w, k, way)
    how = shadowing(kind, o, d, spread * w[k + SCALE])
    if how == OPEN:
        return 1.0
    if how == HIDDEN:
        return 0.0
    u, v = into(w, k, vec(w, lamp + EDGE_U)), into(w, k, vec(w, lamp + EDGE_V))
    return 1.0 - stopped(kind, o, d, u, v) / SHADOW_RAYS


@jit
def openness(w: Floats, lists: Ints, who: int, i: int, p: Vec) -> float:
    """Part of light i that is seen from p: the product over the objects that may stand in between."""
    start = (who * LISTS + i) * ROOM
    if lists[start] <= 0:
        return 1.0 if lists[start] == 0 else 0.0
    lamp = LAMPS + LIGHT_COLUMNS * i
    way = sub(vec(w, lamp + POSITION), p)
    near = 1.0 / math.sqrt(dot(way, way))
    part = 1.0
    for j in range(lists[start]):
        part *= open_part(w, lists[start + j + 1], lamp, p, way, near)
        if part == 0.0:
            break
    return part


@inlined
def falloff(w: Floats, lamp: int, p: Vec, n: Vec) -> float:
    """cos * cos / distance^2 of an unhidden light: times its intensity this is irradiance."""
    way = sub(vec(w, lamp + POSITION), p)
    front, back = dot(n, way), -dot(vec(w, lamp + AIM), way)
    if front <= 0.0 or back <= 0.0:
        return 0.0
    square = dot(way, way)
    return front * back / (square * square)


@inlined
def direct(w: Floats, lists: Ints, who: int, p: Vec, n: Vec) -> Vec:
    """Irradiance from the lights; `who` names the list of objects that may throw a shadow, -1 none."""
    light = DARK
    for i in range(LIGHTS):
        lamp = LAMPS + LIGHT_COLUMNS * i
        amount = falloff(w, lamp, p, n)
        if amount > 0.0:
            # Asked here, since most lists are empty and a call costs more than the rest.
            if who >= 0 and lists[(who * LISTS + i) * ROOM] != 0:
                amount *= openness(w, lists, who, i, p)
            light = along(light, amount, vec(w, lamp + INTENSITY))
    return light


@inlined
def hit_backdrop(p: Vec, d: Vec) -> tuple[float, float]:
    """Where a ray meets the backdrop: ray parameter (infinity for the dark beyond it), position along the profile."""
    s, ds = p[0] * BX + p[1] * BY, d[0] * BX + d[1] * BY
    if d[2] < 0.0:
        t = -p[2] / d[2]
        place = s + t * ds
        if place <= BACKDROP_START:
            return (t if place >= -BACKDROP_FRONT else INF), place
    if ds <= 0.0:
        return INF, 0.0
    x, z = s - BACKDROP_START, p[2] - BACKDROP_RADIUS
    a, b, c = ds * ds + d[2] * d[2], x * ds + z * d[2], x * x + z * z - BACKDROP_RADIUS * BACKDROP_RADIUS
    root = b * b - a * c
    if root > 0.0:
        t = (-b + math.sqrt(root)) / a
        ahead, below = x + t * ds, -(z + t * d[2])
        if ahead >= 0.0 and below >= 0.0:
            return t, BACKDROP_START + BACKDROP_RADIUS * math.atan2(ahead, below)
    t = (BACKDROP_RADIUS - x) / ds
    above = z + t * d[2]
    if above < 0.0 or above > BACKDROP_HEIGHT - BACKDROP_RADIUS:
        return INF, 0.0
    return t, BACKDROP_START + ARC + above


@inlined
def bilinear(w: Floats, table: int, rows: int, columns: int, channels: int, u: float, v: float) -> Vec:
    """Three channels of a table (rows, columns, channels) that begins at `table`, at a place between its cells."""
    u, v = min(max(u, 0.0), rows - 1.000001), min(max(v, 0.0), columns - 1.000001)
    i, j = int(u), int(v)
    u, v = u - i, v - j
    low = table + (i * columns + j) * channels
    high = low + columns * channels
    first = mix((1.0 - u) * (1.0 - v), vec(w, low), (1.0 - u) * v, vec(w, low + channels), u * (1.0 - v), vec(w, high))
    return along(first, u * v, vec(w, high + channels))


@inlined
def far_light(w: Floats, first: int, place: float, across: float) -> Vec:
    """Light of the backdrop's patches: radiance for `first` 0, indirect irradiance for 3."""
    u = (place + BACKDROP_FRONT) * PER_ALONG - 0.5
    v = (across + BACKDROP_HALF_WIDTH) * PER_ACROSS - 0.5
    return bilinear(w, FAR + first, CELLS_ALONG, CELLS_ACROSS, 6, u, v)


@inlined
def surroundings(w: Floats, p: Vec, d: Vec) -> Vec:
    """Radiance of the backdrop along a ray, without objects in between: near the objects with their shadows."""
    t, place = hit_backdrop(p, d)
    if t == INF:
        return DARK
    x, y = p[0] + t * d[0], p[1] + t * d[1]
    if place <= BACKDROP_START and abs(x) < NEAR_HALF and abs(y) < NEAR_HALF:
        u, v = (x + NEAR_HALF) * PER_NEAR - 0.5, (y + NEAR_HALF) * PER_NEAR - 0.5
        return bilinear(w, NEAR, NEAR_CELLS, NEAR_CELLS, 3, u, v)
    across = BX * y - BY * x
    if abs(across) > BACKDROP_HALF_WIDTH:
        return DARK
    return far_light(w, 0, place, across)
