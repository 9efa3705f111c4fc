"""Light that arrives: lamps with soft shadows, and the backdrop seen along a ray (numba).

`w` is the flat array of `world.lay_out`, `lists` who may throw a shadow on whom; lights and objects are named by where
they stand in `w`.
"""

from __future__ import annotations

import math

from pfungst.world.renderers.backdrop import (
    AIM,
    ARC,
    CELLS_ACROSS,
    CELLS_ALONG,
    EDGE_U,
    EDGE_V,
    INTENSITY,
    LIGHT_COLUMNS,
    LIGHTS,
    POSITION,
    REACH,
    STEP_ACROSS,
    STEP_ALONG,
)
from pfungst.world.renderers.geometry import HIDDEN, INF, OPEN, into, shadowing
from pfungst.world.renderers.jit import Vec, along, dot, inlined, jit, mix, sub, vec
from pfungst.world.renderers.look import (
    BACKDROP,
    BACKDROP_FRONT,
    BACKDROP_HALF_WIDTH,
    BACKDROP_HEIGHT,
    BACKDROP_RADIUS,
    BACKDROP_START,
    NEAR_CELLS,
    NEAR_HALF,
    SHADOW_RAYS,
)
from pfungst.world.renderers.pack import SPHERE, Floats, Ints
from pfungst.world.renderers.penumbra import stopped
from pfungst.world.renderers.world import BALL, COUNT, FAR, KIND, LAMPS, LISTS, NEAR, ROOM, SCALE, STRIDE, THINGS, X

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
