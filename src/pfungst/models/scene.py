"""Scenes as numbers and as tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pfungst.core import DataError
from pfungst.models.base import Scenes
from pfungst.world.constants import ATTRIBUTES, BOUND, MAX_OBJECTS, RELEASED_SIZE

KINDS = ("x", "y", "size", "shape", "material", "color")
"""The six tokens of an object."""
ORDER = tuple(ATTRIBUTES)
"""The order of `Scenes.attributes`: colour, shape, size, material."""


class SceneTokens(nn.Module):
    """10 objects -> 10 x 6 tokens (B, N, 6, d).

    Every kind of token has a projection of its own and a learnt embedding of its kind; objects that are not there are
    the empty token of every kind.
    """

    def __init__(self, size: int, empty: bool = True) -> None:
        """Without `empty`, positions of objects that are not there are 0: for networks that leave them out anyway."""
        super().__init__()
        self.places = nn.ModuleList(nn.Linear(1, size) for _ in range(2))
        self.words = nn.ModuleDict({name: nn.Embedding(len(ATTRIBUTES[name]) + 1, size) for name in KINDS[2:]})
        self.empty = nn.Parameter(torch.zeros(2, size)) if empty else None
        self.kinds = nn.Parameter(torch.empty(len(KINDS), size).normal_(std=size**-0.5))

    def forward(self, scene: Scenes) -> Tensor:
        there = scene.present[..., None]
        tokens = [
            torch.where(
                there, project(scene.positions[..., i : i + 1] / BOUND), 0.0 if self.empty is None else self.empty[i]
            )
            for i, project in enumerate(self.places)
        ]
        tokens += [self.words[name](scene.attributes[..., ORDER.index(name)]) for name in KINDS[2:]]
        return torch.stack(tokens, 2) + self.kinds


def encode_scenes(scenes: Sequence[Mapping[str, Any]], objects: int = MAX_OBJECTS) -> dict[str, np.ndarray[Any, Any]]:
    """Published scene dictionaries as arrays: `attributes` (S, N, 4) uint8, `positions` and `pixels` (S, N, 2) float32.

    Raises DataError for more than `objects` objects, or an attribute that CLEVR does not have.
    """
    attributes = np.zeros((len(scenes), objects, len(ORDER)), np.uint8)
    positions = np.zeros((len(scenes), objects, 2), np.float32)
    pixels = np.full((len(scenes), objects, 2), np.nan, np.float32)
    numbers = {name: {word: i + 1 for i, word in enumerate(words)} for name, words in ATTRIBUTES.items()}
    for s, scene in enumerate(scenes):
        listed = scene.get("objects")
        place = f"Scene {scene['image_filename']}" if "image_filename" in scene else "The scene"
        if not isinstance(listed, Sequence) or not listed:
            raise DataError(f"{place}: it has no objects, and a model that reads scenes needs them.")
        if len(listed) > objects:
            raise DataError(
                f"{place}: it has {len(listed)} objects; this model reads at most {objects}. "
                "Leave such scenes out, or ask a model that looks at images."
            )
        width, height = scene.get("image_size") or RELEASED_SIZE
        for o, one in enumerate(listed):
            try:
                attributes[s, o] = [numbers[name][one[name]] for name in ORDER]
                positions[s, o] = one["3d_coords"][:2]
            except (KeyError, TypeError, ValueError) as error:
                raise DataError(f"{place}, object {o}: its attributes or coordinates are unknown ({error}).") from error
            if one.get("pixel_coords") is not None:
                pixels[s, o] = one["pixel_coords"][0] / width, one["pixel_coords"][1] / height
    return {"attributes": attributes, "positions": positions, "pixels": pixels}


def to_scenes(arrays: Mapping[str, np.ndarray[Any, Any]]) -> Scenes:
    """The arrays of `encode_scenes` as tensors."""
    return Scenes(
        torch.from_numpy(arrays["attributes"].astype(np.int64)),
        torch.from_numpy(np.ascontiguousarray(arrays["positions"], dtype=np.float32)),
        torch.from_numpy(np.ascontiguousarray(arrays["pixels"], dtype=np.float32)),
    )
