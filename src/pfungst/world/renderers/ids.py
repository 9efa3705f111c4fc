"""The id buffer: which object every sample of the image sees, and how far away it is (numba)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pfungst.world.constants import FOCAL
from pfungst.world.renderers.geometry import hit, hit_object, into
from pfungst.world.renderers.jit import along, dot, jit, mix, sub, vec
from pfungst.world.renderers.pack import CYLINDER, SPHERE, Floats, Ints
from pfungst.world.renderers.world import CAMERA, COS, COUNT, KIND, SIN, STRIDE, THINGS, R, X

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
