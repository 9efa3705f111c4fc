"""BAN: bilinear attention networks (Kim et al. 2018).

    words X (B, T, N) = all states of a GRU, regions Y (B, R, M)

Every pair of a word and a region has a weight, in each of G glimpses (Eq. 9 to 11 there):

    A_g = softmax over all pairs of  ((1 p_g^T) * relu(X U)) relu(Y V)^T              (B, G, T, R)

and a bilinear pooling through it (Eq. 5):  f_k = (X U')_k^T A_g (Y V')_k             (B, K)

Glimpse after glimpse is added to the words (Eq. 12):  X_{g+1} = P_g f_g + X_g
answers = two layers on the sum of X_G over the words.

U, U', V, V' are weight-normed with ReLU. The counting module of the published program is left out: it needs the overlap
of boxes, which grid features have not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from pfungst.models.base import PAD, Batch, Model, Output, Sizes, start_bias
from pfungst.models.layers import NormedReLU, Regions, WordReader, normed


@dataclass(frozen=True)
class BanConfig:
    """Sizes of the published model."""

    word_size: int = 600
    """GloVe 300 beside 300 learnt numbers in the paper."""
    hidden: int = 1280
    """N and K."""
    rank: int = 3
    """The attention's joint space is this many times `hidden` wide."""
    glimpses: int = 8
    """G, as many as residual blocks."""
    dropout: float = 0.2
    classifier_dropout: float = 0.5
    stem: tuple[int, ...] = ()
    """Channels of a trainable CNN; none: regions (10 to 100 x 2048) or grid features come from outside."""


class BilinearAttention(nn.Module):
    """X (B, T, N), Y (B, R, M), masks -> weights (B, G, T, R) that sum to 1 over all pairs."""

    def __init__(self, words: int, regions: int, joint: int, glimpses: int, dropout: float) -> None:
        super().__init__()
        self.words = NormedReLU(words, joint, dropout)
        self.regions = NormedReLU(regions, joint, dropout)
        self.glimpses = nn.Parameter(torch.empty(glimpses, joint).normal_(std=joint**-0.5))
        self.bias = nn.Parameter(torch.zeros(glimpses))

    def forward(self, words: Tensor, regions: Tensor, asked: Tensor, there: Tensor) -> Tensor:
        one = torch.einsum("btk,gk->bgtk", self.words(words), self.glimpses)
        scores = torch.einsum("bgtk,brk->bgtr", one, self.regions(regions)) + self.bias[:, None, None]
        pairs = (asked[:, :, None] & there[:, None, :])[:, None].flatten(2)
        # An empty question has no pairs; then all regions of its padding share the weight.
        pairs = pairs | ~pairs.any(-1, keepdim=True)
        flat = scores.float().flatten(2).masked_fill(~pairs, -torch.inf)
        return torch.unflatten(flat.softmax(-1), -1, scores.shape[2:])


class BilinearPooling(nn.Module):
    """X (B, T, N), Y (B, R, M), weights (B, T, R) -> f (B, K)."""

    def __init__(self, words: int, regions: int, joint: int, dropout: float) -> None:
        super().__init__()
        self.words = NormedReLU(words, joint, dropout)
        self.regions = NormedReLU(regions, joint, dropout)

    def forward(self, words: Tensor, regions: Tensor, weights: Tensor) -> Tensor:
        x, y = self.words(words), self.regions(regions)
        # sum over t and r of x_tk a_tr y_rk: one matrix product, then a sum over the words.
        pooled: Tensor = (x * torch.einsum("btr,brk->btk", weights.to(y.dtype), y)).sum(1)
        return pooled


class Ban(Model):
    """question, image or regions -> answers. Maps: `pairs` (B, G, T, R or H, W)."""

    Config = BanConfig
    PRESETS: ClassVar[dict[str, Any]] = {
        "paper": BanConfig(),
        "compact": BanConfig(96, 160, 2, 4, 0.1, 0.1, (32, 64, 96)),
        "features": BanConfig(64, 128, 2, 4, 0.1, 0.1),
        "tiny": BanConfig(8, 12, 2, 2, 0.0, 0.0, (8, 8)),
    }
    objective = "sigmoid"

    def __init__(self, sizes: Sizes, config: BanConfig) -> None:
        super().__init__(sizes, config)
        hidden = config.hidden
        self.regions = Regions(sizes, config.stem)
        self.reader = WordReader(sizes.words, config.word_size, hidden, cell="gru")
        self.attend = BilinearAttention(
            hidden, self.regions.size, config.rank * hidden, config.glimpses, config.dropout
        )
        self.pool = nn.ModuleList(
            BilinearPooling(hidden, self.regions.size, hidden, config.dropout) for _ in range(config.glimpses)
        )
        self.add = nn.ModuleList(normed(hidden, hidden) for _ in range(config.glimpses))
        last = nn.Linear(2 * hidden, sizes.answers)
        nn.init.constant_(last.bias, start_bias(sizes.answers))
        self.answers = nn.Sequential(NormedReLU(hidden, 2 * hidden), nn.Dropout(config.classifier_dropout), last)

    def forward(self, batch: Batch) -> Output:
        words, _ = self.reader(batch.question)
        cells, there = self.regions(batch)
        asked = batch.question != PAD
        weights = self.attend(words, cells, asked, there)
        for glimpse, (pool, add) in enumerate(zip(self.pool, self.add, strict=True)):
            words = words + add(pool(words, cells, weights[:, glimpse]))[:, None]
        total = (words * asked[..., None]).sum(1)
        return Output(self.answers(total), {"pairs": self.regions.draw(weights)})
