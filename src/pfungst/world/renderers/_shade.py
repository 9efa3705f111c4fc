"""Light that leaves: ground, rubber and metal (numba). As in `_light`; n is a normal, d the ray from the eye."""

from __future__ import annotations

import math

import numpy as np

from pfungst.world.renderers._backdrop import (
    AIM,
    EDGE_U,
    EDGE_V,
    INTENSITY,
    LIGHT_COLUMNS,
    LIGHTS,
    PER_AREA,
    POSITION,
)
from pfungst.world.renderers._geometry import INF, bending, brushed, hit_object, normal, tangents
from pfungst.world.renderers._jit import Vec, along, cross, dot, jit, mix, scaled, sub, times, unit, vec
from pfungst.world.renderers._light import DARK, direct, far_light, openness, reach, surroundings
from pfungst.world.renderers._look import (
    BACKDROP,
    BACKDROP_RADIUS,
    BACKDROP_START,
    DIM,
    FAINT,
    FOOTPRINT,
    GLOSS_RAYS,
    GROUND_ALBEDO,
    METAL_ANISOTROPY,
    METAL_ROUGH,
    METAL_SHARP,
    NEIGHBOUR,
    RIM_IOR,
    RIM_ROUGH,
    RUBBER_BODY,
    SELF_SHADE,
    bounce_directions,
    disc,
)
from pfungst.world.renderers._pack import Floats, Ints
from pfungst.world.renderers._world import COUNT, GLOW, LAMPS, METAL, RED, STRIDE, THINGS, R, X, Y

BX, BY = BACKDROP
ROUGH_AROUND, ROUGH_ALONG = METAL_ROUGH * (1 - METAL_ANISOTROPY), METAL_ROUGH / (1 - METAL_ANISOTROPY)
BOUNCES = bounce_directions()
GLOSS = disc(GLOSS_RAYS)
SIDES = np.array([(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (-1.0, 0.0, 0.0), (0.0, -1.0, 0.0)])


@jit
def trace(w: Floats, skip: int, p: Vec, d: Vec) -> tuple[float, int]:
    """Nearest object along a ray of unit direction, -1 for none, and how far; `skip` is the object the ray leaves."""
    best, found = INF, -1
    for number in range(int(w[COUNT])):
        k = THINGS + STRIDE * number
        if k == skip:
            continue
        c = sub(vec(w, k + X), p)
        outer = reach(w, k)
        ahead = dot(c, d)
        if ahead < -outer or dot(c, c) - ahead * ahead > outer * outer:
            continue
        t = hit_object(w, k, p, d)
        if t < best:
            best, found = t, k
    return best, found


@jit
def note_glow(w: Floats, lists: Ints, k: int) -> None:
    """Note in an object the radiosity of its sides, per colour: the mean, and its lean towards x and towards y."""
    c = vec(w, k + X)
    # A side sees ground over half of its hemisphere, some of it in the object's own shadow.
    mean = scaled(SELF_SHADE * 0.5 * math.pi, far_light(w, 0, c[0] * BX + c[1] * BY, BX * c[1] - BY * c[0]))
    lean_x, lean_y = DARK, DARK
    for i in range(SIDES.shape[0]):
        n = (SIDES[i, 0], SIDES[i, 1], SIDES[i, 2])
        light = direct(w, lists, -1, along(c, w[k + R], n), n)
        mean = along(mean, 0.25, light)
        lean_x, lean_y = along(lean_x, 0.5 * n[0], light), along(lean_y, 0.5 * n[1], light)
    color = vec(w, k + RED)
    w[k + GLOW], w[k + GLOW + 1], w[k + GLOW + 2] = times(color, mean)
    w[k + GLOW + 3], w[k + GLOW + 4], w[k + GLOW + 5] = times(color, lean_x)
    w[k + GLOW + 6], w[k + GLOW + 7], w[k + GLOW + 8] = times(color, lean_y)


@jit
def side_glow(w: Floats, k: int, x: float, y: float) -> Vec:
    """Radiosity of the side of an object that faces the level direction (x, y), of any length."""
    flat = 1.0 / math.sqrt(x * x + y * y + 1e-12)
    lean = mix(1.0, vec(w, k + GLOW), x * flat, vec(w, k + GLOW + 3), y * flat, vec(w, k + GLOW + 6))
    return max(lean[0], 0.0), max(lean[1], 0.0), max(lean[2], 0.0)


@jit
def ground(w: Floats, lists: Ints, who: int, p: Vec, place: float) -> Vec:
    """Radiance of the backdrop at a point on it: lamps, its own other parts, and the sides of objects as balls."""
    n = (0.0, 0.0, 1.0)
    if place > BACKDROP_START:
        lean = (BACKDROP_START - p[0] * BX - p[1] * BY) / BACKDROP_RADIUS
        n = (lean * BX, lean * BY, max(1.0 - p[2] / BACKDROP_RADIUS, 0.0))
    light = along(direct(w, lists, who, p, n), 1.0, far_light(w, 3, place, BX * p[1] - BY * p[0]))
    if place <= BACKDROP_START:
        for number in range(int(w[COUNT])):
            k = THINGS + STRIDE * number
            c = sub(vec(w, k + X), p)
            square = dot(c, c)
            factor = w[k + R] * w[k + R] * c[2]
            if factor > 0.0 and factor * factor > FAINT * FAINT * square * square * square:
                # From right below one sees the underside, which is dark.
                level = math.sqrt(c[0] * c[0] + c[1] * c[1])
                light = along(light, factor * level / (square * square), side_glow(w, k, -c[0], -c[1]))
    return scaled(GROUND_ALBEDO / math.pi, light)


@jit
def seen(w: Floats, lists: Ints, skip: int, p: Vec, d: Vec) -> Vec:
    """Radiance along a ray that leaves an object: the backdrop, or a neighbour in simplified light."""
    t, k = trace(w, skip, p, d)
    n, color, weight = DARK, (1.0, 1.0, 1.0), 1.0
    if k >= 0:
        p, color = along(p, t, d), vec(w, k + RED)
        n = normal(w, k, p)
        if w[k + METAL] > 0.0:
            d = along(d, -2.0 * dot(d, n), n)
        else:
            # The ground it faces, as large as it stands in its view.
            d, weight = (n[0], n[1], n[2] - 1.0), 0.5 * (1.0 - n[2])
    light = scaled(weight, surroundings(w, p, d))
    if k >= 0 and w[k + METAL] == 0.0:
        light = along(light, 1.0 / math.pi, direct(w, lists, -1, p, n))
    return times(color, light)


@jit
def bounced(w: Floats, k: int, p: Vec, n: Vec) -> Vec:
    """Irradiance from the backdrop and from close neighbours, taken as balls."""
    light = DARK
    for i in range(BOUNCES.shape[0]):
        d = (BOUNCES[i, 0], BOUNCES[i, 1], BOUNCES[i, 2])
        weight = dot(d, n) * BOUNCES[i, 3]
        if weight <= 0.0:
            continue
        best, found = INF, -1
        for number in range(int(w[COUNT])):
            other = THINGS + STRIDE * number
            x, y = w[other + X] - w[k + X], w[other + Y] - w[k + Y]
            square = w[other + R] * w[other + R]
            if other == k or x * x + y * y > NEIGHBOUR * NEIGHBOUR * square:
                continue
            c = sub(vec(w, other + X), p)
            ahead = dot(c, d)
            if 0.0 < ahead < best and dot(c, c) - ahead * ahead < square:
                best, found = ahead, other
        if found >= 0:
            light = along(light, weight / math.pi, side_glow(w, found, -d[0], -d[1]))
        else:
            light = along(light, weight, surroundings(w, p, d))
    return light


@jit
def rubber(w: Floats, lists: Ints, number: int, p: Vec, n: Vec, d: Vec) -> Vec:
    """Radiance of rubber: a diffuse body under a coat that reflects more the flatter one looks at it."""
    k = THINGS + STRIDE * number
    cos = max(-dot(d, n), 0.0)
    rim = fresnel(cos)
    light = along(direct(w, lists, number, p, n), 1.0, bounced(w, k, p, n))
    body = scaled(RUBBER_BODY * (1.0 - rim) / math.pi, times(vec(w, k + RED), light))
    coat = surroundings(w, p, along(d, 2.0 * cos, n))
    t, b = tangents(n)
    return along(along(body, rim, coat), rim, glints(w, lists, number, p, n, d, t, b, RIM_ROUGH, RIM_ROUGH))


@jit
def fresnel(cos: float) -> float:
    """Reflected part of unpolarised light at a dielectric."""
    g = math.sqrt(RIM_IOR * RIM_IOR - 1.0 + cos * cos)
    a = (g - cos) / (g + cos)
    b = ((g + cos) * cos - 1.0) / ((g - cos) * cos + 1.0)
    return 0.5 * a * a * (1.0 + b * b)


@jit
def glint(w: Floats, lamp: int, p: Vec, n: Vec, d: Vec, t: Vec, b: Vec, wide_t: float, wide_b: float) -> float:
    """Light of a lamp reflected by a GGX lobe towards the eye, per intensity: D G / (4 cos) * cos / distance^2."""
    way = sub(vec(w, lamp + POSITION), p)
    back, front, eye = -dot(vec(w, lamp + AIM), way), dot(n, way), -dot(n, d)
    if front <= 0.0 or back <= 0.0 or eye <= 0.0:
        return 0.0
    square = dot(way, way)
    length = math.sqrt(square)
    way, front = scaled(1.0 / length, way), front / length
    h = unit(sub(way, d))
    ht, hb, hn = dot(h, t) / wide_t, dot(h, b) / wide_b, dot(h, n)
    spread = ht * ht + hb * hb + hn * hn
    lt, lb, et, eb = dot(way, t) * wide_t, dot(way, b) * wide_b, dot(d, t) * wide_t, dot(d, b) * wide_b
    mask_l = math.sqrt(1.0 + (lt * lt + lb * lb) / (front * front))
    mask_e = math.sqrt(1.0 + (et * et + eb * eb) / (eye * eye))
    density = 1.0 / (math.pi * wide_t * wide_b * spread * spread)
    return density * (2.0 / (mask_l + mask_e)) / (4.0 * eye) * back / (length * square)


@jit
def glints(
    w: Floats, lists: Ints, number: int, p: Vec, n: Vec, d: Vec, t: Vec, b: Vec, wide_t: float, wide_b: float
) -> Vec:
    """Light of all lamps reflected by a GGX lobe."""
    light = DARK
    for i in range(LIGHTS):
        lamp = LAMPS + LIGHT_COLUMNS * i
        amount = glint(w, lamp, p, n, d, t, b, wide_t, wide_b)
        if amount * w[lamp + INTENSITY] > DIM:
            light = along(light, amount * openness(w, lists, number, i, p), vec(w, lamp + INTENSITY))
    return light


@jit
def metal_rough(w: Floats, lists: Ints, number: int, p: Vec, n: Vec, d: Vec, size: float) -> Vec:
    """Radiance of the rough lobe of metal before its colour: rays off visible GGX normals, lamps in closed form.

    `size` is the width of the surface that one sample stands for.
    """
    k = THINGS + STRIDE * number
    t, b = brushed(w, k, p, n)
    eye = (-dot(d, t), -dot(d, b), max(-dot(d, n), 1e-3))
    # Visible normals (Heitz 2018): stretch the eye, take a point of a disc bent towards it, unstretch.
    s = unit((ROUGH_AROUND * eye[0], ROUGH_ALONG * eye[1], eye[2]))
    flat = math.sqrt(s[0] * s[0] + s[1] * s[1])
    u = (-s[1] / flat, s[0] / flat, 0.0) if flat > 1e-6 else (1.0, 0.0, 0.0)
    v = cross(s, u)
    bend = 0.5 * (1.0 + s[2])
    light = DARK
    for i in range(GLOSS_RAYS):
        x = GLOSS[i, 0]
        y = (1.0 - bend) * math.sqrt(1.0 - x * x) + bend * GLOSS[i, 1]
        h = mix(x, u, y, v, math.sqrt(max(1.0 - x * x - y * y, 0.0)), s)
        h = unit((ROUGH_AROUND * h[0], ROUGH_ALONG * h[1], max(h[2], 1e-9)))
        out = sub(scaled(2.0 * dot(h, eye), h), eye)
        if out[2] > 0.0:
            slope_t, slope_b = ROUGH_AROUND * out[0] / out[2], ROUGH_ALONG * out[1] / out[2]
            weight = 2.0 / (1.0 + math.sqrt(1.0 + slope_t * slope_t + slope_b * slope_b)) / GLOSS_RAYS
            light = along(light, weight, seen(w, lists, k, p, mix(out[0], t, out[1], b, out[2], n)))
    first, second, turn_1, turn_2 = turned(w, k, p, n, FOOTPRINT * size / max(eye[2], 0.3))
    wide_t = widened(ROUGH_AROUND, turn_1 * dot(first, t), turn_2 * dot(second, t))
    wide_b = widened(ROUGH_ALONG, turn_1 * dot(first, b), turn_2 * dot(second, b))
    return along(light, 1.0, glints(w, lists, number, p, n, d, t, b, wide_t, wide_b))


@jit
def metal_sharp(w: Floats, lists: Ints, number: int, p: Vec, n: Vec, d: Vec, size: float) -> Vec:
    """Radiance of the sharp lobe of metal before its colour: a mirror with slightly blurred lamps."""
    k = THINGS + STRIDE * number
    # A lamp's image may be finer than a sample where the surface bends: blur it over what the sample sees.
    cos = -dot(d, n)
    t, b, turn_t, turn_b = turned(w, k, p, n, FOOTPRINT * size / max(cos, 0.3))
    wide_t, wide_b = widened(METAL_SHARP, turn_t, 0.0), widened(METAL_SHARP, turn_b, 0.0)
    part = METAL_SHARP * METAL_SHARP / (wide_t * wide_b)
    out = along(d, 2.0 * cos, n)
    # How the mirrored ray swings when the normal tips.
    swing_t = scaled(2.0 * turn_t, mix(cos, t, -dot(d, t), n, 0.0, n))
    swing_b = scaled(2.0 * turn_b, mix(cos, b, -dot(d, b), n, 0.0, n))
    light = seen(w, lists, k, p, out)
    for i in range(LIGHTS):
        lamp = LAMPS + LIGHT_COLUMNS * i
        most = w[lamp + PER_AREA]
        cover = mirrored(w, lamp, p, out, swing_t, swing_b)
        bright = cover * most + (1.0 - cover) * min(part * glint(w, lamp, p, n, d, t, b, wide_t, wide_b), most)
        if bright * w[lamp + INTENSITY] > DIM:
            light = along(light, bright * openness(w, lists, number, i, p), vec(w, lamp + INTENSITY))
    return light


@jit
def turned(w: Floats, k: int, p: Vec, n: Vec, size: float) -> tuple[Vec, Vec, float, float]:
    """Two directions across a normal, and by how much it turns along each over a sample of this size."""
    first, second, turn_1, turn_2 = bending(w, k, p, n)
    return first, second, min(size * turn_1, 0.3), min(size * turn_2, 0.3)


@jit
def widened(wide: float, a: float, b: float) -> float:
    return math.sqrt(wide * wide + a * a + b * b)


@jit
def mirrored(w: Floats, lamp: int, p: Vec, out: Vec, swing_t: Vec, swing_b: Vec) -> float:
    """How much of a mirror's ray ends on the lamp, blurred by the lobe and by the ray's swings."""
    towards = dot(vec(w, lamp + AIM), out)
    way = sub(vec(w, lamp + POSITION), p)
    t = dot(vec(w, lamp + AIM), way) / towards
    if towards > -1e-3 or t <= 0.0:
        return 0.0
    q = sub(scaled(t, out), way)
    u, v = vec(w, lamp + EDGE_U), vec(w, lamp + EDGE_V)
    half = math.sqrt(dot(u, u))
    u, v = scaled(1.0 / half, u), scaled(1.0 / half, v)
    soft_u = 1.0 / (t * widened(2.0 * METAL_SHARP, dot(swing_t, u), dot(swing_b, u)))
    soft_v = 1.0 / (t * widened(2.0 * METAL_SHARP, dot(swing_t, v), dot(swing_b, v)))
    return band(dot(q, u), half, soft_u) * band(dot(q, v), half, soft_v)


@jit
def band(x: float, half: float, soft: float) -> float:
    """A band of ones from -half to half, blurred over 1 / soft to both sides of its edges; its area stays."""
    return ramp((x + half) * soft) - ramp((x - half) * soft)


@jit
def ramp(x: float) -> float:
    """Smooth step from 0 at -1 to 1 at 1."""
    x = min(max(0.5 + 0.5 * x, 0.0), 1.0)
    return x * x * (3.0 - 2.0 * x)
