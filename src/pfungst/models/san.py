"""SAN: stacked attention networks (Yang et al. 2016).

question (B, T) -> words 300 -> LSTM 512 -> u_0 (B, 512);   image -> v_i = tanh(W_I f_i) (B, R, 512)
in each of 2 layers k:  h = tanh(W_v v_i + W_u u_{k-1})  (B, R, 512),  p = softmax(w . h) over the regions,
                        u_k = sum_i p_i v_i + u_{k-1}
answers = W u_K, through a layer of 1024 as in the CLEVR baseline
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from pfungst.models.base import Batch, Model, Output, Sizes
from pfungst.models.layers import Regions, WordReader, masked_softmax


@dataclass(frozen=True)
class SanConfig:
    """Sizes of the published model, with the classifier of its CLEVR baseline (Johnson et al. 2017)."""

    word_size: int = 300
    hidden: int = 512
    """LSTM, regions and u."""
    attention: int = 512
    """h."""
    layers: int = 2
    """Attention layers, K."""
    classifier: int = 1024
    """Hidden layer before the answers; 0 for none, as in the first paper."""
    dropout: float = 0.0
    stem: tuple[int, ...] = ()
    """Channels of a trainable CNN; none: features come from outside (VGG 512x14x14, ResNet-101 1024x14x14)."""


class AttentionLayer(nn.Module):
    """v (B, R, d), mask (B, R), u (B, d) -> next u (B, d), weights (B, R), h (B, R, inner)."""

    def __init__(self, size: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.look = nn.Linear(size, inner, bias=False)
        self.ask = nn.Linear(size, inner)
        self.weigh = nn.Linear(inner, 1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, regions: Tensor, there: Tensor, query: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        hidden = torch.tanh(self.look(regions) + self.ask(query)[:, None])
        weights = masked_softmax(self.weigh(self.dropout(hidden)).squeeze(-1), there)
        return torch.einsum("br,brd->bd", weights.to(regions.dtype), regions) + query, weights, hidden


class San(Model):
    """question, image -> answers. Maps: `picture`, one per layer."""

    Config = SanConfig
    PRESETS: ClassVar[dict[str, Any]] = {
        "paper": SanConfig(),
        "compact": SanConfig(96, 192, 192, 2, 256, 0.0, (32, 64, 96, 96)),
        "features": SanConfig(64, 192, 192, 2, 256, 0.0),
        "tiny": SanConfig(8, 16, 16, 2, 16, 0.0, (8, 8)),
    }

    def __init__(self, sizes: Sizes, config: SanConfig) -> None:
        super().__init__(sizes, config)
        self.regions = Regions(sizes, config.stem)
        self.reader = WordReader(sizes.words, config.word_size, config.hidden)
        self.look = nn.Sequential(nn.Linear(self.regions.size, config.hidden), nn.Tanh())
        self.layers = nn.ModuleList(
            AttentionLayer(config.hidden, config.attention, config.dropout) for _ in range(config.layers)
        )
        self.answers: nn.Module = nn.Linear(config.hidden, sizes.answers)
        if config.classifier:
            self.answers = nn.Sequential(
                nn.Linear(config.hidden, config.classifier), nn.ReLU(), nn.Linear(config.classifier, sizes.answers)
            )

    def forward(self, batch: Batch) -> Output:
        _, query = self.reader(batch.question)
        cells, there = self.regions(batch)
        regions = self.look(cells)
        drawn, stages = [], []
        for layer in self.layers:
            query, weights, hidden = layer(regions, there, query)
            drawn.append(weights)
            stages.append(self.regions.draw(hidden.transpose(1, 2)))
        extra = {} if self.regions.grid is None else {"stages": stages}
        return Output(self.answers(query), {"picture": self.regions.draw(torch.stack(drawn, 1))}, extra)
