"""Rays against the three shapes, with torch: the formulas of `_geometry` on tuples of tensors.

A vector is a tuple of three float64 tensors of shapes that broadcast; a branch of the numba kernels is a mask here.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import torch
from torch import Tensor

from pfungst.world.renderers.look import (
    CUBE_INNER,
    CUBE_ROUND,
    CYLINDER_BEVEL,
    CYLINDER_INNER,
    NEWTON_STEPS,
    SPHERE_RADIUS,
    TOLERANCE,
)
from pfungst.world.renderers.pack import CUBE, SPHERE

V3: TypeAlias = tuple[Tensor, Tensor, Tensor]

INF = math.inf
CUBE_CORE, CUBE_LEVEL = 1.0 - CUBE_ROUND, CUBE_ROUND**3
CYLINDER_CORE, CYLINDER_LEVEL = 1.0 - CYLINDER_BEVEL, CYLINDER_BEVEL**3
CUBE_CLOSE = CUBE_LEVEL + 3.0 * CUBE_ROUND**2 * TOLERANCE
CYLINDER_CLOSE = CYLINDER_LEVEL + 3.0 * CYLINDER_BEVEL**2 * TOLERANCE


def dot(a: V3, b: V3) -> Tensor:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def sub(a: V3, b: V3) -> V3:
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


def along(a: V3, t: Tensor | float, b: V3) -> V3:
    """a + t b"""
    return a[0] + t * b[0], a[1] + t * b[1], a[2] + t * b[2]


def times(a: V3, b: V3) -> V3:
    return a[0] * b[0], a[1] * b[1], a[2] * b[2]


def scaled(t: Tensor | float, a: V3) -> V3:
    return t * a[0], t * a[1], t * a[2]


def cross(a: V3, b: V3) -> V3:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def unit(a: V3) -> V3:
    return scaled(1.0 / torch.sqrt(dot(a, a)), a)


def select(mask: Tensor, a: V3, b: V3) -> V3:
    return torch.where(mask, a[0], b[0]), torch.where(mask, a[1], b[1]), torch.where(mask, a[2], b[2])


def pick(a: V3, index: Tensor) -> V3:
    return a[0][index], a[1][index], a[2][index]


def wide(a: V3) -> V3:
    """With a last axis of one, to be spread over."""
    return a[0].unsqueeze(-1), a[1].unsqueeze(-1), a[2].unsqueeze(-1)


def total(a: V3) -> V3:
    """Sum over the last axis."""
    return a[0].sum(-1), a[1].sum(-1), a[2].sum(-1)


def dark(like: Tensor) -> V3:
    zero = torch.zeros_like(like)
    return zero, zero, zero


def hit_sphere(o: V3, d: V3) -> Tensor:
    a, b, c = dot(d, d), dot(o, d), dot(o, o) - SPHERE_RADIUS * SPHERE_RADIUS
    root = b * b - a * c
    t = (-b - torch.sqrt(root.clamp(min=0.0))) / a
    return torch.where((root > 0.0) & (t > 0.0), t, INF)


def cross_slab(o: Tensor, d: Tensor, half: Tensor | float) -> tuple[Tensor, Tensor]:
    inverse = torch.where(d != 0.0, 1.0 / d, 1e300)
    near, far = (-half - o) * inverse, (half - o) * inverse
    return torch.minimum(near, far), torch.maximum(near, far)


def cross_box(o: V3, d: V3, half: Tensor | float) -> tuple[Tensor, Tensor]:
    """Where rays enter (not before their start) and leave a box; they miss where they leave before they enter."""
    a, b = cross_slab(o[0], d[0], half)
    c, e = cross_slab(o[1], d[1], half)
    f, g = cross_slab(o[2], d[2], half)
    return torch.maximum(torch.maximum(a, c), f.clamp(min=0.0)), torch.minimum(torch.minimum(b, e), g)


def cross_cylinder(o: V3, d: V3, half: Tensor | float) -> tuple[Tensor, Tensor]:
    """The same for an upright cylinder of this radius and half height."""
    a = (d[0] * d[0] + d[1] * d[1]).clamp(min=1e-300)
    b = o[0] * d[0] + o[1] * d[1]
    root = b * b - a * (o[0] * o[0] + o[1] * o[1] - half * half)
    through = root > 0.0
    root = torch.sqrt(root.clamp(min=0.0))
    near, far = cross_slab(o[2], d[2], half)
    enter = torch.maximum(near.clamp(min=0.0), (-b - root) / a)
    leave = torch.minimum(far, (-b + root) / a)
    return torch.where(through, enter, INF), torch.where(through, leave, 0.0)


def beyond(x: Tensor, core: float) -> Tensor:
    """How far a coordinate lies outside the core."""
    return (x - core).clamp(min=0.0)


def cube_level(o: V3, d: V3, t: Tensor) -> tuple[Tensor, Tensor]:
    """v_x^3 + v_y^3 + v_z^3 at o + t d, and a third of its slope."""
    x, y, z = along(o, t, d)
    vx, vy, vz = beyond(x.abs(), CUBE_CORE), beyond(y.abs(), CUBE_CORE), beyond(z.abs(), CUBE_CORE)
    ax, ay, az = vx * vx, vy * vy, vz * vz
    slope = torch.copysign(ax, x) * d[0] + torch.copysign(ay, y) * d[1] + torch.copysign(az, z) * d[2]
    return ax * vx + ay * vy + az * vz, slope


def cylinder_level(o: V3, d: V3, t: Tensor) -> tuple[Tensor, Tensor]:
    x, y, z = along(o, t, d)
    rho = torch.sqrt(x * x + y * y)
    vr, vz = beyond(rho, CYLINDER_CORE), beyond(z.abs(), CYLINDER_CORE)
    ar, az = vr * vr, vz * vz
    slope = torch.copysign(az, z) * d[2] + ar * (x * d[0] + y * d[1]) / rho.clamp(min=1e-9)
    return ar * vr + az * vz, slope


def hit_rounded(kind: int, o: V3, d: V3) -> Tensor:
    """First hits with the unit cube or cylinder, by Newton's method."""
    if kind == CUBE:
        (t, leave), level_of, close, level_at = cross_box(o, d, 1.0), cube_level, CUBE_CLOSE, CUBE_LEVEL
    else:
        t, leave = cross_cylinder(o, d, 1.0)
        level_of, close, level_at = cylinder_level, CYLINDER_CLOSE, CYLINDER_LEVEL
    going = t <= leave
    t = torch.where(going, t, 0.0)
    hits = torch.zeros_like(going)
    for _ in range(NEWTON_STEPS):
        level, slope = level_of(o, d, t)
        found = going & (level <= close)
        hits = hits | found
        going = going & ~found & (slope < 0.0)
        t = torch.where(going, t - (level - level_at) / (3.0 * slope), t)
    return torch.where(hits & (t > 0.0), t, INF)


def hit(kind: Tensor, o: V3, d: V3) -> Tensor:
    """First hits of rays with unit shapes of these kinds, infinity for none."""
    ball, cube = kind == SPHERE, kind == CUBE
    solid = torch.where(cube, hit_rounded(CUBE, o, d), hit_rounded(CUBE + 1, o, d))
    return torch.where(ball, hit_sphere(o, d), solid)


def shadowing(kind: Tensor, o: V3, d: V3, spread: Tensor) -> tuple[Tensor, Tensor]:
    """Which bundles of rays, `spread` wide where a unit shape stands, pass it, and which it hides for certain."""
    ball, cube = kind == SPHERE, kind == CUBE
    ahead = -dot(o, d)
    apart = dot(o, o) - ahead * ahead / dot(d, d)
    inner = SPHERE_RADIUS - spread
    box, tube = cross_box(o, d, 1.0 + spread), cross_cylinder(o, d, 1.0 + spread)
    in_box = cross_box(o, d, (CUBE_INNER - spread).clamp(min=0.0))
    in_tube = cross_cylinder(o, d, (CYLINDER_INNER - spread).clamp(min=0.0))
    free = torch.where(cube, box[0] > box[1], tube[0] > tube[1])
    free = torch.where(ball, (ahead <= 0.0) | (apart >= (1.0 + spread) * (1.0 + spread)), free)
    hidden = torch.where(cube, in_box[0] < in_box[1], in_tube[0] < in_tube[1])
    hidden = torch.where(ball, (inner > 0.0) & (apart < inner * inner), hidden)
    return free, hidden & ~free


def tangents(n: V3) -> tuple[V3, V3]:
    """Two unit vectors across a normal, the first one level."""
    level = torch.sqrt(n[0] * n[0] + n[1] * n[1])
    steep = level > 1e-4
    safe = torch.where(steep, level, 1.0)
    t = (torch.where(steep, -n[1] / safe, 1.0), torch.where(steep, n[0] / safe, 0.0), torch.zeros_like(level))
    return t, cross(n, t)


def fresnel(cos: Tensor, index: float) -> Tensor:
    """Reflected part of unpolarised light at a dielectric."""
    g = torch.sqrt(index * index - 1.0 + cos * cos)
    a = (g - cos) / (g + cos)
    b = ((g + cos) * cos - 1.0) / ((g - cos) * cos + 1.0)
    return 0.5 * a * a * (1.0 + b * b)


def ramp(x: Tensor) -> Tensor:
    """Smooth step from 0 at -1 to 1 at 1."""
    x = (0.5 + 0.5 * x).clamp(0.0, 1.0)
    return x * x * (3.0 - 2.0 * x)


def band(x: Tensor, half: Tensor, soft: Tensor) -> Tensor:
    """A band of ones from -half to half, blurred over 1 / soft to both sides of its edges; its area stays."""
    return ramp((x + half) * soft) - ramp((x - half) * soft)


def widened(width: float, a: Tensor | float, c: Tensor | float) -> Tensor:
    square = width * width + a * a + c * c
    assert isinstance(square, Tensor)
    return torch.sqrt(square)


def glint(
    position: V3, aim: V3, p: V3, n: V3, d: V3, t: V3, b: V3, wide_t: Tensor | float, wide_b: Tensor | float
) -> Tensor:
    """Light of lamps reflected by GGX lobes towards the eye, per intensity: D G / (4 cos) * cos / distance^2."""
    way = sub(position, p)
    back, front, eye = -dot(aim, way), dot(n, way), -dot(n, d)
    square = dot(way, way)
    length = torch.sqrt(square)
    way, cos = scaled(1.0 / length, way), front / length
    h = unit(sub(way, d))
    ht, hb, hn = dot(h, t) / wide_t, dot(h, b) / wide_b, dot(h, n)
    spread = ht * ht + hb * hb + hn * hn
    lt, lb, et, eb = dot(way, t) * wide_t, dot(way, b) * wide_b, dot(d, t) * wide_t, dot(d, b) * wide_b
    masking = torch.sqrt(1.0 + (lt * lt + lb * lb) / (cos * cos)) + torch.sqrt(1.0 + (et * et + eb * eb) / (eye * eye))
    density = 1.0 / (math.pi * wide_t * wide_b * spread * spread)
    light = density * (2.0 / masking) / (4.0 * eye) * back / (length * square)
    return torch.where((front > 0.0) & (back > 0.0) & (eye > 0.0), light, 0.0)
