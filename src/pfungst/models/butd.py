"""BUTD: bottom-up and top-down attention (Anderson et al. 2018), the 2017 VQA challenge winner.

    question (B, T) -> words 300 -> GRU -> q (B, 512)
    regions v (B, R, 2048), found bottom-up by a detector
    a_i = w . f_a([v_i, q]),  weights = softmax(a) over the regions (top-down),  v = sum_i weights_i v_i
    h = f_q(q) * f_v(v)                                   (B, 512)
    answers = sigmoid(W f_o(h)), every answer with a soft score

f is a gated tanh layer. The one that Cycle-Consistency for Robust VQA examined differs: weight-normed ReLU layers, 1024
hidden numbers, and w . (f_v(v_i) * f_q(q)) for the attention; `PRESETS["code"]` is that one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from pfungst.models.base import Batch, Model, Output, Sizes, start_bias
from pfungst.models.layers import GatedTanh, NormedReLU, Regions, WordReader, masked_softmax


@dataclass(frozen=True)
class ButdConfig:
    """Sizes of the published model."""

    word_size: int = 300
    """GloVe in the paper."""
    hidden: int = 512
    layer: str = "gated-tanh"
    """`gated-tanh` (the paper) or `relu` (weight-normed, the examined program)."""
    attention: str = "concatenation"
    """`concatenation` of region and question (the paper) or their `product`."""
    dropout: float = 0.0
    stem: tuple[int, ...] = ()
    """Channels of a trainable CNN; none: regions (36 x 2048) or grid features come from outside."""


class TopDownAttention(nn.Module):
    """Regions (B, R, D), mask (B, R), q (B, H) -> weights (B, R)."""

    def __init__(self, regions: int, question: int, hidden: int, config: ButdConfig) -> None:
        super().__init__()
        self.together: bool = config.attention == "concatenation"
        if self.together:
            self.layer = _layer(config, regions + question, hidden)
        else:
            self.look = _layer(config, regions, hidden)
            self.ask = _layer(config, question, hidden)
        self.weigh = nn.Linear(hidden, 1)

    def forward(self, regions: Tensor, there: Tensor, question: Tensor) -> Tensor:
        if self.together:
            both = torch.cat([regions, question[:, None].expand(-1, regions.shape[1], -1)], -1)
            hidden = self.layer(both)
        else:
            hidden = self.look(regions) * self.ask(question)[:, None]
        return masked_softmax(self.weigh(hidden).squeeze(-1), there)


class Butd(Model):
    """question, image or regions -> answers. Maps: `picture`."""

    Config = ButdConfig
    PRESETS: ClassVar[dict[str, Any]] = {
        "paper": ButdConfig(),
        "code": ButdConfig(300, 1024, "relu", "product", 0.2),
        "compact": ButdConfig(96, 224, "relu", "product", 0.1, (32, 64, 96)),
        "features": ButdConfig(64, 160, "relu", "product", 0.1),
        "tiny": ButdConfig(8, 16, "gated-tanh", "concatenation", 0.0, (8, 8)),
    }
    objective = "sigmoid"

    def __init__(self, sizes: Sizes, config: ButdConfig) -> None:
        super().__init__(sizes, config)
        hidden = config.hidden
        self.regions = Regions(sizes, config.stem)
        self.reader = WordReader(sizes.words, config.word_size, hidden, cell="gru")
        self.attend = TopDownAttention(self.regions.size, hidden, hidden, config)
        self.ask = _layer(config, hidden, hidden)
        self.look = _layer(config, self.regions.size, hidden)
        last = nn.Linear(hidden, sizes.answers)
        nn.init.constant_(last.bias, start_bias(sizes.answers))
        self.answers = nn.Sequential(_layer(config, hidden, hidden), nn.Dropout(config.dropout), last)

    def forward(self, batch: Batch) -> Output:
        _, question = self.reader(batch.question)
        cells, there = self.regions(batch)
        weights = self.attend(cells, there, question)
        seen = torch.einsum("br,brd->bd", weights.to(cells.dtype), cells)
        logits = self.answers(self.ask(question) * self.look(seen))
        return Output(logits, {"picture": self.regions.draw(weights)})


def _layer(config: ButdConfig, before: int, after: int) -> nn.Module:
    if config.layer == "gated-tanh":
        return GatedTanh(before, after)
    return NormedReLU(before, after, config.dropout)
