"""Slot Attention with an attribute classifier (Locatello et al. 2020), the fairness check of the game.

    picture -> CNN -> + places -> layer norm, two layers -> inputs (B, H*W, d)
    slots (B, K, d) drawn from a learnt normal; 3 times:
        weights = softmax over the slots of (k(inputs) . q(slots)) / sqrt(d): the slots compete for every cell
        slots = GRU(mean of v(inputs), weighted and normed over the cells; slots), then slots + two layers(norm slots)
    every slot -> a 4-layer transposed CNN -> colours and a mask; masks, softmax over the slots, mix the picture anew
    every slot -> attributes of an object, or "no object", and its place on the ground

The pre-trained network of 004_7f4cdb926551102e.txt, B.6, found objects without labels and had a classifier trained on
top: `supervised=False`. With `supervised=True` the classifier's gradient reaches the slots, which finds more objects in
small pictures. Asked for the same picture it gives the same slots: their noise is fixed when it does not train.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pfungst.models._base import Model
from pfungst.models._batch import Batch, Output, Sizes
from pfungst.models._layers import Grid, coordinates, pixels
from pfungst.models._objects import ObjectHead, detection_losses, found_objects, same_objects, true_objects
from pfungst.world.constants import BOUND


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
    stem: tuple[int, ...] = (64, 64)
    """Channels of the CNN. (Published: four 5x5 convolutions without stride; strides save memory.)"""


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
            shares = weights + 1e-8
            shares = (shares / shares.sum(-1, keepdim=True)).to(values.dtype)
            updates = torch.einsum("bkn,bnd->bkd", shares, values)
            slots = self.update(updates.flatten(0, 1), slots.flatten(0, 1)).view_as(slots)
            slots = slots + self.refine(slots)
        return slots, weights


class SlotAttentionModel(Model):
    """picture -> objects. `logits` are the attribute logits (B, K, 19); `objects(output)` puts them into words.

    Maps: `slots` (B, K, H, W), `places` (B, K, 2) in scene units.
    """

    Config = SlotAttentionConfig
    PRESETS: ClassVar[dict[str, Any]] = {
        "paper": SlotAttentionConfig(),
        "compact": SlotAttentionConfig(12, 3, 96, 192, 128, 32, True, (48, 96, 96)),
        "tiny": SlotAttentionConfig(5, 2, 16, 32, 32, 8, True, (8, 8)),
    }
    reads = frozenset({"image"})
    learns_from = frozenset({"scene"})

    def __init__(self, sizes: Sizes, config: SlotAttentionConfig) -> None:
        super().__init__(sizes, config)
        size = config.size
        self.grid = Grid(sizes, config.stem)
        self.places = nn.Conv2d(4, self.grid.channels, 1)
        self.enter = nn.Sequential(
            nn.LayerNorm(self.grid.channels),
            nn.Linear(self.grid.channels, size),
            nn.ReLU(),
            nn.Linear(size, size),
        )
        self.mean = nn.Parameter(torch.empty(size).normal_(std=size**-0.5))
        self.spread = nn.Parameter(torch.zeros(size))
        self.attention = SlotAttention(size, config.hidden, config.iterations)
        self.head = ObjectHead(size, config.head)
        self.decoder = Decoder(size, config.decoder, sizes.image[1:]) if config.decoder else None

    def forward(self, batch: Batch) -> Output:
        grid = self.grid(batch)
        near = coordinates(grid)
        grid = grid + self.places(torch.cat([near, -near], 1))
        inputs = self.enter(grid.flatten(2).transpose(1, 2))
        slots, weights = self.attention(inputs, self.first(len(batch), inputs))
        logits, places = self.head(slots if self.config.supervised else slots.detach())
        extra: dict[str, Tensor] = {}
        if self.decoder is not None and self.training:
            extra["picture"], extra["masks"] = self.decoder(slots)
        drawn = torch.unflatten(weights, -1, (self.grid.height, self.grid.width))
        return Output(logits, {"slots": drawn, "places": places * BOUND}, extra)

    def first(self, count: int, like: Tensor) -> Tensor:
        """Slots before the first look: fresh noise in training, the same noise for every picture otherwise."""
        shape = (self.config.slots, self.config.size)
        if self.training:
            noise = torch.randn(count, *shape, device=like.device)
        else:
            fixed = torch.Generator().manual_seed(0)
            noise = torch.randn(shape, generator=fixed).to(like.device).expand(count, -1, -1)
        return (self.mean + F.softplus(self.spread) * noise).to(like.dtype)

    def losses(self, batch: Batch, output: Output) -> dict[str, Tensor]:
        if batch.scene is None:
            raise ValueError("This model learns from scenes, and the batch has none.")
        losses = detection_losses(
            output.logits, output.maps["places"] / BOUND, batch.scene, batch.scene.positions / BOUND
        )
        if "picture" in output.extra and batch.image is not None:
            losses["picture"] = F.mse_loss(output.extra["picture"].float(), pixels(batch.image))
        return losses

    def correct(self, batch: Batch, output: Output) -> Tensor:
        """(B,): whether exactly the objects of the scene were found."""
        if batch.scene is None:
            raise ValueError("This batch has no scenes to compare with.")
        pairs = zip(found_objects(output.logits), true_objects(batch.scene), strict=True)
        return torch.tensor([float(same_objects(a, b)) for a, b in pairs], device=output.logits.device)

    def objects(self, output: Output) -> list[list[dict[str, str]]]:
        """The objects found in every picture: colour, shape, size, material."""
        return found_objects(output.logits)


class Decoder(nn.Module):
    """Slots (B, K, d) -> the picture (B, 3, H, W) and every slot's mask (B, K, H, W)."""

    def __init__(self, size: int, channels: int, picture: tuple[int, int]) -> None:
        super().__init__()
        self.picture = picture
        self.start = (-(-picture[0] // 16), -(-picture[1] // 16))
        self.places = nn.Conv2d(4, size, 1)
        layers: list[nn.Module] = []
        before = size
        for _ in range(4):
            layers += [nn.ConvTranspose2d(before, channels, 4, 2, 1), nn.ReLU()]
            before = channels
        self.layers = nn.Sequential(*layers, nn.Conv2d(channels, 4, 3, padding=1))

    def forward(self, slots: Tensor) -> tuple[Tensor, Tensor]:
        batch, count = slots.shape[:2]
        spread = slots.flatten(0, 1)[:, :, None, None].expand(-1, -1, *self.start)
        near = coordinates(spread)
        drawn = self.layers(spread + self.places(torch.cat([near, -near], 1)))
        drawn = torch.unflatten(drawn[..., : self.picture[0], : self.picture[1]], 0, (batch, count))
        masks = drawn[:, :, 3].softmax(1)
        return (drawn[:, :, :3] * masks[:, :, None]).sum(1), masks
