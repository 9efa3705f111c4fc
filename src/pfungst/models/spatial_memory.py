"""Attention: the spatial memory network (Xu and Saenko 2016), adjusted to multiple choice.

    words V (B, T, N), cells S (B, L, M)
    hop 1, guided by words:   C = V (S W_A + b_A)^T  (B, T, L);  p = softmax over the cells of max over the words of C
                              O = sum_l p_l (S_l W_E + b_E) + W_Q sum_t V_t + b_Q                       (B, N)
    hop 2, guided by O:       p' = softmax over the cells of (S W_E + b_E) O
                              O' = O + sum_l p'_l (S_l W_E2 + b_E2)
    a choice c (mean of its word vectors) scores  U max(0, W [relu(O'), c]) + b

The published network ends in a softmax over answers. How the decoys paper adjusted it stands in a supplement
that we do not have, so the choice meets the network as in Eq. 1 there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from pfungst.models.base import PAD, Batch, Model, Output, Sizes
from pfungst.models.layers import Regions, masked_softmax, score_choices


@dataclass(frozen=True)
class SpatialMemoryConfig:
    """Sizes of the published network, with the decoys paper's hidden layer."""

    word_size: int = 512
    """N: words, memory and evidence."""
    hops: int = 2
    choice_hidden: int = 8192
    dropout: float = 0.5
    stem: tuple[int, ...] = ()
    """Channels of a trainable CNN; none: features come from outside (GoogLeNet 1024x14x14)."""


class SpatialMemory(Model):
    """question, image, choices -> one score per choice. Maps: `picture`, one per hop."""

    Config = SpatialMemoryConfig
    PRESETS: ClassVar[dict[str, Any]] = {
        "paper": SpatialMemoryConfig(),
        "compact": SpatialMemoryConfig(128, 2, 512, 0.1, (32, 64, 128)),
        "features": SpatialMemoryConfig(64, 2, 128, 0.1),
        "tiny": SpatialMemoryConfig(16, 2, 32, 0.0, (8, 8)),
    }
    reads: ClassVar[frozenset[str]] = frozenset({"question", "image", "choices"})
    objective = "choice"

    def __init__(self, sizes: Sizes, config: SpatialMemoryConfig) -> None:
        super().__init__(sizes, config)
        size = config.word_size
        self.regions = Regions(sizes, config.stem)
        self.words = nn.Embedding(sizes.words, size, padding_idx=PAD)
        self.attend = nn.Linear(self.regions.size, size)
        self.evidence = nn.ModuleList(nn.Linear(self.regions.size, size) for _ in range(config.hops))
        self.question = nn.Linear(size, size)
        self.answers = nn.Sequential(
            nn.Dropout(config.dropout),
            nn.Linear(2 * size, config.choice_hidden),
            nn.ReLU(),
            nn.Linear(config.choice_hidden, 1),
        )

    def forward(self, batch: Batch) -> Output:
        cells, there = self.regions(batch)
        asked = batch.question != PAD
        words = self.words(batch.question) * asked[..., None]
        by_word = torch.einsum("btn,bln->btl", words, self.attend(cells))
        # A place without a word must not win the maximum, unless there is no word at all.
        silent = ~asked & asked.any(-1, keepdim=True)
        weights = masked_softmax(by_word.masked_fill(silent[..., None], -torch.inf).amax(1), there)
        evidence = self.evidence[0](cells)
        memory = torch.einsum("bl,bln->bn", weights.to(evidence.dtype), evidence) + self.question(words.sum(1))
        drawn = [weights]
        for hop in range(1, len(self.evidence)):
            weights = masked_softmax(torch.einsum("bln,bn->bl", evidence, memory), there)
            evidence = self.evidence[hop](cells)
            memory = memory + torch.einsum("bl,bln->bn", weights.to(evidence.dtype), evidence)
            drawn.append(weights)
        scores = score_choices(self.answers, torch.relu(memory), self.words, batch)
        return Output(scores, {"picture": self.regions.draw(torch.stack(drawn, 1))})
