"""Objects found by a network, matched with the objects that are there."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn

from pfungst.models.base import Scenes
from pfungst.models.scene import ORDER
from pfungst.world.constants import ATTRIBUTES

CLASSES = tuple(len(ATTRIBUTES[name]) + 1 for name in ORDER)
"""Classes of every attribute; class 0 is "no object"."""


class ObjectHead(nn.Module):
    """Slots (B, K, d) -> attribute logits (B, K, 9 + 4 + 3 + 3) and a place (B, K, 2)."""

    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.attributes = nn.Sequential(nn.Linear(size, hidden), nn.ReLU(), nn.Linear(hidden, sum(CLASSES)))
        self.place = nn.Sequential(nn.Linear(size, hidden), nn.ReLU(), nn.Linear(hidden, 2))

    def forward(self, slots: Tensor) -> tuple[Tensor, Tensor]:
        return self.attributes(slots), self.place(slots)


def assign(cost: NDArray[Any]) -> NDArray[np.int64]:
    """The cheapest way to give every row a column of its own: cost (B, N, M) with N <= M -> columns (B, N)."""
    _, rows, columns = cost.shape
    if rows > columns:
        raise ValueError(f"{rows} rows cannot each have their own column among {columns}.")
    # What a diverged network says is NaN: the training loop tells, not the matching.
    known = np.nan_to_num(cost)
    found = [linear_sum_assignment(matrix)[1] for matrix in known]
    return np.array(found, np.int64).reshape(cost.shape[:2])


Matches = tuple[Tensor, Tensor, Tensor]
"""Scene, object of the scene and slot of every object that found a slot, (n,) each."""


def match(logits: Tensor, places: Tensor, scene: Scenes, true_places: Tensor) -> Matches:
    """The cheapest way to give every object a slot of its own: places near each other (5 times the L1 distance, where
    the place is known) and attributes that are likely. Shapes as in `detection_losses`."""
    # Rows that are empty in all scenes need no slot, and objects beyond the slots can have none.
    rows = min(int(scene.present.sum(-1).max()), logits.shape[1])
    attributes, present = scene.attributes[:, :rows], scene.present[:, :rows]
    known = torch.isfinite(true_places[:, :rows]).all(-1) & present
    with torch.no_grad():
        cost = 5 * torch.cdist(torch.nan_to_num(true_places[:, :rows]), places.float(), p=1) * known[..., None]
        for index, part in enumerate(torch.split(logits.float(), list(CLASSES), -1)):
            chance = part.softmax(-1)
            wanted = attributes[..., index]
            cost = cost - chance.gather(2, wanted[:, None].expand(-1, part.shape[1], -1)).transpose(1, 2)
        cost = cost * present[..., None]
    columns = torch.from_numpy(assign(cost.cpu().numpy())).to(logits.device)
    b, n = torch.nonzero(present, as_tuple=True)
    return b, n, columns[b, n]


def detection_losses(
    logits: Tensor,
    places: Tensor,
    scene: Scenes,
    true_places: Tensor,
    nothing: float = 0.1,
    matches: Matches | None = None,
) -> dict[str, Tensor]:
    """Losses of a set of found objects after matching it with the scene.

    logits (B, K, 19), places (B, K, 2), true_places (B, N, 2), NaN where unknown. A slot without a partner should say
    "no object" (weight `nothing`, as in DETR).
    """
    b, n, slot = match(logits, places, scene, true_places) if matches is None else matches
    loss = logits.new_zeros(())
    for index, part in enumerate(torch.split(logits.float(), list(CLASSES), -1)):
        wanted = torch.zeros(part.shape[:2], dtype=torch.int64, device=part.device)
        wanted[b, slot] = scene.attributes[b, n, index]
        weight = torch.where(wanted > 0, 1.0, nothing)
        each = F.cross_entropy(part.transpose(1, 2), wanted, reduction="none") * weight
        loss = loss + each.sum() / weight.sum()
    known = torch.isfinite(true_places[b, n]).all(-1)
    off = (places.float()[b, slot] - torch.nan_to_num(true_places[b, n])).abs().sum(-1) * known
    return {"attributes": loss, "places": 5 * off.sum() / known.sum().clamp(min=1)}


def found_objects(
    logits: Tensor, places: Tensor | None = None, near: tuple[float, float] = (0.0, 0.0)
) -> list[list[dict[str, str]]]:
    """Logits (B, K, 19) -> the objects of every image: their attributes in words, as in a scene.

    With places (B, K, 2), slots that say the same of the same place are one object: less than `near` apart in both
    directions.
    """
    chosen = torch.stack([part.argmax(-1) for part in torch.split(logits, list(CLASSES), -1)], -1)
    # A slot that is no object by any of the four attributes is none: half an object answers no question.
    there = (chosen > 0).all(-1)
    if places is not None:
        same = (chosen[:, :, None] == chosen[:, None]).all(-1)
        same &= ((places[:, :, None] - places[:, None]).abs() < places.new_tensor(near)).all(-1)
        there &= ~(same & there[:, None]).tril(-1).any(-1)
    return [_in_words(slots[found].tolist()) for slots, found in zip(chosen, there, strict=True)]


def same_objects(one: list[dict[str, str]], other: list[dict[str, str]]) -> bool:
    """Whether two images show the same objects, wherever they stand: the fairness check of the game (B.6)."""
    first, second = (Counter(tuple(found[name] for name in ORDER) for found in objects) for objects in (one, other))
    return first == second


def true_objects(scene: Scenes) -> list[list[dict[str, str]]]:
    """The objects of every scene, in words."""
    return [_in_words([row for row in rows if row[0]]) for rows in scene.attributes.tolist()]


def _in_words(rows: list[list[int]]) -> list[dict[str, str]]:
    return [{name: ATTRIBUTES[name][n - 1] for name, n in zip(ORDER, row, strict=True)} for row in rows]


def all_found(found: list[list[dict[str, str]]], scene: Scenes | None) -> Tensor:
    """(B,): whether exactly the objects of the scene were found."""
    if scene is None:
        raise ValueError("This batch has no scenes to compare with.")
    pairs = zip(found, true_objects(scene), strict=True)
    return torch.tensor([float(same_objects(a, b)) for a, b in pairs], device=scene.attributes.device)


def centres(scene: Scenes, shape: tuple[int, int]) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The cells that hold a centre: scene, row and column of each, its object, and its place in the cell (n, 2)."""
    assert scene.pixels is not None
    height, width = shape
    scale = torch.tensor([width, height], device=scene.pixels.device, dtype=scene.pixels.dtype)
    places = scene.pixels * scale
    known = scene.present & torch.isfinite(places).all(-1)
    known = known & (places >= 0).all(-1) & (places < scale).all(-1)
    b, which = torch.nonzero(known, as_tuple=True)
    place = places[b, which]
    # Those in front come last, and what is written last stays; on a GPU that is no promise, so keep one of each cell.
    key = (b * height + place[:, 1].long()) * width + place[:, 0].long()
    order = torch.argsort(key * 1.0e3 + place[:, 1].double() * (999 / height), stable=True)
    key = key[order]
    last = torch.cat([key[1:] != key[:-1], key.new_ones(1, dtype=torch.bool)]) if len(key) else key.bool()
    chosen = order[last]
    place = place[chosen]
    column, row = place[:, 0].long(), place[:, 1].long()
    return b[chosen], row, column, which[chosen], place - torch.stack([column, row], 1)


def centre_loss(logits: Tensor, scene: Scenes) -> Tensor:
    """Which cells of a grid hold the centre of an object: logits (B, H, W)."""
    b, row, column, _, _ = centres(scene, (logits.shape[1], logits.shape[2]))
    wanted = torch.zeros_like(logits)
    wanted[b, row, column] = 1.0
    # One cell in thirty is a centre.
    return 10 * F.binary_cross_entropy_with_logits(logits, wanted)
