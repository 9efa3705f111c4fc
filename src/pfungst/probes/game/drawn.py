"""The two scenes of a row of games.parquet, as a player saw them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pfungst.core import LazyImage
from pfungst.probes.game.rows import scene_after

Picture = npt.NDArray[np.uint8]


def scenes_of(row: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Before and after, as published dictionaries."""
    return json.loads(row["scene"]), scene_after(row)


def picture_of(scene: Mapping[str, Any]) -> Picture:
    """The scene drawn in the size it says, uint8 (height, width, 3)."""
    from pfungst.world import render

    width, height = scene.get("image_size") or (320, 240)
    return render(scene, int(width), int(height))


def image_of(scene: Mapping[str, Any]) -> LazyImage:
    """The same as an image for a model."""
    digest = hashlib.sha256(json.dumps(scene, sort_keys=True).encode()).hexdigest()
    return LazyImage(digest, lambda: picture_of(scene))
