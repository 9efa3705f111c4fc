"""Light that leaves metal: a rough lobe and a sharp one (numba). As in `shade`."""

from __future__ import annotations

import math

from pfungst.world.renderers.backdrop import (
    AIM,
    EDGE_U,
    EDGE_V,
    INTENSITY,
    LIGHT_COLUMNS,
    LIGHTS,
    PER_AREA,
    POSITION,
    REACH,
)
from pfungst.world.renderers.geometry import bending, brushed
from pfungst.world.renderers.jit import Vec, along, cross, dot, inlined, jit, mix, scaled, sub, unit, vec
from pfungst.world.renderers.light import DARK, openness
from pfungst.world.renderers.look import (
    DIM,
    FOOTPRINT,
    GLOSS_RAYS,
    METAL_ANISOTROPY,
    METAL_ROUGH,
    METAL_SHARP,
    disc,
)
from pfungst.world.renderers.pack import Floats, Ints
from pfungst.world.renderers.shade import glint, masking, seen
from pfungst.world.renderers.world import LAMPS, ROUGHNESS, STRIDE, THINGS

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
