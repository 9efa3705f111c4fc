"""Slot Attention with an attribute classifier (Locatello et al. 2020), the fairness check of the game.

    image -> CNN -> + places -> layer norm, two layers -> inputs (B, H*W, d)
    slots (B, K, d) drawn from a learnt normal; 3 times:
        weights = softmax over the slots of (k(inputs) . q(slots)) / sqrt(d): the slots compete for every cell
        slots = GRU(mean of v(inputs), weighted and normed over the cells; slots), then slots + two layers(norm slots)
    every slot -> a transposed CNN -> colours and a mask; masks, softmax over the slots, mix the image anew
    every slot -> attributes of an object, or "no object", and its place in the image

The pre-trained network of Measuring CLEVRness, B.6, found objects without labels and had a classifier trained on
top: `supervised=False`, the preset `paper`. It needs hundreds of thousands of steps until slots hold on to objects.
The other presets get there in thousands, with what that paper does not have:

- the classifier's gradient reaches the slots (`supervised`), as in its own experiments on sets of properties;
- every slot begins as a learnt vector of its own (`learnt`). Slots that begin alike end alike: several hold on to the
  same object, and each calls itself one. In our runs this decides whether it learns at all;
- a training loss says which cell to look at (`look`): the cell of the object that a slot is matched with should be the
  slot's alone, and its only one. Attention begins nearly even, so that every slot sees the mean of all cells. It
  learns sooner with it.

Nothing of a scene is told when it looks at an image. Slots that say the same of the same place are read as one object.
Asked for the same image it gives the same slots: where they are drawn, their noise is fixed when it does not train.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pfungst.models.base import Batch, Model, Output, Scenes, Sizes
from pfungst.models.layers import Grid, coordinates, pixels
from pfungst.models.objects import Matches, ObjectHead, all_found, detection_losses, found_objects, match

EPSILON = 1e-8


@dataclass(frozen=True)
class SlotAttentionConfig:
    """Sizes of the published network for scenes of up to 10 objects."""

    slots: int = 11
    iterations: int = 3
    size: int = 64
    hidden: int = 128
    """Of the residual layers after the GRU."""
    head: int = 64
    """Of the attribute classifier."""
    decoder: int = 64
    """Channels of the decoder; 0 leaves the reconstruction out."""
    supervised: bool = False
    """Whether the classifier's gradient reaches the slots."""
    stem: tuple[int, ...] = (64, 64, 64, 64)
    """Channels of the CNN; none: features come from outside."""
    strides: tuple[int, ...] = (1, 1, 1, 1)
    """Strides of the published CNN, which has 5x5 convolutions and no normalisation; none: the small CNN of the zoo,
    3x3 convolutions of stride 2 with batch normalisation."""
    learnt: bool = False
    """Whether every slot begins as a learnt vector of its own, not as noise that is the same for all."""
    look: float = 0.0
    """Weight of the loss on where matched slots look; needs the pixels of the objects."""
    nothing: float = 0.1
    """Weight of the loss on slots that have no object."""


class SlotAttention(nn.Module):
    """Inputs (B, N, d), first slots (B, K, d) -> slots (B, K, d), weights over the inputs (B, K, N)."""

    def __init__(self, size: int, hidden: int, iterations: int) -> None:
        super().__init__()
        self.iterations = iterations
        self.input_norm = nn.LayerNorm(size)
        self.slot_norm = nn.LayerNorm(size)
        self.query = nn.Linear(size, size, bias=False)
        self.key = nn.Linear(size, size, bias=False)
        self.value = nn.Linear(size, size, bias=False)
        for layer in (self.query, self.key, self.value):
            # Scores of a spread of 1, as published; torch's own first weights make it a third.
            nn.init.xavier_uniform_(layer.weight)
        self.update = nn.GRUCell(size, size)
        self.refine = nn.Sequential(nn.LayerNorm(size), nn.Linear(size, hidden), nn.ReLU(), nn.Linear(hidden, size))

    def forward(self, inputs: Tensor, slots: Tensor) -> tuple[Tensor, Tensor]:
        inputs = self.input_norm(inputs)
        keys, values = self.key(inputs), self.value(inputs)
        weights = inputs.new_zeros(0)
        for _ in range(self.iterations):
            queries = self.query(self.slot_norm(slots))
            scores = torch.einsum("bkd,bnd->bkn", queries, keys) * queries.shape[-1] ** -0.5
            weights = scores.float().softmax(1)
            updates = torch.einsum("bkn,bnd->bkd", shares(weights).to(values.dtype), values)
            slots = self.update(updates.flatten(0, 1), slots.flatten(0, 1)).view_as(slots)
            slots = slots + self.refine(slots)
        return slots, weights


def shares(weights: Tensor) -> Tensor:
    """What every cell has of a slot's mean: weights (B, K, N), normed over the cells."""
    weights = weights + EPSILON
    return weights / weights.sum(-1, keepdim=True)


class SlotAttentionModel(Model):
    """picture -> objects. `logits` are the attribute logits (B, K, 19); `objects(output)` puts them into words.

    Maps: `slots` (B, K, H, W), `places` (B, K, 2) column and row as a share of width and height.
    """

    Config = SlotAttentionConfig
    PRESETS: ClassVar[dict[str, Any]] = {
        "paper": SlotAttentionConfig(),
        "compact": SlotAttentionConfig(
            16, 4, 64, 128, 96, 0, True, (48, 96, 96), (), learnt=True, look=1.0, nothing=0.4
        ),
        "features": SlotAttentionConfig(16, 4, 64, 128, 96, 0, True, (), (), learnt=True, look=1.0, nothing=0.4),
        "tiny": SlotAttentionConfig(5, 2, 16, 32, 32, 8, True, (8, 8), ()),
    }
    reads: ClassVar[frozenset[str]] = frozenset({"image"})
    learns_from: frozenset[str] = frozenset({"scene"})

    def __init__(self, sizes: Sizes, config: SlotAttentionConfig) -> None:
        super().__init__(sizes, config)
        size = config.size
        self.grid = Grid(sizes, () if config.strides else config.stem)
        channels, self.shape = self.grid.channels, (self.grid.height, self.grid.width)
        self.front: nn.Module = nn.Identity()
        if config.strides:
            self.front, channels, self.shape = _published(sizes.image, config)
        elif not config.stem:
            # Features from outside: their means are much larger than what differs between cells.
            self.front = nn.BatchNorm2d(channels)
        self.places = nn.Conv2d(4, channels, 1)
        nn.init.normal_(self.places.weight)
        self.enter = nn.Sequential(
            nn.LayerNorm(channels),
            nn.Linear(channels, size),
            nn.ReLU(),
            nn.Linear(size, size),
        )
        self.mean = nn.Parameter(torch.empty(size).normal_(std=size**-0.5)) if not config.learnt else None
        self.spread = nn.Parameter(torch.zeros(size)) if not config.learnt else None
        self.begin = nn.Parameter(torch.randn(config.slots, size)) if config.learnt else None
        self.attention = SlotAttention(size, config.hidden, config.iterations)
        self.head = ObjectHead(size, config.head)
        self.decoder = Decoder(size, config.decoder, sizes.image) if config.decoder else None

    def forward(self, batch: Batch) -> Output:
        grid = self.front(self.grid(batch))
        near = coordinates(grid)
        grid = grid + self.places(torch.cat([near, -near], 1))
        inputs = self.enter(grid.flatten(2).transpose(1, 2))
        slots, weights = self.attention(inputs, self.first(len(batch), inputs))
        logits, places = self.head(slots if self.config.supervised else slots.detach())
        extra: dict[str, Tensor] = {}
        if self.decoder is not None and self.training:
            extra["picture"], extra["masks"] = self.decoder(slots)
        return Output(logits, {"slots": torch.unflatten(weights, -1, self.shape), "places": (places + 1) / 2}, extra)

    def first(self, count: int, like: Tensor) -> Tensor:
        """Slots before the first look: learnt ones, or fresh noise in training and always the same noise otherwise."""
        if self.begin is not None:
            return self.begin.expand(count, -1, -1).to(like.dtype)
        assert self.mean is not None and self.spread is not None
        shape = (self.config.slots, self.config.size)
        if self.training:
            noise = torch.randn(count, *shape, device=like.device)
        else:
            fixed = torch.Generator().manual_seed(0)
            noise = torch.randn(shape, generator=fixed).to(like.device).expand(count, -1, -1)
        return (self.mean + F.softplus(self.spread) * noise).to(like.dtype)

    def losses(self, batch: Batch, output: Output) -> dict[str, Tensor]:
        scene = batch.scene
        if scene is None:
            raise ValueError("This model learns from scenes, and the batch has none.")
        # From -1 to 1, as the cells' places are; a scene without pixels is matched by attributes alone.
        found = output.maps["places"] * 2 - 1
        true = torch.full_like(scene.positions, torch.nan) if scene.pixels is None else scene.pixels * 2 - 1
        matches = match(output.logits, found, scene, true)
        losses = detection_losses(output.logits, found, scene, true, self.config.nothing, matches)
        if self.config.look:
            losses["look"] = self.config.look * look_loss(output.maps["slots"], scene, matches)
        if "picture" in output.extra and batch.image is not None:
            losses["picture"] = F.mse_loss(output.extra["picture"].float(), pixels(batch.image))
        return losses

    def correct(self, batch: Batch, output: Output) -> Tensor:
        """(B,): whether exactly the objects of the scene were found."""
        return all_found(self.objects(output), batch.scene)

    def objects(self, output: Output) -> list[list[dict[str, str]]]:
        """The objects found in every image: colour, shape, size, material.

        Two slots that share an object both call it by its name: within half a cell of each other they are one.
        """
        height, width = self.shape
        return found_objects(output.logits, output.maps["places"], (0.5 / width, 0.5 / height))


def look_loss(weights: Tensor, scene: Scenes, matches: Matches) -> Tensor:
    """-log of a matched slot's weight at its object's cell, and of the share that this cell has of the slot.

    weights (B, K, H, W). The first is least where no other slot has anything of the cell, the second where the slot has
    nothing of any other cell. Objects whose pixels are unknown or outside of the image do not count.
    """
    if scene.pixels is None:
        raise ValueError("This model learns where to look from the pixels of the objects, and the batch has none.")
    height, width = weights.shape[2:]
    b, n, slot = matches
    column, row = (scene.pixels[b, n] * scene.pixels.new_tensor([width, height])).unbind(-1)
    known = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    b, slot, column, row = (part[known] for part in (b, slot, column, row))
    cell = row.long() * width + column.long()
    weights = weights.flatten(2)
    own, share = weights[b, slot, cell], shares(weights)[b, slot, cell]
    # One value is missing where a batch has no known pixel: a sum of nothing over at least 1.
    return -(own.clamp(min=1e-6).log() + share.clamp(min=1e-6).log()).sum() / max(1, len(b))


def _published(image: tuple[int, int, int], config: SlotAttentionConfig) -> tuple[nn.Module, int, tuple[int, int]]:
    """The published CNN with its channels and the size of its grid."""
    layers: list[nn.Module] = []
    before, height, width = image
    for after, stride in zip(config.stem, config.strides, strict=True):
        layers += [nn.Conv2d(before, after, 5, stride, 2), nn.ReLU()]
        before, height, width = after, -(-height // stride), -(-width // stride)
    return nn.Sequential(*layers), before, (height, width)


class Decoder(nn.Module):
    """Slots (B, K, d) -> the image (B, C, H, W) and every slot's mask (B, K, H, W).

    A slot is laid on all cells of a grid of a 16th of the size, with their places; then 5x5 transposed convolutions,
    four of stride 2 and one of stride 1, and a 3x3 one for colours and mask.
    """

    def __init__(self, size: int, channels: int, image: tuple[int, int, int]) -> None:
        super().__init__()
        self.colours, *self.picture = image
        self.start = tuple(-(-side // 16) for side in self.picture)
        self.places = nn.Conv2d(4, size, 1)
        layers: list[nn.Module] = []
        before = size
        for stride in (2, 2, 2, 2, 1):
            layers += [nn.ConvTranspose2d(before, channels, 5, stride, 2, stride - 1), nn.ReLU()]
            before = channels
        self.layers = nn.Sequential(*layers, nn.Conv2d(channels, self.colours + 1, 3, padding=1))

    def forward(self, slots: Tensor) -> tuple[Tensor, Tensor]:
        batch, count = slots.shape[:2]
        spread = slots.flatten(0, 1)[:, :, None, None].expand(-1, -1, *self.start)
        near = coordinates(spread)
        drawn = self.layers(spread + self.places(torch.cat([near, -near], 1)))
        drawn = torch.unflatten(drawn[..., : self.picture[0], : self.picture[1]], 0, (batch, count))
        masks = drawn[:, :, self.colours].softmax(1)
        return (drawn[:, :, : self.colours] * masks[:, :, None]).sum(1), masks
