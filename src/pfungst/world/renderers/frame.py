"""One image, tile by tile (numba)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pfungst.world.constants import FOCAL
from pfungst.world.renderers.geometry import INF, hit_object, normal, sample_ray
from pfungst.world.renderers.jit import Vec, along, dot, inlined, jit, mix, scaled, sub, times, unit, vec
from pfungst.world.renderers.light import DARK, NEAR_STEP, hit_backdrop, list_shadowers
from pfungst.world.renderers.look import BLUR, METAL_MIX, NEAR_CELLS, NEAR_HALF, SAMPLE_TURN
from pfungst.world.renderers.raycast import Floats, Ints
from pfungst.world.renderers.shade import (
    ground,
    list_neighbours,
    list_tinters,
    metal_rough,
    metal_sharp,
    note_glow,
    rubber,
)
from pfungst.world.renderers.world import BALL, CAMERA, COUNT, METAL, NEAR, RED, STRIDE, THINGS, X

TILE = 8
"""Edge of the squares of pixels, or of cells of the near ground, for which shadows are listed together."""
NEAR_TILES = NEAR_CELLS // TILE
GAMMA_CELLS = 2048


def _gamma() -> Floats:
    linear = (np.arange(GAMMA_CELLS + 2) / GAMMA_CELLS) ** 2
    return 255.0 * np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


GAMMA = _gamma()


@jit
def srgb(value: float) -> float:
    """Linear light to 0..255: a table over the square root, where the curve is nearly straight (error below 1e-3)."""
    # Also where there is no number.
    if not value > 0.0:
        return 0.0
    place = GAMMA_CELLS * math.sqrt(min(value, 1.0))
    i = int(place)
    low, high = GAMMA[i], GAMMA[i + 1]
    return float(low + (place - i) * (high - low))


@jit
def prepare_object(w: Floats, lists: Ints, number: int) -> None:
    """Note what an object sends out and who changes its light."""
    k = THINGS + STRIDE * number
    note_glow(w, lists, k)
    list_shadowers(w, lists, vec(w, k + X), w[k + BALL], number, number)
    list_neighbours(w, lists, number)


@jit
def list_near(w: Floats, lists: Ints, tile: int, who: int) -> None:
    """Note in the lists of `who` the objects that change the light on a tile of the near ground."""
    i, j = tile // NEAR_TILES * TILE, tile % NEAR_TILES * TILE
    middle = ((i + 0.5 * TILE) * NEAR_STEP - NEAR_HALF, (j + 0.5 * TILE) * NEAR_STEP - NEAR_HALF, 0.0)
    list_shadowers(w, lists, middle, 0.7072 * TILE * NEAR_STEP, -1, who)
    list_tinters(w, lists, middle, 0.7072 * TILE * NEAR_STEP, who)


@jit
def light_near_cell(w: Floats, lists: Ints, i: int, j: int, who: int) -> None:
    """Note the radiance of one cell of the near ground; `who` names the lists of its tile."""
    x, y = (i + 0.5) * NEAR_STEP - NEAR_HALF, (j + 0.5) * NEAR_STEP - NEAR_HALF
    _, place = hit_backdrop((x, y, 1.0), (0.0, 0.0, -1.0))
    at = NEAR + 3 * (i * NEAR_CELLS + j)
    w[at], w[at + 1], w[at + 2] = ground(w, lists, who, (x, y, 0.0), place)


@jit
def prepare_objects(w: Floats, lists: Ints) -> None:
    """What an image needs first: what every object sends out, and who may shadow it."""
    for number in range(int(w[COUNT])):
        prepare_object(w, lists, number)


@jit
def light_near(w: Floats, lists: Ints, part: int, parts: int) -> None:
    """What an image needs next, the light on the near ground: every parts-th tile of it.

    The last of the lists belongs to the tile at hand: every thread needs its own.
    """
    who = int(w[COUNT])
    for tile in range(part, NEAR_TILES * NEAR_TILES, parts):
        list_near(w, lists, tile, who)
        for cell in range(TILE * TILE):
            i, j = tile // NEAR_TILES * TILE + cell // TILE, tile % NEAR_TILES * TILE + cell % TILE
            light_near_cell(w, lists, i, j, who)


@inlined
def shade_backdrop(w: Floats, lists: Ints, who: int, a: float, b: float) -> Vec:
    """Radiance of the backdrop along the ray forward + a right + b up; `who` names its shadow lists there."""
    o = vec(w, CAMERA)
    d = mix(1.0, vec(w, CAMERA + 9), a, vec(w, CAMERA + 3), b, vec(w, CAMERA + 6))
    t, place = hit_backdrop(o, d)
    if t == INF:
        return DARK
    return ground(w, lists, who, along(o, t, d), place)


@jit
def shade(
    w: Floats, lists: Ints, who: int, name: int, a: float, b: float, step: float, sharp: bool, rough: bool
) -> Vec:
    """Radiance of what is named, seen along the ray forward + a right + b up; black where the ray just misses it.

    `who` names the shadow lists of the backdrop there. Rays of neighbouring samples lie `step` apart.
    """
    if name < 0:
        return shade_backdrop(w, lists, who, a, b)
    o = vec(w, CAMERA)
    d = unit(mix(1.0, vec(w, CAMERA + 9), a, vec(w, CAMERA + 3), b, vec(w, CAMERA + 6)))
    k = THINGS + STRIDE * name
    t = hit_object(w, k, o, d)
    if t == INF:
        return DARK
    p = along(o, t, d)
    n = normal(w, k, p)
    if w[k + METAL] == 0.0:
        return rubber(w, lists, name, p, n, d)
    light = DARK
    if sharp:
        light = scaled(METAL_MIX, metal_sharp(w, lists, name, p, n, d, t * step))
    if rough:
        light = along(light, 1.0 - METAL_MIX, metal_rough(w, lists, name, p, n, d, 2.0 * t * step))
    return times(vec(w, k + RED), light)


@inlined
def tile_corner(w: Floats, left: int, top: int, i: int, width: int, height: int) -> Vec:
    """Where the ray through a corner (0 to 3) of a tile meets the backdrop, or a point far away."""
    step = 1.0 / (FOCAL * width)
    a = (min(left + TILE * (i % 2), width) - 0.5 * width) * step
    b = (0.5 * height - min(top + TILE * (i // 2), height)) * step
    d = mix(1.0, vec(w, CAMERA + 9), a, vec(w, CAMERA + 3), b, vec(w, CAMERA + 6))
    t, _ = hit_backdrop(vec(w, CAMERA), d)
    # Beyond the backdrop nothing is drawn, but the tile's other corners may still see it.
    return along(vec(w, CAMERA), min(t, 100.0), d)


@jit
def list_tile(w: Floats, lists: Ints, left: int, top: int, width: int, height: int, who: int) -> None:
    """Note in the lists of `who` the objects that change the light on the backdrop within a tile of the image."""
    middle = DARK
    for i in range(4):
        middle = along(middle, 0.25, tile_corner(w, left, top, i, width, height))
    square = 0.0
    for i in range(4):
        away = sub(tile_corner(w, left, top, i, width, height), middle)
        square = max(square, dot(away, away))
    # The backdrop bulges a little between the corners.
    list_shadowers(w, lists, middle, 1.2 * math.sqrt(square), -1, who)
    list_tinters(w, lists, middle, 1.2 * math.sqrt(square), who)


@jit
def draw(
    w: Floats,
    lists: Ints,
    ids: npt.NDArray[np.int16],
    width: int,
    height: int,
    part: int,
    parts: int,
    light: Floats,
) -> None:
    """Fill flat `light` (height, width, 3) from the id buffer at twice the resolution: every parts-th band of tiles.

    The last of the lists belongs to the tile at hand: every thread needs its own.
    """
    who = int(w[COUNT])
    for top in range(part * TILE, height, parts * TILE):
        for left in range(0, width, TILE):
            list_tile(w, lists, left, top, width, height, who)
            for row in range(top, min(top + TILE, height)):
                for column in range(left, min(left + TILE, width)):
                    at = 3 * (row * width + column)
                    light[at], light[at + 1], light[at + 2] = pixel(w, lists, who, ids, row, column, width, height)


@inlined
def pixel(
    w: Floats, lists: Ints, who: int, ids: npt.NDArray[np.int16], row: int, column: int, width: int, height: int
) -> Vec:
    """Radiance of a pixel: in most all samples see the backdrop, and their middle is that of the pixel."""
    corner = 4 * row * width + 2 * column
    most = max(max(ids[corner], ids[corner + 1]), max(ids[corner + 2 * width], ids[corner + 2 * width + 1]))
    if most < 0:
        step = 1.0 / (FOCAL * 2 * width)
        return shade_backdrop(w, lists, who, (2 * column + 1 - width) * step, (height - 2 * row - 1) * step)
    return object_pixel(w, lists, who, ids, row, column, width, height)


@jit
def object_pixel(
    w: Floats, lists: Ints, who: int, ids: npt.NDArray[np.int16], row: int, column: int, width: int, height: int
) -> Vec:
    """Radiance of a pixel that shows an object.

    Of its four samples those that see the same thing share one ray through their middle, except for the sharp
    reflections of metal, which are followed for each.
    """
    step = 1.0 / (FOCAL * 2 * width)
    corner = 4 * row * width + 2 * column
    light = DARK
    done = 0
    for first in range(4):
        if done >> first & 1:
            continue
        name = ids[corner + first // 2 * 2 * width + first % 2]
        metal = name >= 0 and w[THINGS + STRIDE * name + METAL] > 0.0
        a, b, count = 0.0, 0.0, 0
        # Past the last sample comes the ray through the middle of those that see the same thing.
        for other in range(first, 5):
            u, v, weight = 0.0, 0.0, 0.25
            if other == 4:
                u, v, weight = a / count, b / count, 0.25 * count
            else:
                if ids[corner + other // 2 * 2 * width + other % 2] != name:
                    continue
                done |= 1 << other
                u, v = sample_ray(2 * row + other // 2, 2 * column + other % 2, 2 * height, 2 * width, SAMPLE_TURN)
                a, b, count = a + u, b + v, count + 1
                if not metal:
                    continue
            light = along(light, weight, shade(w, lists, who, name, u, v, step, other < 4, other == 4))
    return light


@jit
def develop(light: Floats, width: int, height: int, part: int, parts: int, image: npt.NDArray[np.uint8]) -> None:
    """Fill flat `image` from linear light (height, width, 3): a slight blur, like a camera's filter, then sRGB."""
    for row in range(part, height, parts):
        for channel in range(3):
            middle = blurred(light, row, 0, channel, width, height)
            left = middle
            for column in range(width):
                right = blurred(light, row, min(column + 1, width - 1), channel, width, height)
                image[3 * (row * width + column) + channel] = tone(left, middle, right)
                left, middle = middle, right


@jit
def blurred(light: Floats, row: int, column: int, channel: int, width: int, height: int) -> float:
    """Light of one channel, blurred up and down."""
    at, line = 3 * column + channel, 3 * width
    outer: float = light[line * max(row - 1, 0) + at] + light[line * min(row + 1, height - 1) + at]
    inner: float = light[line * row + at]
    return BLUR * outer + (1.0 - 2.0 * BLUR) * inner


@jit
def tone(left: float, middle: float, right: float) -> int:
    """One value of the image, 0 to 255, from light blurred up and down: blurred across, then sRGB."""
    return int(srgb(BLUR * (left + right) + (1.0 - 2.0 * BLUR) * middle) + 0.5)
