"""How many pixels of every object can be seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pfungst.world.constants import DEFAULT_HEIGHT, DEFAULT_WIDTH
from pfungst.world.renderers.pack import Ints, Packed, check_size, pack
from pfungst.world.scene import Scene


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


def count_pixels(packed: Packed, width: int, height: int) -> Ints:
    """`visible_pixels` of a packed scene."""
    from pfungst.world.renderers.ids import id_buffer
    from pfungst.world.renderers.world import lay_out

    ids, depth = np.full(height * width, -1, dtype=np.int16), np.empty(height * width)
    counts = np.empty(len(packed.kinds), dtype=np.int64)
    id_buffer(lay_out(packed, lit=False)[0], width, height, 0.0, ids, depth, counts)
    return counts
