"""MLB: low-rank bilinear pooling by the Hadamard product, with attention (Kim et al. 2017).

pool(x, y) = tanh(U x) * tanh(V y)                                   (B, d), d = 1200

question (B, T) -> GRU 2400 -> q (B, 2400);   image -> regions F (B, R, 2048)
scores = P_a pool(q, F_i)                      (B, R, 2 glimpses), softmax over the regions
v = the attended F of both glimpses side by side (B, 2 * 2048)
answers = P_o pool(q, v)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from pfungst.models.base import Batch, Model, Output, Sizes
from pfungst.models.layers import Regions, WordReader, glimpses


@dataclass(frozen=True)
class MlbConfig:
    """Sizes of the published model."""

    word_size: int = 620
    """As in skip-thoughts, from which the published GRU starts."""
    hidden: int = 2400
    joint: int = 1200
    """d: rank of the bilinear form."""
    glimpses: int = 2
    dropout: float = 0.5
    stem: tuple[int, ...] = ()
    """Channels of a trainable CNN; none: features come from outside (ResNet-152, 2048x14x14)."""


class HadamardPooling(nn.Module):
    """tanh(U x) * tanh(V y): (..., d_x), (..., d_y) -> (..., d), leading dimensions broadcast."""

    def __init__(self, first: int, second: int, joint: int, dropout: float) -> None:
        super().__init__()
        self.first = nn.Linear(first, joint)
        self.second = nn.Linear(second, joint)
        self.dropout = nn.Dropout(dropout)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        return torch.tanh(self.first(self.dropout(first))) * torch.tanh(self.second(self.dropout(second)))


class Mlb(Model):
    """question, image -> answers. Maps: `picture`, one per glimpse."""

    Config = MlbConfig
    PRESETS: ClassVar[dict[str, Any]] = {
        "paper": MlbConfig(),
        "compact": MlbConfig(96, 224, 224, 2, 0.1, (32, 64, 96)),
        "features": MlbConfig(64, 160, 160, 2, 0.1),
        "tiny": MlbConfig(8, 12, 16, 2, 0.0, (8, 8)),
    }

    def __init__(self, sizes: Sizes, config: MlbConfig) -> None:
        super().__init__(sizes, config)
        self.regions = Regions(sizes, config.stem)
        self.reader = WordReader(sizes.words, config.word_size, config.hidden, cell="gru")
        self.attend = HadamardPooling(config.hidden, self.regions.size, config.joint, config.dropout)
        self.weigh = nn.Linear(config.joint, config.glimpses)
        self.fusion = HadamardPooling(config.hidden, config.glimpses * self.regions.size, config.joint, config.dropout)
        self.answers = nn.Sequential(nn.Dropout(config.dropout), nn.Linear(config.joint, sizes.answers))

    def forward(self, batch: Batch) -> Output:
        _, question = self.reader(batch.question)
        cells, there = self.regions(batch)
        weights, seen = glimpses(self.weigh(self.attend(question[:, None], cells)), cells, there)
        return Output(self.answers(self.fusion(question, seen)), {"picture": self.regions.draw(weights)})
