"""Which rays to a lamp a shape stops: all at once, as bits (numba).

The rays of one lamp lead to the points of a lattice. Most of them pass a shape well outside, or well inside; that is
told for all without a branch, so that the compiler takes several rays in one step. Few are left to be followed.
"""

from __future__ import annotations

import math

import numpy as np

from pfungst.world.renderers.geometry import hit
from pfungst.world.renderers.jit import Vec, dot, inlined, jit, mix
from pfungst.world.renderers.look import CUBE_INNER, CYLINDER_INNER, SHADOW_RAYS, SPHERE_RADIUS, lattice
from pfungst.world.renderers.pack import CUBE, SPHERE

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
