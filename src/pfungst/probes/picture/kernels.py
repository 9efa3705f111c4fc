"""Pixels in integer arithmetic, so that every machine makes the same bytes (numba)."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pfungst.text.compiled import GOLDEN, compiled, stir

Pixels: TypeAlias = npt.NDArray[np.uint8]
Square: TypeAlias = npt.NDArray[np.int64]


@compiled
def byte(value: Any) -> int:
    """A whole number, clipped to what a channel holds."""
    clipped: int = min(max(value, 0), 255)
    return clipped


@compiled
def draw(key: np.uint64, out: Pixels) -> None:
    """Random bytes, by splitmix64 of the key and the place."""
    state = key
    for i in range(out.size):
        state += GOLDEN
        out[i] = stir(state) >> np.uint64(56)


@compiled
def add_noise(pixels: Pixels, key: np.uint64, sigma: int, out: Pixels) -> None:
    """Nearly normal noise of `sigma` grey levels: four uniform numbers of 16 bits, summed, have a deviation of
    37,837, and 113,511 is 2^32 / 37,837. Flat arrays."""
    state = key
    low = np.uint64(0xFFFF)
    for i in range(pixels.size):
        state += GOLDEN
        z = stir(state)
        total = (z & low) + (z >> np.uint64(16) & low) + (z >> np.uint64(32) & low) + (z >> np.uint64(48))
        value = np.int64(pixels[i]) + (((np.int64(total) - 131070) * sigma * 113511 + (1 << 31)) >> 32)
        out[i] = byte(value)


@compiled
def smooth(pixels: Pixels, reach: int, out: Pixels) -> None:
    """Mean over `reach` 64ths of a pixel to both sides along the middle axis; the edge goes on beyond the image."""
    rows, length, depth = pixels.shape
    radius, part = reach >> 6, reach & 63
    size = 64 * (2 * radius + 1) + 2 * part
    reciprocal = ((1 << 32) + size // 2) // size
    sums = np.zeros(depth, dtype=np.int64)
    for row in range(rows):
        for k in range(depth):
            sums[k] = (radius + 1) * np.int64(pixels[row, 0, k])
        for i in range(1, radius + 1):
            for k in range(depth):
                sums[k] += pixels[row, min(i, length - 1), k]
        for i in range(length):
            new, old, before = min(i + radius + 1, length - 1), max(i - radius, 0), max(i - radius - 1, 0)
            for k in range(depth):
                entering = np.int64(pixels[row, new, k])
                outer = entering + np.int64(pixels[row, before, k])
                out[row, i, k] = ((64 * sums[k] + part * outer) * reciprocal + (1 << 31)) >> 32
                sums[k] += entering - np.int64(pixels[row, old, k])


@compiled
def shrink(pixels: Pixels, out: Pixels) -> None:
    """Area average into a smaller array (height, width, channels)."""
    height, width, depth = pixels.shape
    rows, columns = out.shape[0], out.shape[1]
    area = height * width
    for row in range(rows):
        top, bottom = row * height, (row + 1) * height
        for column in range(columns):
            left, right = column * width, (column + 1) * width
            for k in range(depth):
                total = np.int64(0)
                for y in range(top // rows, (bottom + rows - 1) // rows):
                    tall = min(bottom, (y + 1) * rows) - max(top, y * rows)
                    line = np.int64(0)
                    for x in range(left // columns, (right + columns - 1) // columns):
                        wide = min(right, (x + 1) * columns) - max(left, x * columns)
                        line += wide * np.int64(pixels[y, x, k])
                    total += tall * line
                out[row, column, k] = (2 * total + area) // (2 * area)


@compiled
def enlarge(pixels: Pixels, out: Pixels) -> None:
    """Linear interpolation into a larger array (height, width, channels), in steps of 1/256."""
    rows, columns, depth = pixels.shape
    height, width = out.shape[0], out.shape[1]
    for y in range(height):
        v = min(max((2 * y + 1) * rows * 128 // height - 128, 0), (rows - 1) * 256)
        y0, fy = v >> 8, v & 255
        y1 = min(y0 + 1, rows - 1)
        for x in range(width):
            u = min(max((2 * x + 1) * columns * 128 // width - 128, 0), (columns - 1) * 256)
            x0, fx = u >> 8, u & 255
            x1 = min(x0 + 1, columns - 1)
            for k in range(depth):
                over = np.int64(pixels[y0, x0, k]) * (256 - fx) + np.int64(pixels[y0, x1, k]) * fx
                under = np.int64(pixels[y1, x0, k]) * (256 - fx) + np.int64(pixels[y1, x1, k]) * fx
                out[y, x, k] = (over * (256 - fy) + under * fy + (1 << 15)) >> 16


@compiled
def turn(pixels: Pixels, cos: int, sin: int, out: Pixels) -> None:
    """Rotation about the centre; cosine and sine in units of 1/65,536. The edge goes on beyond the image."""
    height, width, depth = pixels.shape
    for y in range(height):
        for x in range(width):
            across, down = 2 * x - (width - 1), 2 * y - (height - 1)
            u = (cos * across - sin * down + 65536 * (width - 1)) >> 1
            v = (sin * across + cos * down + 65536 * (height - 1)) >> 1
            u, v = min(max(u, 0), (width - 1) << 16), min(max(v, 0), (height - 1) << 16)
            x0, y0, fx, fy = u >> 16, v >> 16, (u >> 8) & 255, (v >> 8) & 255
            x1, y1 = min(x0 + 1, width - 1), min(y0 + 1, height - 1)
            for k in range(depth):
                over = np.int64(pixels[y0, x0, k]) * (256 - fx) + np.int64(pixels[y0, x1, k]) * fx
                under = np.int64(pixels[y1, x0, k]) * (256 - fx) + np.int64(pixels[y1, x1, k]) * fx
                out[y, x, k] = (over * (256 - fy) + under * fy + (1 << 15)) >> 16


@compiled
def fade(pixels: Pixels, share: int, out: Pixels) -> None:
    """Towards grey of the same luma (ITU-R BT.601), by `share` of 100."""
    for y in range(pixels.shape[0]):
        for x in range(pixels.shape[1]):
            red, green, blue = np.int64(pixels[y, x, 0]), np.int64(pixels[y, x, 1]), np.int64(pixels[y, x, 2])
            luma = (19595 * red + 38470 * green + 7471 * blue + 32768) >> 16
            for k in range(3):
                out[y, x, k] = (np.int64(pixels[y, x, k]) * (100 - share) + luma * share + 50) // 100


@compiled
def veil(pixels: Pixels, density: Pixels, white: int, out: Pixels) -> None:
    """Towards `white` by density / 255, pixel by pixel; density (height, width, 1)."""
    for y in range(pixels.shape[0]):
        for x in range(pixels.shape[1]):
            thick = np.int64(density[y, x, 0])
            for k in range(3):
                out[y, x, k] = (np.int64(pixels[y, x, k]) * (255 - thick) + white * thick + 127) // 255


@compiled
def split_colors(pixels: Pixels, luma: Pixels, chroma: Pixels) -> None:
    """RGB as luma (h, w, 1) and two chromas (h, w, 2), as JFIF defines them; outside the image its edge goes on."""
    height, width = pixels.shape[0], pixels.shape[1]
    for y in range(luma.shape[0]):
        for x in range(luma.shape[1]):
            row, column = min(y, height - 1), min(x, width - 1)
            red, green = np.int64(pixels[row, column, 0]), np.int64(pixels[row, column, 1])
            blue = np.int64(pixels[row, column, 2])
            luma[y, x, 0] = (19595 * red + 38470 * green + 7471 * blue + 32768) >> 16
            chroma[y, x, 0] = byte((-11059 * red - 21709 * green + 32768 * blue + (257 << 15) - 1) >> 16)
            chroma[y, x, 1] = byte((32768 * red - 27439 * green - 5329 * blue + (257 << 15) - 1) >> 16)


@compiled
def join_colors(luma: Pixels, chroma: Pixels, out: Pixels) -> None:
    """The way back from `split_colors`."""
    for y in range(out.shape[0]):
        for x in range(out.shape[1]):
            light = np.int64(luma[y, x, 0]) << 16
            cb, cr = np.int64(chroma[y, x, 0]) - 128, np.int64(chroma[y, x, 1]) - 128
            out[y, x, 0] = byte((light + 91881 * cr + 32768) >> 16)
            out[y, x, 1] = byte((light - 22554 * cb - 46802 * cr + 32768) >> 16)
            out[y, x, 2] = byte((light + 116130 * cb + 32768) >> 16)


@compiled
def multiply(one: Square, other: Square, out: Square) -> None:
    """The product of two matrices (8, 8)."""
    for i in range(8):
        for j in range(8):
            total = np.int64(0)
            for k in range(8):
                total += one[i, k] * other[k, j]
            out[i, j] = total


@compiled
def quantize(plane: Pixels, table: Square, basis: Square) -> None:
    """What JPEG loses: every block of 8 x 8 of every channel is rounded to multiples of the table, in place.

    `basis` (8, 8) is the cosine transform in units of 1/8,192; `table` (8, 8) the quantisation steps.
    """
    block, half = np.empty((8, 8), np.int64), np.empty((8, 8), np.int64)
    for k in range(plane.shape[2]):
        for top in range(0, plane.shape[0], 8):
            for left in range(0, plane.shape[1], 8):
                for i in range(8):
                    for j in range(8):
                        block[i, j] = np.int64(plane[top + i, left + j, k]) - 128
                multiply(block, basis.T, half)
                multiply(basis, half, block)
                for u in range(8):  # to the nearest step
                    for v in range(8):
                        step, size = table[u, v] << 26, abs(block[u, v])
                        block[u, v] = (size + (step >> 1)) // step * table[u, v] * (1 if block[u, v] >= 0 else -1)
                multiply(block, basis, half)
                multiply(basis.T, half, block)
                for i in range(8):
                    for j in range(8):
                        plane[top + i, left + j, k] = byte(((block[i, j] + (1 << 25)) >> 26) + 128)
