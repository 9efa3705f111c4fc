"""Visible pixels of many layouts from sprites: every object is drawn once at every place it stands in (numba)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pfungst.world.renderers.geometry import hit, into
from pfungst.world.renderers.ids import pixel_box, sample_ray
from pfungst.world.renderers.jit import jit, mix, sub, vec
from pfungst.world.renderers.pack import Floats, Ints
from pfungst.world.renderers.world import CAMERA, KIND, STRIDE, THINGS, X, Y

LEFT, TOP, RIGHT, BOTTOM, START, PIXELS = range(6)
"""Columns of a sprite's record: its rectangle, where its depths begin, how many pixels it covers."""


@jit
def measure_sprites(w: Floats, owners: Ints, places: Floats, width: int, height: int, records: Ints) -> int:
    """Note every sprite's rectangle and where its depths begin: object `owners[s]` at `places[s]`; how many in all."""
    start = 0
    for s in range(owners.size):
        k = THINGS + STRIDE * owners[s]
        w[k + X], w[k + Y] = places[s, 0], places[s, 1]
        left, top, right, bottom = pixel_box(w, owners[s], width, height)
        records[s, LEFT], records[s, TOP], records[s, RIGHT], records[s, BOTTOM] = left, top, right, bottom
        records[s, START] = start
        start += (right - left) * (bottom - top)
    return start


@jit
def draw_sprites(
    w: Floats,
    owners: Ints,
    places: Floats,
    width: int,
    height: int,
    part: int,
    parts: int,
    records: Ints,
    depth: Floats,
    spans: Floats,
) -> None:
    """Draw every parts-th sprite: depths (infinite beside the object), pixels, nearest and farthest depth.

    Objects are moved about in `w`: every thread needs its own.
    """
    for s in range(part, owners.size, parts):
        k = THINGS + STRIDE * owners[s]
        w[k + X], w[k + Y] = places[s, 0], places[s, 1]
        draw_sprite(w, owners[s], s, width, height, records, depth, spans)


@jit
def draw_sprite(
    w: Floats, number: int, s: int, width: int, height: int, records: Ints, depth: Floats, spans: Floats
) -> None:
    # The same arithmetic as the id buffer's, so that both see the same pixels.
    k = THINGS + STRIDE * number
    kind = int(w[k + KIND])
    o = into(w, k, sub(vec(w, CAMERA), vec(w, k + X)))
    right, up, forward = into(w, k, vec(w, CAMERA + 3)), into(w, k, vec(w, CAMERA + 6)), into(w, k, vec(w, CAMERA + 9))
    place, pixels = records[s, START], 0
    near, far = np.inf, 0.0
    for row in range(records[s, TOP], records[s, BOTTOM]):
        for column in range(records[s, LEFT], records[s, RIGHT]):
            a, b = sample_ray(row, column, height, width, 0.0)
            t = hit(kind, o, mix(1.0, forward, a, right, b, up))
            depth[place] = t
            place += 1
            if t < np.inf:
                pixels += 1
                near, far = min(near, t), max(far, t)
    records[s, PIXELS] = pixels
    spans[s, 0], spans[s, 1] = near, far


@jit
def count_layouts(
    layouts: Ints,
    first: int,
    last: int,
    records: Ints,
    spans: Floats,
    depth: Floats,
    hidden: npt.NDArray[np.bool_],
    counts: Ints,
) -> None:
    """Visible pixels `counts` of layouts of sprites, both (layouts, objects), from the first to before the last one.

    `hidden` is room for as many cells as the largest sprite has, all False; every thread needs its own.
    """
    for number in range(first, last):
        for i in range(layouts.shape[1]):
            counts[number, i] = count_one(layouts, number, i, records, spans, depth, hidden)


@jit
def count_one(
    layouts: Ints, number: int, i: int, records: Ints, spans: Floats, depth: Floats, hidden: npt.NDArray[np.bool_]
) -> int:
    """Pixels of one object that no other hides; `hidden` is room, all False before and after."""
    mine = layouts[number, i]
    visible: int = records[mine, PIXELS]
    hiders = 0
    for j in range(layouts.shape[1]):
        if j != i and may_hide(records, spans, layouts[number, j], mine):
            hiders += 1
    for j in range(layouts.shape[1]):
        if j != i and may_hide(records, spans, layouts[number, j], mine):
            # Of two at the same depth the id buffer keeps the first.
            visible -= hide(records, depth, mine, layouts[number, j], j < i, hiders > 1, hidden)
    if hiders > 1:
        cells = (records[mine, RIGHT] - records[mine, LEFT]) * (records[mine, BOTTOM] - records[mine, TOP])
        hidden[:cells] = False
    return visible


@jit
def hide(
    records: Ints, depth: Floats, mine: int, other: int, first: bool, shared: bool, hidden: npt.NDArray[np.bool_]
) -> int:
    """Pixels of `mine` that `other` hides, and that were not hidden before where several do it (`shared`)."""
    left, right = max(records[mine, LEFT], records[other, LEFT]), min(records[mine, RIGHT], records[other, RIGHT])
    top, bottom = max(records[mine, TOP], records[other, TOP]), min(records[mine, BOTTOM], records[other, BOTTOM])
    wide, other_wide = records[mine, RIGHT] - records[mine, LEFT], records[other, RIGHT] - records[other, LEFT]
    count = 0
    for row in range(top, bottom):
        line = (row - records[mine, TOP]) * wide - records[mine, LEFT]
        a = records[mine, START] + line
        b = records[other, START] + (row - records[other, TOP]) * other_wide - records[other, LEFT]
        for column in range(left, right):
            t, rival = depth[a + column], depth[b + column]
            if t < np.inf and (rival < t or (first and rival == t)):
                if not shared:
                    count += 1
                elif not hidden[line + column]:
                    hidden[line + column] = True
                    count += 1
    return count


@jit
def may_hide(records: Ints, spans: Floats, other: int, mine: int) -> bool:
    hides: bool = (
        spans[other, 0] <= spans[mine, 1]
        and records[other, LEFT] < records[mine, RIGHT]
        and records[other, RIGHT] > records[mine, LEFT]
        and records[other, TOP] < records[mine, BOTTOM]
        and records[other, BOTTOM] > records[mine, TOP]
    )
    return hides
