"""LSTM Q+I: the deeper LSTM with a normalised image (Antol et al. 2015), as examined with basic questions.

question (B, T) --> words 300 --> LSTM, 2 layers of 512 --> last h and c of both layers (B, 2048)
                                                             `-> linear, tanh --> (B, 1024) --.
image (B, C, H, W) --> mean over the grid, length 1 (B, C) --> linear, tanh --> (B, 1024) ----* element by element
product (B, 1024) --> linear 1000, tanh --> linear --> answers (B, A)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import nn

from pfungst.models.base import Batch, Model, Output, Sizes
from pfungst.models.layers import Pooled, WordReader

_STATES = 8.0
"""An untrained LSTM says about 1/8: its states times this have the spread that a tanh can tell apart."""


@dataclass(frozen=True)
class LstmQIConfig:
    """Sizes of the published model."""

    word_size: int = 300
    hidden: int = 512
    """Of each of the two LSTM layers."""
    layers: int = 2
    fusion: int = 1024
    """Both modalities meet in this many numbers."""
    classifier: int = 1000
    dropout: float = 0.5
    stem: tuple[int, ...] = ()
    """Channels of a trainable CNN; none: features come from outside (VGG fc7, 4096, in the paper)."""


class LstmQI(Model):
    """question, image -> answers. No attention, so no maps."""

    Config = LstmQIConfig
    PRESETS: ClassVar[dict[str, Any]] = {
        "paper": LstmQIConfig(),
        "compact": LstmQIConfig(96, 128, 2, 256, 256, 0.2, (32, 64, 96, 96)),
        "features": LstmQIConfig(64, 112, 2, 160, 160, 0.1),
        "tiny": LstmQIConfig(8, 12, 2, 16, 16, 0.0, (8, 8)),
    }

    def __init__(self, sizes: Sizes, config: LstmQIConfig) -> None:
        super().__init__(sizes, config)
        self.picture = Pooled(sizes, config.stem)
        self.reader = WordReader(sizes.words, config.word_size, config.hidden, layers=config.layers)
        self.ask = nn.Linear(2 * config.layers * config.hidden, config.fusion)
        self.look = nn.Linear(self.picture.size, config.fusion)
        # Both factors must differ between inputs from the first step. Small ones are pushed to +-1 for all questions,
        # which is the quickest way to the frequent answers, and from there no gradient leads back to the words.
        with torch.no_grad():
            self.ask.weight.mul_(_STATES)
            self.look.weight.mul_(self.picture.size**0.5)
        self.classifier = nn.Sequential(
            nn.Dropout(config.dropout),
            nn.Linear(config.fusion, config.classifier),
            nn.Tanh(),
            nn.Dropout(config.dropout),
            nn.Linear(config.classifier, sizes.answers),
        )

    def forward(self, batch: Batch) -> Output:
        _, (hidden, cell) = self.reader.states(batch.question)
        question = torch.cat([hidden, cell], 0).transpose(0, 1).flatten(1)
        picture = F.normalize(self.picture(batch), dim=-1)
        fused = torch.tanh(self.ask(question)) * torch.tanh(self.look(picture))
        return Output(self.classifier(fused))
