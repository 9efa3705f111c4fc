"""MUTAN: multimodal Tucker fusion (Ben-younes et al. 2017), without and with attention.

A bilinear answer y = T x1 q x2 v needs a tensor of (question x image x answers) numbers. Tucker's decomposition makes
it small: project both, let them meet in a small core, project to the answers; and every slice of the core has rank R:

    q~ = tanh(W_q q) (B, t_q),  v~ = tanh(W_v v) (B, t_v)
    z = sum_{r=1..R} (M_r q~) * (N_r v~)      (B, t_o),     core[:, :, k] = sum_r m_r^k (n_r^k)^T
    y = W_o tanh(z)

`Mutan`: question (B, T) -> GRU 2400; image = mean over the grid (B, C); one fusion; answers.
`MutanAttention`: a first fusion of q with every region gives, in each of 2 glimpses, a softmax over the regions; the
attended images, side by side, meet q in a second fusion.

The published GRU starts from skip-thoughts; `pfungst.training.words.start_reader` starts ours from an encoder of its
sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from pfungst.models.base import Batch, Model, Output, Sizes
from pfungst.models.layers import Pooled, Regions, WordReader, glimpses


@dataclass(frozen=True)
class MutanConfig:
    """Sizes of the published model without attention."""

    word_size: int = 620
    """As in skip-thoughts."""
    hidden: int = 2400
    """GRU, as in skip-thoughts."""
    question_core: int = 360
    """t_q."""
    picture_core: int = 360
    """t_v."""
    output_core: int = 360
    """t_o."""
    rank: int = 10
    """R."""
    dropout: float = 0.5
    stem: tuple[int, ...] = ()
    """Channels of a trainable CNN; none: features come from outside (ResNet-152, 2048x14x14)."""


@dataclass(frozen=True)
class MutanAttentionConfig:
    """Sizes of the published model with attention."""

    word_size: int = 620
    hidden: int = 2400
    attention_core: int = 310
    """t_q and t_v of the fusion that attends."""
    attention_output: int = 510
    """t_o of it."""
    glimpses: int = 2
    question_core: int = 310
    picture_core: int = 620
    """t_v of the second fusion: 310 a glimpse."""
    output_core: int = 510
    rank: int = 5
    dropout: float = 0.5
    stem: tuple[int, ...] = ()


class TuckerFusion(nn.Module):
    """(..., d_q), (..., d_v) -> tanh(z) (..., t_o), leading dimensions broadcast."""

    def __init__(self, question: int, picture: int, t_q: int, t_v: int, t_o: int, rank: int, dropout: float) -> None:
        super().__init__()
        self.question = nn.Linear(question, t_q)
        self.picture = nn.Linear(picture, t_v)
        self.question_core = nn.Linear(t_q, rank * t_o)
        self.picture_core = nn.Linear(t_v, rank * t_o)
        self.dropout = nn.Dropout(dropout)
        self.rank, self.output = rank, t_o

    def forward(self, question: Tensor, picture: Tensor) -> Tensor:
        q = torch.tanh(self.question(self.dropout(question)))
        v = torch.tanh(self.picture(self.dropout(picture)))
        # Summing the R slices before the product would be another model: each slice is a product of its own.
        q = torch.unflatten(self.question_core(q), -1, (self.rank, self.output))
        v = torch.unflatten(self.picture_core(v), -1, (self.rank, self.output))
        return torch.tanh((q * v).sum(-2))


class Mutan(Model):
    """question, image -> answers, without attention. No maps."""

    Config = MutanConfig
    PRESETS: ClassVar[dict[str, Any]] = {
        "paper": MutanConfig(),
        "compact": MutanConfig(96, 224, 128, 128, 128, 5, 0.1, (32, 64, 96, 96)),
        "features": MutanConfig(64, 160, 96, 96, 96, 5, 0.1),
        "tiny": MutanConfig(8, 12, 8, 8, 8, 2, 0.0, (8, 8)),
    }

    def __init__(self, sizes: Sizes, config: MutanConfig) -> None:
        super().__init__(sizes, config)
        self.picture = Pooled(sizes, config.stem)
        self.reader = WordReader(sizes.words, config.word_size, config.hidden, cell="gru")
        core = (config.question_core, config.picture_core, config.output_core, config.rank)
        self.fusion = TuckerFusion(config.hidden, self.picture.size, *core, config.dropout)
        self.answers = nn.Sequential(nn.Dropout(config.dropout), nn.Linear(config.output_core, sizes.answers))

    def forward(self, batch: Batch) -> Output:
        _, question = self.reader(batch.question)
        return Output(self.answers(self.fusion(question, self.picture(batch))))


class MutanAttention(Model):
    """question, image -> answers. Maps: `picture`, one per glimpse."""

    Config = MutanAttentionConfig
    PRESETS: ClassVar[dict[str, Any]] = {
        "paper": MutanAttentionConfig(),
        "compact": MutanAttentionConfig(96, 224, 80, 112, 2, 112, 112, 128, 5, 0.1, (32, 64, 96)),
        "features": MutanAttentionConfig(64, 160, 64, 96, 2, 96, 96, 96, 5, 0.1),
        "tiny": MutanAttentionConfig(8, 12, 8, 8, 2, 8, 8, 8, 2, 0.0, (8, 8)),
    }

    def __init__(self, sizes: Sizes, config: MutanAttentionConfig) -> None:
        super().__init__(sizes, config)
        self.regions = Regions(sizes, config.stem)
        self.reader = WordReader(sizes.words, config.word_size, config.hidden, cell="gru")
        core = (config.attention_core, config.attention_core, config.attention_output, config.rank)
        self.attend = TuckerFusion(config.hidden, self.regions.size, *core, config.dropout)
        self.weigh = nn.Linear(config.attention_output, config.glimpses)
        core = (config.question_core, config.picture_core, config.output_core, config.rank)
        self.fusion = TuckerFusion(config.hidden, config.glimpses * self.regions.size, *core, config.dropout)
        self.answers = nn.Sequential(nn.Dropout(config.dropout), nn.Linear(config.output_core, sizes.answers))

    def forward(self, batch: Batch) -> Output:
        _, question = self.reader(batch.question)
        cells, there = self.regions(batch)
        weights, seen = glimpses(self.weigh(self.attend(question[:, None], cells)), cells, there)
        logits = self.answers(self.fusion(question, seen))
        return Output(logits, {"picture": self.regions.draw(weights)})
