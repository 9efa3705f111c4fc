"""How many pixels of every object can be seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pfungst.world.constants import DEFAULT_HEIGHT, DEFAULT_WIDTH
from pfungst.world.renderers.pack import Floats, Ints, Packed, check_size, pack
from pfungst.world.scene import Scene, check_positions

_MAX_SPRITE_CELLS = 1 << 26
"""Depths kept at once by `visible_pixels_many` (512 MiB); layouts beyond that are counted one by one."""


def visible_pixels(
    scene: Scene | Mapping[str, Any],
    width: int = DEFAULT_WIDTH,
    height: int = DEFAULT_HEIGHT,
    camera: Sequence[float] | None = None,
) -> Ints:
    """Pixels of the image whose centre shows each object, int64 in object order.

    The published generator keeps a scene only if every object shows 200 pixels at 320x240. `camera` is a position; by
    default the scene's own, else the base camera.
    """
    width, height = check_size(width, height)
    return count_pixels(pack(scene, camera), width, height)


def visible_pixels_many(
    scene: Scene | Mapping[str, Any],
    positions: npt.ArrayLike,
    width: int = DEFAULT_WIDTH,
    height: int = DEFAULT_HEIGHT,
    camera: Sequence[float] | None = None,
) -> Ints:
    """Visible pixels of many layouts of one scene's objects: int64 (layouts, objects).

    `positions` (layouts, objects, 2) are the centres on the ground. Every object is drawn once at every place it
    stands in, and the layouts are composed from these sprites: exactly the counts of `visible_pixels`, tens of
    thousands of layouts a second where places repeat, as on the game's 7x7 grid.
    """
    from pfungst.world.renderers.jit import spread, threads
    from pfungst.world.renderers.sprites import count_layouts, draw_sprites, measure_sprites
    from pfungst.world.renderers.world import lay_out

    width, height = check_size(width, height)
    packed = pack(scene, camera)
    where = check_positions(positions, len(packed.kinds))
    owners, places, layouts = _places(where)
    w = lay_out(packed, lit=False)[0]
    records, spans = np.zeros((len(owners), 6), dtype=np.int64), np.empty((len(owners), 2))
    cells = measure_sprites(w, owners, places, width, height, records)
    if cells > _MAX_SPRITE_CELLS:
        return np.stack([count_pixels(packed.moved(one), width, height) for one in where])
    depth, counts = np.empty(cells), np.empty(layouts.shape, dtype=np.int64)
    parts = threads()

    def draw(part: int) -> None:
        draw_sprites(w.copy(), owners, places, width, height, part, parts, records, depth, spans)

    spread(parts, draw)
    largest = int(((records[:, 2] - records[:, 0]) * (records[:, 3] - records[:, 1])).max(initial=0))
    edges = [len(layouts) * part // parts for part in range(parts + 1)]

    def count(part: int) -> None:
        hidden = np.zeros(largest, dtype=np.bool_)
        count_layouts(layouts, edges[part], edges[part + 1], records, spans, depth, hidden, counts)

    spread(parts, count)
    return counts


def count_pixels(packed: Packed, width: int, height: int) -> Ints:
    """`visible_pixels` of a packed scene."""
    from pfungst.world.renderers.ids import id_buffer
    from pfungst.world.renderers.world import lay_out

    ids, depth = np.full(height * width, -1, dtype=np.int16), np.empty(height * width)
    counts = np.empty(len(packed.kinds), dtype=np.int64)
    id_buffer(lay_out(packed, lit=False)[0], width, height, 0.0, ids, depth, counts)
    return counts


def _places(where: Floats) -> tuple[Ints, Floats, Ints]:
    """Every object's different places: whose each is (sprites,), where (sprites, 2), and the layouts in sprites."""
    owners, places, layouts = [], [], np.empty(where.shape[:2], dtype=np.int64)
    first = 0
    for k in range(where.shape[1]):
        # A complex number orders and compares like the pair.
        pairs, layouts[:, k] = np.unique(where[:, k, 0] + 1j * where[:, k, 1], return_inverse=True)
        layouts[:, k] += first
        first += len(pairs)
        owners.append(np.full(len(pairs), k))
        places.append(np.stack([pairs.real, pairs.imag], axis=1))
    return np.concatenate(owners), np.concatenate(places), layouts
