"""The two scenes of a row of games.parquet, as a player saw them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pfungst.probes.game.rows import scene_after
from pfungst.world.constants import DEFAULT_HEIGHT, DEFAULT_WIDTH
from pfungst.world.images import SceneImage


def scenes_of(row: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Before and after, as published dictionaries."""
    return json.loads(row["scene"]), scene_after(row)


def image_of(scene: Mapping[str, Any]) -> SceneImage:
    """The image of a scene in the size it says."""
    width, height = scene.get("image_size") or (DEFAULT_WIDTH, DEFAULT_HEIGHT)
    return SceneImage(scene, int(width), int(height))
