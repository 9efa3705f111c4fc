"""Rays against the three shapes, and which object every sample of the image sees (numba).

A cube is a smaller box grown by a rounded one: the points where v_x^3 + v_y^3 + v_z^3 <= e^3, v being how far a
coordinate lies outside the box of half edge 1 - e; a cylinder likewise, in radius and height. The left side is convex
along a ray, so Newton's method started outside runs monotonically to the first hit and never past it; a slope that
turns positive is a miss.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pfungst.world.constants import FOCAL
from pfungst.world.renderers.jit import Vec, along, cross, dot, inlined, jit, mix, scaled, sub, unit, vec
from pfungst.world.renderers.look import (
    CUBE_INNER,
    CUBE_ROUND,
    CYLINDER_BEVEL,
    CYLINDER_INNER,
    NEWTON_STEPS,
    SPHERE_RADIUS,
    TOLERANCE,
)
from pfungst.world.renderers.raycast import CUBE, CYLINDER, SPHERE, Floats, Ints
from pfungst.world.renderers.world import (
    CAMERA,
    COS,
    COS_SCALED,
    COUNT,
    KIND,
    SCALE,
    SIN,
    SIN_SCALED,
    STRIDE,
    THINGS,
    R,
    X,
    Y,
)

INF = np.inf
CUBE_CORE, CUBE_LEVEL = 1.0 - CUBE_ROUND, CUBE_ROUND**3
CYLINDER_CORE, CYLINDER_LEVEL = 1.0 - CYLINDER_BEVEL, CYLINDER_BEVEL**3
CUBE_CLOSE = CUBE_LEVEL + 3.0 * CUBE_ROUND**2 * TOLERANCE
CYLINDER_CLOSE = CYLINDER_LEVEL + 3.0 * CYLINDER_BEVEL**2 * TOLERANCE
OPEN, HIDDEN, PARTLY = 0, 1, 2


@inlined
def hit_sphere(o: Vec, d: Vec) -> float:
    a, b, c = dot(d, d), dot(o, d), dot(o, o) - SPHERE_RADIUS * SPHERE_RADIUS
    root = b * b - a * c
    if root <= 0.0:
        return INF
    t = (-b - math.sqrt(root)) / a
    return t if t > 0.0 else INF


@inlined
def cross_slab(o: float, d: float, half: float) -> tuple[float, float]:
    """Where a ray enters and leaves |x| <= half."""
    inverse = over(d)
    near, far = (-half - o) * inverse, (half - o) * inverse
    return min(near, far), max(near, far)


@inlined
def cross_box(o: Vec, d: Vec, half: float) -> tuple[float, float]:
    """Where a ray enters (not before its start) and leaves a box; it misses where it leaves before it enters."""
    a, b = cross_slab(o[0], d[0], half)
    c, e = cross_slab(o[1], d[1], half)
    f, g = cross_slab(o[2], d[2], half)
    return max(max(a, c), max(f, 0.0)), min(min(b, e), g)


@inlined
def cross_boxes(o: Vec, d: Vec, half: float, other: float) -> tuple[float, float, float, float]:
    """The same of two boxes, one within the other."""
    x, y, z = over(d[0]), over(d[1]), over(d[2])
    a, b, c = -o[0] * x, -o[1] * y, -o[2] * z
    x, y, z = abs(x), abs(y), abs(z)
    enter = max(max(a - half * x, b - half * y), max(c - half * z, 0.0))
    leave = min(min(a + half * x, b + half * y), c + half * z)
    first = max(max(a - other * x, b - other * y), max(c - other * z, 0.0))
    return enter, leave, first, min(min(a + other * x, b + other * y), c + other * z)


@inlined
def over(d: float) -> float:
    return 1.0 / d if d != 0.0 else 1e300


@inlined
def cross_cylinder(o: Vec, d: Vec, half: float) -> tuple[float, float]:
    """The same for an upright cylinder of this radius and half height."""
    a = max(d[0] * d[0] + d[1] * d[1], 1e-300)
    b = o[0] * d[0] + o[1] * d[1]
    root = b * b - a * (o[0] * o[0] + o[1] * o[1] - half * half)
    if root <= 0.0:
        return INF, 0.0
    root = math.sqrt(root)
    near, far = cross_slab(o[2], d[2], half)
    return max(max(near, 0.0), (-b - root) / a), min(far, (-b + root) / a)


@inlined
def hit_cube(o: Vec, d: Vec) -> float:
    t, leave = cross_box(o, d, 1.0)
    if t > leave:
        return INF
    for _ in range(NEWTON_STEPS):
        x, y, z = along(o, t, d)
        vx, vy, vz = max(abs(x) - CUBE_CORE, 0.0), max(abs(y) - CUBE_CORE, 0.0), max(abs(z) - CUBE_CORE, 0.0)
        ax, ay, az = vx * vx, vy * vy, vz * vz
        level = ax * vx + ay * vy + az * vz
        if level <= CUBE_CLOSE:
            return t if t > 0.0 else INF
        slope = math.copysign(ax, x) * d[0] + math.copysign(ay, y) * d[1] + math.copysign(az, z) * d[2]
        if slope >= 0.0:
            return INF
        t -= (level - CUBE_LEVEL) / (3.0 * slope)
    return INF


@inlined
def hit_cylinder(o: Vec, d: Vec) -> float:
    t, leave = cross_cylinder(o, d, 1.0)
    if t > leave:
        return INF
    for _ in range(NEWTON_STEPS):
        x, y, z = along(o, t, d)
        rho = math.sqrt(x * x + y * y)
        vr, vz = max(rho - CYLINDER_CORE, 0.0), max(abs(z) - CYLINDER_CORE, 0.0)
        ar, az = vr * vr, vz * vz
        level = ar * vr + az * vz
        if level <= CYLINDER_CLOSE:
            return t if t > 0.0 else INF
        slope = math.copysign(az, z) * d[2] + ar * (x * d[0] + y * d[1]) / max(rho, 1e-9)
        if slope >= 0.0:
            return INF
        t -= (level - CYLINDER_LEVEL) / (3.0 * slope)
    return INF


@jit
def hit(kind: int, o: Vec, d: Vec) -> float:
    """First hit of the ray o + t d with a unit shape at the origin: t > 0, or infinity."""
    if kind == SPHERE:
        return hit_sphere(o, d)
    if kind == CUBE:
        return hit_cube(o, d)
    return hit_cylinder(o, d)


@inlined
def shadowing(kind: int, o: Vec, d: Vec, spread: float) -> int:
    """Whether a unit shape hides none, all, or perhaps a part of a bundle of rays `spread` wide where it stands."""
    if kind == SPHERE:
        ahead = -dot(o, d)
        if ahead <= 0.0:
            return OPEN
        apart = dot(o, o) - ahead * ahead / dot(d, d)
        if apart >= (1.0 + spread) * (1.0 + spread):
            return OPEN
        inner = SPHERE_RADIUS - spread
        return HIDDEN if inner > 0.0 and apart < inner * inner else PARTLY
    if kind == CUBE:
        enter, leave, inner_enter, inner_leave = cross_boxes(o, d, 1.0 + spread, max(CUBE_INNER - spread, 0.0))
    else:
        enter, leave = cross_cylinder(o, d, 1.0 + spread)
        inner_enter, inner_leave = cross_cylinder(o, d, max(CYLINDER_INNER - spread, 0.0))
    if enter > leave:
        return OPEN
    return HIDDEN if inner_enter < inner_leave else PARTLY


@inlined
def into(w: Floats, k: int, v: Vec) -> Vec:
    """A direction in the frame of the object at k: turned back, in radii."""
    cos, sin = w[k + COS_SCALED], w[k + SIN_SCALED]
    return cos * v[0] + sin * v[1], cos * v[1] - sin * v[0], v[2] * w[k + SCALE]


@inlined
def hit_object(w: Floats, k: int, p: Vec, d: Vec) -> float:
    """First hit of the ray p + t d with the object at k."""
    return hit(int(w[k + KIND]), into(w, k, sub(p, vec(w, k + X))), into(w, k, d))


@inlined
def normal(w: Floats, k: int, p: Vec) -> Vec:
    """Outward unit normal of the object at k at a point on its surface."""
    kind = int(w[k + KIND])
    away = sub(p, vec(w, k + X))
    if kind == SPHERE:
        return unit(away)
    x, y, z = into(w, k, away)
    if kind == CUBE:
        vx, vy, vz = max(abs(x) - CUBE_CORE, 0.0), max(abs(y) - CUBE_CORE, 0.0), max(abs(z) - CUBE_CORE, 0.0)
        nx, ny, nz = math.copysign(vx * vx, x), math.copysign(vy * vy, y), math.copysign(vz * vz, z)
    else:
        rho = math.sqrt(x * x + y * y)
        vr, vz = max(rho - CYLINDER_CORE, 0.0), max(abs(z) - CYLINDER_CORE, 0.0)
        side = vr * vr / max(rho, 1e-9)
        nx, ny, nz = side * x, side * y, math.copysign(vz * vz, z)
    cos, sin = w[k + COS], w[k + SIN]
    return unit((cos * nx - sin * ny, sin * nx + cos * ny, nz))


@inlined
def bending(w: Floats, k: int, p: Vec, n: Vec) -> tuple[Vec, Vec, float, float]:
    """Two unit vectors across a normal of the object at k, and how fast the normal turns along each, per length.

    On an edge the first leads over it and the second along it.
    """
    kind, scale = int(w[k + KIND]), 1.0 / w[k + R]
    if kind == SPHERE:
        first, second = tangents(n)
        return first, second, scale, scale
    x, y, z = into(w, k, sub(p, vec(w, k + X)))
    cos, sin = w[k + COS], w[k + SIN]
    if kind == CUBE:
        a, b, c = max(abs(x) - CUBE_CORE, 0.0), max(abs(y) - CUBE_CORE, 0.0), max(abs(z) - CUBE_CORE, 0.0)
        around = 0.0
        # An edge runs along the axis in which the point lies least far out.
        axis = (0.0, 0.0, 1.0)
        if a <= b and a <= c:
            axis = (cos, sin, 0.0)
        elif b <= c:
            axis = (-sin, cos, 0.0)
    else:
        rho = math.sqrt(x * x + y * y)
        a, b, c = max(rho - CYLINDER_CORE, 0.0), max(abs(z) - CYLINDER_CORE, 0.0), 0.0
        around = scale * math.sqrt(max(1.0 - n[2] * n[2], 0.0)) / max(rho, 1e-9)
        axis = (w[k + Y] - p[1], p[0] - w[k + X], 0.0)
    # Of the curve v^3 + w^3 = e^3 it is 2 v w e^3 / (v^4 + w^4)^(3/2).
    fourth = a * a * a * a + b * b * b * b + c * c * c * c
    edge = 2.0 * (a * b + b * c + c * a) * (a * a * a + b * b * b + c * c * c) / (fourth * math.sqrt(fourth))
    first = cross(n, axis)
    square = dot(first, first)
    if square < 1e-9:
        first, second = tangents(n)
    else:
        first = scaled(1.0 / math.sqrt(square), first)
        second = cross(n, first)
    return first, second, scale * edge, around


@inlined
def tangents(n: Vec) -> tuple[Vec, Vec]:
    """Two unit vectors across a normal, the first one level."""
    flat = math.sqrt(n[0] * n[0] + n[1] * n[1])
    t = (-n[1] / flat, n[0] / flat, 0.0) if flat > 1e-4 else (1.0, 0.0, 0.0)
    return t, cross(n, t)


@inlined
def brushed(w: Floats, k: int, p: Vec, n: Vec) -> tuple[Vec, Vec]:
    """Two unit vectors across a normal: around the upright axis of the object at k, and away from it."""
    b = cross(n, (w[k + Y] - p[1], p[0] - w[k + X], 0.0))
    length = math.sqrt(dot(b, b))
    if length < 1e-6:
        return tangents(n)
    b = (b[0] / length, b[1] / length, b[2] / length)
    return cross(b, n), b


OCTAGON = 1.0 / math.cos(math.pi / 8)
"""Outer radius of the octagon around the unit circle."""


@jit
def pixel_box(w: Floats, number: int, width: int, height: int) -> tuple[int, int, int, int]:
    """The pixel rectangle that contains an object: first column and row, past the last of each.

    An object that reaches behind the camera gets the whole image; one outside the image an empty rectangle.
    """
    k = THINGS + STRIDE * number
    kind, radius = int(w[k + KIND]), w[k + R]
    away = sub(vec(w, k + X), vec(w, CAMERA))
    right, up, forward = vec(w, CAMERA + 3), vec(w, CAMERA + 6), vec(w, CAMERA + 9)
    left, top, past, bottom = np.inf, np.inf, -np.inf, -np.inf
    if kind == SPHERE:
        x, y, z = dot(away, right), dot(away, up), dot(away, forward)
        if z <= 1.01 * radius:
            return 0, 0, width, height
        # Tangents from the eye to a circle, in the planes across and along the image.
        deep, square = z * z - radius * radius, radius * radius
        wide, high = radius * math.sqrt(x * x + z * z - square), radius * math.sqrt(y * y + z * z - square)
        left, past = (x * z - wide) / deep, (x * z + wide) / deep
        top, bottom = -(y * z + high) / deep, -(y * z - high) / deep
    else:
        cos, sin = w[k + COS], w[k + SIN]
        for i in range(16 if kind == CYLINDER else 8):
            if kind == CYLINDER:
                turn = (i // 2 + 0.5) * math.pi / 4
                a, b, c = OCTAGON * math.cos(turn), OCTAGON * math.sin(turn), 1.0 - 2.0 * (i % 2)
            else:
                a, b, c = 1.0 - 2.0 * (i // 4), 1.0 - 2.0 * (i // 2 % 2), 1.0 - 2.0 * (i % 2)
            corner = along(away, radius, (cos * a - sin * b, sin * a + cos * b, c))
            z = dot(corner, forward)
            if z <= 1e-3:
                return 0, 0, width, height
            x, y = dot(corner, right) / z, -dot(corner, up) / z
            left, past, top, bottom = min(left, x), max(past, x), min(top, y), max(bottom, y)
    scale = FOCAL * width
    # Clipped before they become integers: a place far outside the image may exceed any.
    first = min(max(math.floor(left * scale + 0.5 * width), 0.0), float(width))
    last = min(max(math.ceil(past * scale + 0.5 * width), first), float(width))
    over = min(max(math.floor(top * scale + 0.5 * height), 0.0), float(height))
    under = min(max(math.ceil(bottom * scale + 0.5 * height), over), float(height))
    return int(first), int(over), int(last), int(under)


@jit
def sample_ray(row: int, column: int, rows: int, columns: int, turn: float) -> tuple[float, float]:
    """a and b of a sample's ray forward + a right + b up, so that its multiples are distances along the view axis.

    `turn` moves the samples of odd and even rows and columns apart, by this part of a sample: it turns the square that
    four neighbours form.
    """
    step = 1.0 / (FOCAL * columns)
    a = column + 0.5 - 0.5 * columns + (turn if row % 2 == 0 else -turn)
    b = 0.5 * rows - (row + 0.5 + (turn if column % 2 else -turn))
    return a * step, b * step


@jit
def see(w: Floats, boxes: Ints, row: int, column: int, rows: int, columns: int, turn: float) -> int:
    """The object one sample sees, -1 for none; `boxes` are the objects' pixel boxes. The first of equally near ones."""
    a, b = sample_ray(row, column, rows, columns, turn)
    d = mix(1.0, vec(w, CAMERA + 9), a, vec(w, CAMERA + 3), b, vec(w, CAMERA + 6))
    best, found = np.inf, -1
    for number in range(int(w[COUNT])):
        box = 4 * number
        if boxes[box] <= column < boxes[box + 2] and boxes[box + 1] <= row < boxes[box + 3]:
            t = hit_object(w, THINGS + STRIDE * number, vec(w, CAMERA), d)
            if t < best:
                best, found = t, number
    return found


@jit
def id_buffer(
    w: Floats, columns: int, rows: int, turn: float, ids: npt.NDArray[np.int16], depth: Floats, counts: Ints
) -> None:
    """Draw the objects into flat `ids` (rows * columns), which holds -1, and count each one's visible samples.

    `depth` is room for as many numbers. `turn` as for `sample_ray`; `w` is the flat array of `world.lay_out`.
    """
    for number in range(int(w[COUNT])):
        left, top, past, bottom = pixel_box(w, number, columns, rows)
        for row in range(top, bottom):
            depth[row * columns + left : row * columns + past] = np.inf
        counts[number] = 0
    for number in range(int(w[COUNT])):
        k = THINGS + STRIDE * number
        kind = int(w[k + KIND])
        left, top, past, bottom = pixel_box(w, number, columns, rows)
        # The camera is turned into the object's frame once; a ray there is a sum of its axes.
        o = into(w, k, sub(vec(w, CAMERA), vec(w, k + X)))
        right, up, forward = (
            into(w, k, vec(w, CAMERA + 3)),
            into(w, k, vec(w, CAMERA + 6)),
            into(w, k, vec(w, CAMERA + 9)),
        )
        for row in range(top, bottom):
            entered, misses = False, 0
            for column in range(left, past):
                a, b = sample_ray(row, column, rows, columns, turn)
                t = hit(kind, o, mix(1.0, forward, a, right, b, up))
                if t == np.inf:
                    # A shape is convex: past its end (of both turned rows) nothing follows.
                    misses += 1
                    if entered and misses > 1:
                        break
                    continue
                entered, misses = True, 0
                at = row * columns + column
                if t < depth[at]:
                    depth[at] = t
                    if ids[at] >= 0:
                        counts[ids[at]] -= 1
                    ids[at] = number
                    counts[number] += 1
