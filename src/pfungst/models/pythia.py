"""Pythia v0.1 (Jiang et al. 2018), the 2018 VQA challenge winner: BUTD with attention over the words too.

    question (B, T) -> words 300 -> GRU 1024 -> outputs (B, T, 1024)
    words: two glimpses, softmax(w_g . relu(W o_t)) over the words, side by side  -> q (B, 2048)
    regions v (B, R, 2048) -> linear, ReLU (the fc7 layer that is trained further)
    image: softmax(w . (f_v(v_i) * f_q(q))) over the regions                    -> v (B, 2048)
    h = f_q'(q) * f_v'(v)                                                         (B, 5000)
    answers = W_i f_i(h) + W_t f_t(h), a branch that is as wide as images and one as wide as words

f is weight-normed linear, ReLU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from pfungst.models.base import PAD, Batch, Model, Output, Sizes, start_bias
from pfungst.models.layers import NormedReLU, Regions, WordReader, masked_softmax


@dataclass(frozen=True)
class PythiaConfig:
    """Sizes of the published model."""

    word_size: int = 300
    """GloVe in the paper."""
    hidden: int = 1024
    """GRU."""
    word_attention: int = 512
    glimpses: int = 2
    """Of the words."""
    region_size: int = 2048
    """After the layer that is trained further."""
    joint: int = 5000
    """Fusions in the attention and behind it."""
    picture_branch: int = 5000
    word_branch: int = 300
    dropout: float = 0.1
    stem: tuple[int, ...] = ()
    """Channels of a trainable CNN; none: regions (100 x 2048) or grid features come from outside."""


class WordAttention(nn.Module):
    """Outputs (B, T, H), mask (B, T) -> q (B, glimpses * H), weights (B, glimpses, T)."""

    def __init__(self, hidden: int, inner: int, glimpses: int, dropout: float) -> None:
        super().__init__()
        self.scores = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(hidden, inner), nn.ReLU(), nn.Linear(inner, glimpses)
        )

    def forward(self, outputs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        weights = masked_softmax(self.scores(outputs).transpose(1, 2), mask[:, None])
        return torch.einsum("bgt,bth->bgh", weights.to(outputs.dtype), outputs).flatten(1), weights


class Pythia(Model):
    """question, image or regions -> answers. Maps: `picture`, `words` (one per glimpse)."""

    Config = PythiaConfig
    PRESETS: ClassVar[dict[str, Any]] = {
        "paper": PythiaConfig(),
        "compact": PythiaConfig(96, 160, 96, 2, 128, 256, 224, 96, 0.1, (32, 64, 96)),
        "features": PythiaConfig(64, 128, 64, 2, 96, 192, 160, 64, 0.1),
        "tiny": PythiaConfig(8, 12, 8, 2, 12, 16, 16, 8, 0.0, (8, 8)),
    }
    objective = "sigmoid"

    def __init__(self, sizes: Sizes, config: PythiaConfig) -> None:
        super().__init__(sizes, config)
        question, drop = config.glimpses * config.hidden, config.dropout
        self.regions = Regions(sizes, config.stem)
        self.finetune = nn.Sequential(nn.Linear(self.regions.size, config.region_size), nn.ReLU())
        self.reader = WordReader(sizes.words, config.word_size, config.hidden, cell="gru")
        self.attend_words = WordAttention(config.hidden, config.word_attention, config.glimpses, drop)
        self.attend_look = NormedReLU(config.region_size, config.joint, drop)
        self.attend_ask = NormedReLU(question, config.joint, drop)
        self.weigh = nn.Linear(config.joint, 1)
        self.look = NormedReLU(config.region_size, config.joint, drop)
        self.ask = NormedReLU(question, config.joint, drop)
        self.by_picture = _branch(config.joint, config.picture_branch, sizes.answers, drop)
        self.by_words = _branch(config.joint, config.word_branch, sizes.answers, drop)

    def forward(self, batch: Batch) -> Output:
        outputs, _ = self.reader(batch.question)
        question, over_words = self.attend_words(outputs, batch.question != PAD)
        cells, there = self.regions(batch)
        regions = self.finetune(cells)
        hidden = self.attend_look(regions) * self.attend_ask(question)[:, None]
        weights = masked_softmax(self.weigh(hidden).squeeze(-1), there)
        seen = torch.einsum("br,brd->bd", weights.to(regions.dtype), regions)
        joint = self.ask(question) * self.look(seen)
        logits = self.by_picture(joint) + self.by_words(joint)
        return Output(logits, {"picture": self.regions.draw(weights), "words": over_words})


def _branch(joint: int, hidden: int, answers: int, dropout: float) -> nn.Sequential:
    last = nn.Linear(hidden, answers)
    nn.init.constant_(last.bias, start_bias(answers) / 2)
    return nn.Sequential(NormedReLU(joint, hidden), nn.Dropout(dropout), last)
