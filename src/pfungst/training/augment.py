"""Changes of training pictures that keep every answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch
import torch.nn.functional as F

from pfungst.models import Batch


def shift(cells: int) -> Callable[[Batch, int], Batch]:
    """Move every picture by up to `cells` pixels in both directions; its border is repeated.

    Left stays left and large stays large; a mirror would not keep that. (Santoro et al. 2017 pad and crop likewise.)
    Centres of objects move along.
    """

    def apply(batch: Batch, seed: int) -> Batch:
        if batch.image is None or not cells:
            return batch
        image = batch.image
        count, _, height, width = image.shape
        draw = torch.Generator().manual_seed(seed)
        offsets = torch.randint(0, 2 * cells + 1, (2, count), generator=draw).to(image.device)
        padded = F.pad(image.float(), (cells,) * 4, mode="replicate").to(image.dtype)
        rows = offsets[0][:, None] + torch.arange(height, device=image.device)
        columns = offsets[1][:, None] + torch.arange(width, device=image.device)
        each = torch.arange(count, device=image.device)[:, None, None]
        moved = padded.permute(0, 2, 3, 1)[each, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
        scene = batch.scene
        if scene is not None and scene.pixels is not None:
            by = torch.stack([(cells - offsets[1]) / width, (cells - offsets[0]) / height], -1)
            scene = dataclasses.replace(scene, pixels=scene.pixels + by[:, None])
        return dataclasses.replace(batch, image=moved.contiguous(), scene=scene)

    return apply


def shuffle_objects(batch: Batch, seed: int) -> Batch:
    """List the objects of every scene in another order: it has none, and a model that numbers them must not care."""
    scene = batch.scene
    if scene is None:
        return batch
    shape = scene.attributes.shape[:2]
    order = torch.rand(shape, generator=torch.Generator().manual_seed(seed)).argsort(1).to(scene.attributes.device)
    each = torch.arange(shape[0], device=order.device)[:, None]
    moved = dataclasses.replace(
        scene,
        attributes=scene.attributes[each, order],
        positions=scene.positions[each, order],
        pixels=None if scene.pixels is None else scene.pixels[each, order],
    )
    return dataclasses.replace(batch, scene=moved)
