"""MLP-A, MLP-QA, MLP-IA, MLP-IQA: one hidden layer that scores a choice.

Jabri et al. 2016; Being Negative but Constructively.

    f(c, i) = sigmoid(U max(0, W g(c, i)) + b)                                            (Eq. 1 there)

g puts side by side what the name allows: I, the image (B, 2048, mean over the grid); Q, the mean word vector of the
question (B, 300); A, the mean word vector of the choice (B, K, 300). The hidden layer has 8,192 neurons. The choice
with the highest score is the answer. Learnt with the binary logistic loss on "is this choice the target".

What these four make of a data set without question, without image or without both measures its shortcuts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pfungst.models.base import PAD, Batch, Model, Output, Sizes
from pfungst.models.layers import Pooled, mean_words


@dataclass(frozen=True)
class MlpConfig:
    """Sizes of the published models."""

    word_size: int = 300
    """word2vec in the paper; fixed there, see `learn_words`."""
    hidden: int = 8192
    dropout: float = 0.0
    learn_words: bool = True
    """False keeps the word vectors as they were loaded."""
    stem: tuple[int, ...] = ()
    """Channels of a trainable CNN; none: features come from outside (ResNet-200, 2048 per image)."""


class MlpIQA(Model):
    """question, image, choices -> one score per choice."""

    Config = MlpConfig
    PRESETS: ClassVar[dict[str, MlpConfig]] = {
        "paper": MlpConfig(),
        "compact": MlpConfig(128, 8192, 0.0, True, (32, 64, 128, 128)),
        "features": MlpConfig(128, 8192, 0.0, True),
        "tiny": MlpConfig(16, 64, 0.0, True, (8, 8)),
    }
    reads: ClassVar[frozenset[str]] = frozenset({"question", "image", "choices"})
    objective = "choice"

    def __init__(self, sizes: Sizes, config: MlpConfig) -> None:
        super().__init__(sizes, config)
        self.words = nn.Embedding(sizes.words, config.word_size, padding_idx=PAD)
        self.words.weight.requires_grad_(config.learn_words)
        known = config.word_size
        self.picture = None
        if "image" in self.reads:
            self.picture = Pooled(sizes, config.stem)
            known += self.picture.size
        if "question" in self.reads:
            known += config.word_size
        self.hidden = nn.Linear(known, config.hidden)
        self.dropout = nn.Dropout(config.dropout)
        self.score = nn.Linear(config.hidden, 1)

    def forward(self, batch: Batch) -> Output:
        if batch.choices is None:
            raise ValueError("This model scores choices, and the batch has none.")
        choices = mean_words(self.words, batch.choices)
        parts: list[Tensor] = [choices]
        if self.picture is not None:
            parts.append(self.picture(batch)[:, None])
        if "question" in self.reads:
            parts.append(mean_words(self.words, batch.question)[:, None])
        # W g part by part: what image and question say is the same for all choices.
        columns = torch.split(self.hidden.weight, [part.shape[-1] for part in parts], 1)
        known = F.linear(choices, columns[0], self.hidden.bias)
        for part, weight in zip(parts[1:], columns[1:], strict=True):
            known = known + F.linear(part, weight)
        hidden = torch.relu(known)
        scores = self.score(self.dropout(hidden)).squeeze(-1)
        return Output(scores.masked_fill(~batch.choice_mask, -torch.inf))


class MlpA(MlpIQA):
    """choices -> one score per choice: what the answers alone give away."""

    reads: ClassVar[frozenset[str]] = frozenset({"choices"})


class MlpQA(MlpIQA):
    """question, choices -> one score per choice."""

    reads: ClassVar[frozenset[str]] = frozenset({"question", "choices"})


class MlpIA(MlpIQA):
    """picture, choices -> one score per choice."""

    reads: ClassVar[frozenset[str]] = frozenset({"image", "choices"})
