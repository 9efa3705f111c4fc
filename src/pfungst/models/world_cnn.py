"""The world's own CNN: frozen, it gives the zoo its grid features, as ResNet did for the papers' models on CLEVR.

    image (B, 3, 144, 192) -> 5x5 of stride 3, 48 channels                        (48, 48, 64)
                           -> 3x3 of stride 2, 64 channels, one residual block    (64, 24, 32)
                           -> 3x3 of stride 2, 128 channels, two residual ones   (128, 12, 16)
                           -> 1x1, ReLU -> features (96, 12, 16)
    to learn: 1x1 on the features -> for every cell: is the centre of an object here; its colour, shape, size and
    material; where in the cell it is; where on the ground it stands

It learns from scenes, never from questions: what the features say is what is where. All layers but the last head have
batch normalisation. Two objects whose centres share a cell: the one in front counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pfungst.models.base import Batch, Model, Output, Sizes
from pfungst.models.layers import pixels
from pfungst.models.objects import all_found, centre_loss, centres, found_objects
from pfungst.models.scene import ORDER
from pfungst.world.constants import ATTRIBUTES, BOUND

KINDS = tuple(len(ATTRIBUTES[name]) for name in ORDER)
"""Classes of every attribute."""


@dataclass(frozen=True)
class WorldCnnConfig:
    """Channels of the three strided layers, residual blocks after each, channels of the features."""

    channels: tuple[int, int, int] = (48, 64, 128)
    blocks: tuple[int, int, int] = (0, 1, 2)
    features: int = 96


def _layer(before: int, after: int, stride: int = 1, kernel: int = 3) -> nn.Sequential:
    convolution = nn.Conv2d(before, after, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(after), nn.ReLU())


class Residual(nn.Module):
    """relu(x + norm(3x3(relu(norm(3x3(x)))))), (B, C, H, W)"""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = _layer(channels, channels)
        self.second = nn.Sequential(nn.Conv2d(channels, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x + self.second(self.first(x)))


class WorldCnn(Model):
    """picture -> objects. `features(image)` are what other models see; maps: `objects` (B, H, W), chance of a centre.

    `logits` (B, H * W, 19) are attribute logits of every cell, with class 0 for no object, as in Slot Attention.
    """

    Config = WorldCnnConfig
    PRESETS: ClassVar[dict[str, Any]] = {
        "paper": WorldCnnConfig(),
        "compact": WorldCnnConfig(),
        "tiny": WorldCnnConfig((8, 8, 8), (0, 0, 1), 8),
    }
    reads: ClassVar[frozenset[str]] = frozenset({"image"})
    learns_from: frozenset[str] = frozenset({"scene"})

    def __init__(self, sizes: Sizes, config: WorldCnnConfig) -> None:
        super().__init__(sizes, config)
        layers: list[nn.Module] = []
        before, height, width = sizes.image
        for after, blocks in zip(config.channels, config.blocks, strict=True):
            stride, kernel = (2, 3) if layers else (3, 5)
            layers += [_layer(before, after, stride, kernel), *(Residual(after) for _ in range(blocks))]
            before, height, width = after, -(-height // stride), -(-width // stride)
        self.layers = nn.Sequential(*layers, nn.Conv2d(before, config.features, 1), nn.ReLU())
        self.head = nn.Conv2d(config.features, 1 + sum(KINDS) + 4, 1)
        self.shape: tuple[int, int, int] = (config.features, height, width)

    def features(self, image: Tensor) -> Tensor:
        """(B, 3, H, W) uint8 -> (B, C, H / 12, W / 12)"""
        found: Tensor = self.layers(pixels(image))
        return found

    def forward(self, batch: Batch) -> Output:
        if batch.image is None:
            raise ValueError("This model looks at images, and the batch has none.")
        said = self.head(self.features(batch.image)).float()
        centre, kinds, rest = said[:, :1], said[:, 1:-4], said[:, -4:]
        # A firm "no object" where the centre is unlikely: half an object answers no question.
        none = torch.where(centre > 0, -1e4, 1e4)
        parts = [torch.cat([none, part], 1) for part in torch.split(kinds, list(KINDS), 1)]
        logits = torch.cat(parts, 1).flatten(2).transpose(1, 2)
        return Output(logits, {"objects": centre[:, 0].sigmoid()}, {"centre": centre, "kinds": kinds, "rest": rest})

    def losses(self, batch: Batch, output: Output) -> dict[str, Tensor]:
        if batch.scene is None or batch.scene.pixels is None:
            raise ValueError("This model learns from scenes with the centres of their objects, and the batch has none.")
        centre, kinds, rest = (output.extra[name] for name in ("centre", "kinds", "rest"))
        b, row, column, which, inside = centres(batch.scene, self.shape[1:])
        here, there = kinds[b, :, row, column], batch.scene.attributes[b, which] - 1
        attributes = torch.stack(
            [F.cross_entropy(part, there[:, i]) for i, part in enumerate(torch.split(here, list(KINDS), 1))]
        ).sum()
        places = torch.cat([inside, batch.scene.positions[b, which] / BOUND], 1)
        return {
            "centre": centre_loss(centre[:, 0], batch.scene),
            "attributes": attributes,
            "places": F.l1_loss(rest[b, :, row, column], places.float()) * 4,
        }

    def correct(self, batch: Batch, output: Output) -> Tensor:
        """(B,): whether exactly the objects of the scene were found."""
        return all_found(found_objects(output.logits), batch.scene)
