"""Light that leaves: ground, rubber, and metal with a rough lobe and a sharp one (numba).

As in `light`; n is a normal, d the ray from the eye.
"""

from __future__ import annotations

import math

import numpy as np

from pfungst.world.renderers.geometry import INF, bending, brushed, hit_object, normal, tangents
from pfungst.world.renderers.jit import Vec, along, cross, dot, inlined, jit, mix, scaled, sub, times, unit, vec
from pfungst.world.renderers.light import DARK, direct, falloff, far_light, openness, surroundings
from pfungst.world.renderers.look import (
    BACKDROP,
    BACKDROP_RADIUS,
    BACKDROP_START,
    DIM,
    FAINT,
    FOOTPRINT,
    GLOSS_RAYS,
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
from pfungst.world.renderers.raycast import Floats, Ints
from pfungst.world.renderers.world import (
    AIM,
    BALL,
    COUNT,
    EDGE_U,
    EDGE_V,
    GLOW,
    GROUND,
    INTENSITY,
    LAMPS,
    LIGHT_COLUMNS,
    LIGHTS,
    LISTS,
    METAL,
    PER_AREA,
    POSITION,
    REACH,
    RED,
    ROOM,
    ROUGHNESS,
    STRIDE,
    THINGS,
    R,
    X,
    Y,
)

BX, BY = BACKDROP
BOUNCES = bounce_directions()
SIDES = np.array([(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (-1.0, 0.0, 0.0), (0.0, -1.0, 0.0)])


@inlined
def trace(w: Floats, skip: int, p: Vec, d: Vec) -> tuple[float, int]:
    """Nearest object along a ray of unit direction, -1 for none, and how far; `skip` is the object the ray leaves."""
    best, found = INF, -1
    for number in range(int(w[COUNT])):
        k = THINGS + STRIDE * number
        if k == skip:
            continue
        c = sub(vec(w, k + X), p)
        outer = w[k + BALL]
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


@inlined
def side_glow(w: Floats, k: int, level: float, x: float, y: float) -> Vec:
    """Radiosity of the side of an object that faces the level direction (x, y), times the length of this, `level`."""
    lean = mix(level, vec(w, k + GLOW), x, vec(w, k + GLOW + 3), y, vec(w, k + GLOW + 6))
    return max(lean[0], 0.0), max(lean[1], 0.0), max(lean[2], 0.0)


@jit
def list_tinters(w: Floats, lists: Ints, centre: Vec, radius: float, who: int) -> None:
    """Note in the last list of `who` the objects that may tint a point of the ground within a ball."""
    start = (who * LISTS + LIGHTS) * ROOM
    count = 0
    for number in range(int(w[COUNT])):
        k = THINGS + STRIDE * number
        c = sub(vec(w, k + X), centre)
        least = max(math.sqrt(dot(c, c)) - radius, 0.0)
        if w[k + R] * w[k + R] * (c[2] + radius) >= 0.999 * FAINT * least * least * least:
            count += 1
            lists[start + count] = k
    lists[start] = count


@jit
def list_neighbours(w: Floats, lists: Ints, number: int) -> None:
    """Note in the last list of an object those that are close enough to bounce light on it."""
    start = (number * LISTS + LIGHTS) * ROOM
    mine = THINGS + STRIDE * number
    count = 0
    for other in range(int(w[COUNT])):
        k = THINGS + STRIDE * other
        x, y = w[k + X] - w[mine + X], w[k + Y] - w[mine + Y]
        if other != number and x * x + y * y <= NEIGHBOUR * NEIGHBOUR * (w[k + R] * w[k + R]):
            count += 1
            lists[start + count] = k
    lists[start] = count


@inlined
def ground(w: Floats, lists: Ints, who: int, p: Vec, place: float) -> Vec:
    """Radiance of the backdrop at a point on it: lamps, its own other parts, and the sides of objects as balls."""
    n = (0.0, 0.0, 1.0)
    if place > BACKDROP_START:
        lean = (BACKDROP_START - p[0] * BX - p[1] * BY) / BACKDROP_RADIUS
        n = (lean * BX, lean * BY, max(1.0 - p[2] / BACKDROP_RADIUS, 0.0))
    light = along(direct(w, lists, who, p, n), 1.0, far_light(w, 3, place, BX * p[1] - BY * p[0]))
    if place <= BACKDROP_START:
        start = (who * LISTS + LIGHTS) * ROOM
        for j in range(lists[start]):
            k = lists[start + j + 1]
            c = sub(vec(w, k + X), p)
            square = dot(c, c)
            factor = w[k + R] * w[k + R] * c[2]
            if factor > 0.0 and factor * factor > FAINT * FAINT * square * square * square:
                # From right below one sees the underside, which is dark.
                level = math.sqrt(c[0] * c[0] + c[1] * c[1])
                light = along(light, factor / (square * square), side_glow(w, k, level, -c[0], -c[1]))
    color = vec(w, GROUND)
    return color[0] / math.pi * light[0], color[1] / math.pi * light[1], color[2] / math.pi * light[2]


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


@inlined
def bounced(w: Floats, lists: Ints, number: int, p: Vec, n: Vec) -> Vec:
    """Irradiance from the backdrop and from close neighbours, taken as balls."""
    start = (number * LISTS + LIGHTS) * ROOM
    light = DARK
    for i in range(BOUNCES.shape[0]):
        d = (BOUNCES[i, 0], BOUNCES[i, 1], BOUNCES[i, 2])
        weight = dot(d, n) * BOUNCES[i, 3]
        if weight <= 0.0:
            continue
        best, found = INF, -1
        for j in range(lists[start]):
            other = lists[start + j + 1]
            c = sub(vec(w, other + X), p)
            ahead = dot(c, d)
            if 0.0 < ahead < best and dot(c, c) - ahead * ahead < w[other + R] * w[other + R]:
                best, found = ahead, other
        if found >= 0:
            level = math.sqrt(d[0] * d[0] + d[1] * d[1])
            light = along(light, weight / (math.pi * level), side_glow(w, found, level, -d[0], -d[1]))
        else:
            light = along(light, weight, surroundings(w, p, d))
    return light


@jit
def rubber(w: Floats, lists: Ints, number: int, p: Vec, n: Vec, d: Vec) -> Vec:
    """Radiance of rubber: a diffuse body under a coat that reflects more the flatter one looks at it."""
    k = THINGS + STRIDE * number
    cos = max(-dot(d, n), 0.0)
    rim = fresnel(cos)
    t, b = tangents(n)
    eye = (-dot(d, t), -dot(d, b), -dot(d, n))
    wide = RIM_ROUGH * w[ROUGHNESS]
    veil = masking(eye, wide, wide)
    light, coat = bounced(w, lists, number, p, n), surroundings(w, p, along(d, 2.0 * cos, n))
    for i in range(LIGHTS):
        lamp = LAMPS + LIGHT_COLUMNS * i
        amount = falloff(w, lamp, p, n)
        if amount > 0.0:
            shine = glint(w, lamp, p, n, t, b, eye, veil, wide, wide)
            part = openness(w, lists, number, i, p)
            light = along(light, part * amount, vec(w, lamp + INTENSITY))
            if shine * w[lamp + INTENSITY] > DIM:
                coat = along(coat, part * shine, vec(w, lamp + INTENSITY))
    return along(scaled(RUBBER_BODY * (1.0 - rim) / math.pi, times(vec(w, k + RED), light)), rim, coat)


@inlined
def fresnel(cos: float) -> float:
    """Reflected part of unpolarised light at a dielectric."""
    g = math.sqrt(RIM_IOR * RIM_IOR - 1.0 + cos * cos)
    a = (g - cos) / (g + cos)
    b = ((g + cos) * cos - 1.0) / ((g - cos) * cos + 1.0)
    return 0.5 * a * a * (1.0 + b * b)


@inlined
def masking(way: Vec, wide_t: float, wide_b: float) -> float:
    """How long a direction in a surface's frame is when its level parts are as wide as the lobe."""
    t, b = way[0] * wide_t, way[1] * wide_b
    return math.sqrt(way[2] * way[2] + t * t + b * b)


@inlined
def glint(
    w: Floats, lamp: int, p: Vec, n: Vec, t: Vec, b: Vec, eye: Vec, veil: float, wide_t: float, wide_b: float
) -> float:
    """Light of a lamp reflected by a GGX lobe towards the eye, per intensity: D G / (4 cos) * cos / distance^2.

    `eye` is the direction to the eye in the frame t, b, n, and `veil` its masking.
    """
    way = sub(vec(w, lamp + POSITION), p)
    back, front = -dot(vec(w, lamp + AIM), way), dot(n, way)
    if front <= 0.0 or back <= 0.0 or eye[2] <= 0.0:
        return 0.0
    near = 1.0 / math.sqrt(dot(way, way))
    out = (near * dot(way, t), near * dot(way, b), near * front)
    # The half vector, not yet of unit length, and D and G with one division in all.
    h = (out[0] + eye[0], out[1] + eye[1], out[2] + eye[2])
    both = wide_t * wide_b
    ht, hb, hn = wide_b * h[0], wide_t * h[1], both * h[2]
    spread = ht * ht + hb * hb + hn * hn
    length = dot(h, h)
    masks = masking(out, wide_t, wide_b) * eye[2] + veil * out[2]
    top = both * both * both * (length * length) * out[2] * back * (near * near * near)
    return top / (2.0 * math.pi * (spread * spread) * masks)


ROUGH_AROUND, ROUGH_ALONG = METAL_ROUGH * (1 - METAL_ANISOTROPY), METAL_ROUGH / (1 - METAL_ANISOTROPY)
GLOSS = disc(GLOSS_RAYS)


@inlined
def glints(
    w: Floats, lists: Ints, number: int, p: Vec, n: Vec, t: Vec, b: Vec, eye: Vec, wide_t: float, wide_b: float
) -> Vec:
    """Light of all lamps reflected by a GGX lobe."""
    light = DARK
    veil = masking(eye, wide_t, wide_b)
    for i in range(LIGHTS):
        lamp = LAMPS + LIGHT_COLUMNS * i
        amount = glint(w, lamp, p, n, t, b, eye, veil, wide_t, wide_b)
        if amount * w[lamp + INTENSITY] > DIM:
            light = along(light, amount * openness(w, lists, number, i, p), vec(w, lamp + INTENSITY))
    return light


@jit
def metal_rough(w: Floats, lists: Ints, number: int, p: Vec, n: Vec, d: Vec, size: float) -> Vec:
    """Radiance of the rough lobe of metal before its colour: rays off visible GGX normals, lamps in closed form.

    `size` is the width of the surface that one sample stands for.
    """
    k = THINGS + STRIDE * number
    around, lengthways = ROUGH_AROUND * w[ROUGHNESS], ROUGH_ALONG * w[ROUGHNESS]
    t, b = brushed(w, k, p, n)
    eye = (-dot(d, t), -dot(d, b), max(-dot(d, n), 1e-3))
    # Visible normals (Heitz 2018): stretch the eye, take a point of a disc bent towards it, unstretch.
    s = unit((around * eye[0], lengthways * eye[1], eye[2]))
    flat = math.sqrt(s[0] * s[0] + s[1] * s[1])
    u = (-s[1] / flat, s[0] / flat, 0.0) if flat > 1e-6 else (1.0, 0.0, 0.0)
    v = cross(s, u)
    bend = 0.5 * (1.0 + s[2])
    light = DARK
    for i in range(GLOSS_RAYS):
        x = GLOSS[i, 0]
        y = (1.0 - bend) * math.sqrt(1.0 - x * x) + bend * GLOSS[i, 1]
        h = mix(x, u, y, v, math.sqrt(max(1.0 - x * x - y * y, 0.0)), s)
        h = unit((around * h[0], lengthways * h[1], max(h[2], 1e-9)))
        out = sub(scaled(2.0 * dot(h, eye), h), eye)
        if out[2] > 0.0:
            slope_t, slope_b = around * out[0] / out[2], lengthways * out[1] / out[2]
            weight = 2.0 / (1.0 + math.sqrt(1.0 + slope_t * slope_t + slope_b * slope_b)) / GLOSS_RAYS
            light = along(light, weight, seen(w, lists, k, p, mix(out[0], t, out[1], b, out[2], n)))
    first, second, turn_1, turn_2 = turned(w, k, p, n, FOOTPRINT * size / max(eye[2], 0.3))
    wide_t = widened(around, turn_1 * dot(first, t), turn_2 * dot(second, t))
    wide_b = widened(lengthways, turn_1 * dot(first, b), turn_2 * dot(second, b))
    eye = (eye[0], eye[1], -dot(d, n))
    return along(light, 1.0, glints(w, lists, number, p, n, t, b, eye, wide_t, wide_b))


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
    eye = (-dot(d, t), -dot(d, b), cos)
    veil = masking(eye, wide_t, wide_b)
    blur = 2.0 * (METAL_SHARP + turn_t + turn_b)
    light = seen(w, lists, k, p, out)
    for i in range(LIGHTS):
        lamp = LAMPS + LIGHT_COLUMNS * i
        most = w[lamp + PER_AREA]
        cover = mirrored(w, lamp, p, out, swing_t, swing_b, blur)
        bright = min(part * glint(w, lamp, p, n, t, b, eye, veil, wide_t, wide_b), most)
        bright += cover * (most - bright)
        if bright * w[lamp + INTENSITY] > DIM:
            light = along(light, bright * openness(w, lists, number, i, p), vec(w, lamp + INTENSITY))
    return light


@inlined
def turned(w: Floats, k: int, p: Vec, n: Vec, size: float) -> tuple[Vec, Vec, float, float]:
    """Two directions across a normal, and by how much it turns along each over a sample of this size."""
    first, second, turn_1, turn_2 = bending(w, k, p, n)
    return first, second, min(size * turn_1, 0.3), min(size * turn_2, 0.3)


@inlined
def widened(wide: float, a: float, b: float) -> float:
    return math.sqrt(wide * wide + a * a + b * b)


@inlined
def mirrored(w: Floats, lamp: int, p: Vec, out: Vec, swing_t: Vec, swing_b: Vec, blur: float) -> float:
    """How much of a mirror's ray ends on the lamp, blurred by the lobe and by the ray's swings, over `blur` at most."""
    towards = dot(vec(w, lamp + AIM), out)
    if towards > -1e-3:
        return 0.0
    way = sub(vec(w, lamp + POSITION), p)
    t = dot(vec(w, lamp + AIM), way) / towards
    q = sub(scaled(t, out), way)
    u, v = vec(w, lamp + EDGE_U), vec(w, lamp + EDGE_V)
    x, y = dot(q, u), dot(q, v)
    half = math.sqrt(0.5) * w[lamp + REACH]
    # Of most lamps the ray passes far away; u and v are half an edge long.
    most = half * (half + t * blur)
    if t <= 0.0 or abs(x) >= most or abs(y) >= most:
        return 0.0
    scale = 1.0 / half
    soft_u = 1.0 / (t * widened(2.0 * METAL_SHARP, scale * dot(swing_t, u), scale * dot(swing_b, u)))
    soft_v = 1.0 / (t * widened(2.0 * METAL_SHARP, scale * dot(swing_t, v), scale * dot(swing_b, v)))
    return band(scale * x, half, soft_u) * band(scale * y, half, soft_v)


@inlined
def band(x: float, half: float, soft: float) -> float:
    """A band of ones from -half to half, blurred over 1 / soft to both sides of its edges; its area stays."""
    return ramp((x + half) * soft) - ramp((x - half) * soft)


@inlined
def ramp(x: float) -> float:
    """Smooth step from 0 at -1 to 1 at 1."""
    x = min(max(0.5 + 0.5 * x, 0.0), 1.0)
    return x * x * (3.0 - 2.0 * x)
