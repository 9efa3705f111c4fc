"""HieCoAtt: hierarchical question-image co-attention, alternating (Lu et al. 2016).

Three levels of the question, each (B, T, d):

    words     the embedded words
    phrases   1-, 2- and 3-gram convolutions of the words, tanh, the largest of the three at every place
    question  an LSTM over the phrases

At every level question and image look at each other in three steps of the attention x = A(X; g):

    H = tanh(W_x X + W_g g),  a = softmax(w . H),  x = sum_i a_i x_i          (Eq. 4 to 6 there)
    s = A(Q; 0),  v = A(V; s),  q = A(Q; v)

The three results are joined from the words up:

    h_w = tanh(W_w (q_w + v_w)),  h_p = tanh(W_p [q_p + v_p, h_w]),  h_s = tanh(W_s [q_s + v_s, h_p])
    answers = W_h h_s

`HieCoAttChoice` scores a choice c as in Eq. 1 of Being Negative but Constructively: U max(0, W [h_s, c]) + b
with c the mean of its word vectors. How its authors joined the two stands in a supplement that we do not have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from pfungst.models.base import PAD, Batch, Model, Output, Sizes
from pfungst.models.layers import Regions, WordReader, masked_softmax, score_choices


@dataclass(frozen=True)
class HieCoAttConfig:
    """Sizes of the published model."""

    hidden: int = 512
    """d: words, phrases, regions and all attention layers."""
    top: int = 1024
    """h_s."""
    dropout: float = 0.5
    choice_hidden: int = 8192
    """Hidden layer that scores a choice (multiple choice only), as wide as the decoys paper's MLPs."""
    stem: tuple[int, ...] = ()
    """Channels of a trainable CNN; none: features come from outside (VGG-19, 512x14x14, or ResNet-200)."""


class Attention(nn.Module):
    """x = A(X; g). X (B, N, d), mask (B, N), g (B, d), None where it is not `guided` -> x (B, d), weights (B, N)."""

    def __init__(self, size: int, dropout: float, guided: bool = True) -> None:
        super().__init__()
        self.parts = nn.Linear(size, size)
        self.guide = nn.Linear(size, size, bias=False) if guided else None
        self.weigh = nn.Linear(size, 1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, parts: Tensor, mask: Tensor, guide: Tensor | None) -> tuple[Tensor, Tensor]:
        hidden = self.parts(parts)
        if guide is not None and self.guide is not None:
            hidden = hidden + self.guide(guide)[:, None]
        weights = masked_softmax(self.weigh(self.dropout(torch.tanh(hidden))).squeeze(-1), mask)
        return torch.einsum("bn,bnd->bd", weights.to(parts.dtype), parts), weights


class CoAttention(nn.Module):
    """The three steps. Q (B, T, d), V (B, R, d) -> q (B, d), v (B, d), weights of words and of regions."""

    def __init__(self, size: int, dropout: float) -> None:
        super().__init__()
        self.summary = Attention(size, dropout, guided=False)
        self.picture = Attention(size, dropout)
        self.question = Attention(size, dropout)

    def forward(
        self, question: Tensor, words: Tensor, picture: Tensor, there: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        summary, _ = self.summary(question, words, None)
        seen, over_picture = self.picture(picture, there, summary)
        asked, over_words = self.question(question, words, seen)
        return asked, seen, over_words, over_picture


class HieCoAtt(Model):
    """question, image -> answers. Maps: words and image of every level."""

    Config = HieCoAttConfig
    PRESETS: ClassVar[dict[str, Any]] = {
        "paper": HieCoAttConfig(),
        "compact": HieCoAttConfig(128, 192, 0.1, 192, (32, 64, 96)),
        "features": HieCoAttConfig(96, 144, 0.1, 128),
        "tiny": HieCoAttConfig(16, 16, 0.0, 32, (8, 8)),
    }

    def __init__(self, sizes: Sizes, config: HieCoAttConfig) -> None:
        super().__init__(sizes, config)
        size = config.hidden
        self.regions = Regions(sizes, config.stem)
        self.look = nn.Sequential(nn.Linear(self.regions.size, size), nn.Tanh(), nn.Dropout(config.dropout))
        self.reader = WordReader(sizes.words, size, size)
        self.grams = nn.ModuleList(nn.Conv1d(size, size, n) for n in (1, 2, 3))
        self.levels = nn.ModuleList(CoAttention(size, config.dropout) for _ in range(3))
        self.join_words = nn.Linear(size, size)
        self.join_phrases = nn.Linear(2 * size, size)
        self.join_question = nn.Linear(2 * size, config.top)
        self.dropout = nn.Dropout(config.dropout)
        self.answers: nn.Module = nn.Linear(config.top, sizes.answers)

    def forward(self, batch: Batch) -> Output:
        joined, maps = self.joined(batch)
        return Output(self.answers(self.dropout(joined)), maps)

    def joined(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """h_s (B, top), and the maps."""
        mask = batch.question != PAD
        words = torch.tanh(self.reader.words(batch.question))
        phrases = self.phrases(words)
        sentence, _ = self.reader.states(batch.question, phrases)
        cells, there = self.regions(batch)
        picture = self.look(cells)
        sums: list[Tensor] = []
        maps: dict[str, Tensor] = {}
        for name, level, question in zip(
            ("words", "phrases", "question"), self.levels, (words, phrases, sentence), strict=True
        ):
            asked, seen, over_words, over_picture = level(question, mask, picture, there)
            sums.append(self.dropout(asked + seen))
            maps[f"{name}: words"] = over_words
            maps[f"{name}: picture"] = self.regions.draw(over_picture)
        low = torch.tanh(self.join_words(sums[0]))
        middle = torch.tanh(self.join_phrases(torch.cat([sums[1], self.dropout(low)], -1)))
        return torch.tanh(self.join_question(torch.cat([sums[2], self.dropout(middle)], -1))), maps

    def phrases(self, words: Tensor) -> Tensor:
        """(B, T, d) -> (B, T, d): at every place the largest of the 1-, 2- and 3-grams.

        The 2-gram sees a word and the one before it, the 3-gram a word and both neighbours.
        """
        across = words.transpose(1, 2)
        padded = [across, nn.functional.pad(across, (1, 0)), nn.functional.pad(across, (1, 1))]
        grams = torch.stack([torch.tanh(g(x)) for g, x in zip(self.grams, padded, strict=True)])
        return grams.amax(0).transpose(1, 2)


class HieCoAttChoice(HieCoAtt):
    """question, image, choices -> one score per choice."""

    reads: ClassVar[frozenset[str]] = frozenset({"question", "image", "choices"})
    objective = "choice"

    def __init__(self, sizes: Sizes, config: HieCoAttConfig) -> None:
        super().__init__(sizes, config)
        self.answers = nn.Sequential(
            nn.Linear(config.top + config.hidden, config.choice_hidden),
            nn.ReLU(),
            nn.Dropout(config.dropout),
            nn.Linear(config.choice_hidden, 1),
        )

    def forward(self, batch: Batch) -> Output:
        joined, maps = self.joined(batch)
        return Output(score_choices(self.answers, joined, self.reader.words, batch), maps)
