"""FiLM: feature-wise linear modulation (Perez et al. 2018).

    question (B, T) -> words 200 -> GRU 4096 -> linear -> gamma, beta (B, blocks, channels) each
    image -> 3x3 convolution, batch norm, ReLU -> x (B, 128, 14, 14)
    4 blocks, each:  y = relu(1x1([x, coordinates]))
                     x = y + relu(gamma * norm(3x3(y)) + beta)       gamma, beta of this block, a pair a channel
    [x, coordinates] -> 1x1 to 512, batch norm, ReLU -> maximum over the grid -> 1024, ReLU -> answers

gamma is 1 + what the question says, so that a fresh network passes features on. `norm` has no scale of its own: FiLM
gives it. Coordinates are the column and the row of every cell, from -1 to 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from pfungst.models.base import Batch, Model, Output, Sizes
from pfungst.models.layers import ConvClassifier, Grid, WordReader, coordinates


@dataclass(frozen=True)
class FilmConfig:
    """Sizes of the published model on ResNet-101 features."""

    word_size: int = 200
    hidden: int = 4096
    """GRU."""
    channels: int = 128
    blocks: int = 4
    projection: int = 512
    classifier: int = 1024
    stem: tuple[int, ...] = ()
    """Channels of a trainable CNN; none: features come from outside (1024x14x14)."""
    dilations: tuple[int, ...] = (1,)
    """Of the blocks' 3x3 convolutions, in turn. ResNet's features have seen the whole image, those of a small CNN
    only a part: wider blocks make up for it."""


class FilmBlock(nn.Module):
    """x (B, C, H, W), gamma and beta (B, C) -> (B, C, H, W), and the modulated features before the ReLU."""

    def __init__(self, channels: int, dilation: int = 1) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels + 2, channels, 1)
        self.second = nn.Conv2d(channels, channels, 3, padding=dilation, dilation=dilation, bias=False)
        self.norm = nn.BatchNorm2d(channels, affine=False)

    def forward(self, x: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
        y = torch.relu(self.first(torch.cat([x, coordinates(x)], 1)))
        return y + torch.relu(modulate(self.norm(self.second(y)), gamma, beta))


def modulate(x: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    """FiLM(x) = gamma * x + beta, a pair a channel: x (B, C, H, W), gamma and beta (B, C)."""
    return gamma[:, :, None, None] * x + beta[:, :, None, None]


class Film(Model):
    """question, image -> answers. Maps: `picture`, the mean activity the classifier sees."""

    Config = FilmConfig
    PRESETS: ClassVar[dict[str, Any]] = {
        "paper": FilmConfig(),
        "pixels": FilmConfig(stem=(128, 128, 128, 128)),
        "compact": FilmConfig(96, 224, 96, 4, 256, 256, (48, 64, 96)),
        "features": FilmConfig(64, 192, 96, 5, 256, 256, (), (1, 2, 4)),
        "tiny": FilmConfig(8, 12, 12, 2, 16, 16, (8, 8)),
    }

    def __init__(self, sizes: Sizes, config: FilmConfig) -> None:
        super().__init__(sizes, config)
        self.grid = Grid(sizes, config.stem)
        self.reader = WordReader(sizes.words, config.word_size, config.hidden, cell="gru")
        self.say = nn.Linear(config.hidden, 2 * config.blocks * config.channels)
        self.enter = nn.Sequential(
            nn.Conv2d(self.grid.channels + 2, config.channels, 3, padding=1),
            nn.BatchNorm2d(config.channels),
            nn.ReLU(),
        )
        wide = config.dilations
        self.blocks = nn.ModuleList(FilmBlock(config.channels, wide[i % len(wide)]) for i in range(config.blocks))
        shape = (config.channels + 2, self.grid.height, self.grid.width)
        self.answers = ConvClassifier(shape, config.projection, config.classifier, sizes.answers, pool="max", norm=True)

    def forward(self, batch: Batch) -> Output:
        _, question = self.reader(batch.question)
        said = torch.unflatten(self.say(question), 1, (len(self.blocks), 2, -1))
        x = self.grid(batch)
        x = self.enter(torch.cat([x, coordinates(x)], 1))
        stages = []
        for index, block in enumerate(self.blocks):
            x = block(x, 1 + said[:, index, 0], said[:, index, 1])
            stages.append(x)
        logits = self.answers(torch.cat([x, coordinates(x)], 1))
        return Output(logits, {"picture": x.mean(1)}, {"stages": stages})
