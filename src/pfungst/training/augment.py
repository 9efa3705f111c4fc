"""Changes of training images and scenes that keep every answer, or change it in a known way; and adversarial training,
which mixes scenes that fooled a model into the questions it learnt from.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from pfungst.models import Batch, Vocabulary
from pfungst.models.base import UNKNOWN
from pfungst.world.constants import ATTRIBUTES


def shift(cells: int) -> Callable[[Batch, int], Batch]:
    """Move every image by up to `cells` pixels in both directions; its border is repeated.

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
        members=None if scene.members is None else scene.members[each, order],
    )
    return dataclasses.replace(batch, scene=moved)


def recolour(vocabulary: Vocabulary) -> Callable[[Batch, int], Batch]:
    """Let the colours change places, in every example by another permutation: in scene, question and answer.

    For models that read scenes: no colour means more than another, and 60,000 scenes become 40,320 times as many. Data
    whose questions or answers do not name all colours stay as they are.
    """
    names = ATTRIBUTES["color"]
    words = torch.from_numpy(vocabulary.encode(names, 1)[:, 0]).long()
    answers = torch.tensor([vocabulary.answer_number(name) for name in names])
    known = bool((words > UNKNOWN).all() and (answers >= 0).all())

    def apply(batch: Batch, seed: int) -> Batch:
        scene = batch.scene
        if not known or scene is None or batch.answer is None or batch.program is not None or batch.answer.ndim != 1:
            return batch
        device = batch.question.device
        drawn = torch.rand(len(batch), len(names), generator=torch.Generator().manual_seed(seed)).argsort(1).to(device)
        attributes = scene.attributes.clone()
        attributes[..., 0] = _renamed(attributes[..., 0], torch.arange(1, len(names) + 1, device=device), drawn)
        return dataclasses.replace(
            batch,
            question=_renamed(batch.question, words.to(device), drawn),
            answer=_renamed(batch.answer[:, None], answers.to(device), drawn)[:, 0],
            scene=dataclasses.replace(scene, attributes=attributes),
        )

    return apply


def _renamed(values: torch.Tensor, names: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """values (B, ...) in which the names (K,) are exchanged by the orders (B, K) of the examples; the rest stays."""
    top = int(names.max()) + 1
    table = torch.arange(top, device=values.device).repeat(len(values), 1)
    table[:, names] = names[order]
    inside = (values >= 0) & (values < top)
    return torch.where(inside, table.gather(1, values.clamp(0, top - 1).flatten(1)).view(values.shape), values)


def mixed_rows(clean: int, found: int, share: float, seed: int) -> NDArray[np.int64]:
    """Rows of the training data for adversarial training: clean ones first, so that a model forgets nothing, then
    fooling scenes, repeated until they are `share` of all (Measuring CLEVRness, "Adversarial training")."""
    wanted = max(found, round(clean * share / (1 - share)))
    rng = np.random.default_rng([seed, 0x313])
    repeated = np.concatenate([rng.permutation(found) for _ in range(-(-wanted // found))])[:wanted]
    return np.concatenate([np.arange(clean), clean + repeated]).astype(np.int64)
