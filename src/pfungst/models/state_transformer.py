"""State-Input Transformer (Appendix A.3 and Figure 5 of 004_7f4cdb926551102e.txt).

    scene -> 10 * 6 = 60 object tokens: x, y, size, shape, material, colour of up to 10 objects, the empty token else
    question -> 50 tokens, padded with the empty token
    every kind of token has a projection of its own; a learnt embedding of its kind is added      (B, 110, d)
    three learnt tokens are the queries (B, 3, d); the 110 input tokens are keys and values
    5 blocks: queries + cross-attention to all input tokens, then a feed-forward layer
    the three tokens, side by side -> feed-forward classifier -> answers

The appendix names no widths: 8 heads of 32 are ours. It does not say how a token tells which object, and which place of
the question, it belongs to; as in Vaswani et al., which it builds on, every one of the 110 places has an embedding.
`latent_attention` lets the three tokens look at each other in every block, as in Perceiver; the appendix has only
cross-attention, so it is off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import nn

from pfungst.models._base import Model
from pfungst.models._batch import PAD, Batch, Output, Sizes
from pfungst.models._scene import KINDS, SceneTokens
from pfungst.models._transformer import DecoderLayer
from pfungst.world.constants import MAX_OBJECTS


@dataclass(frozen=True)
class StateTransformerConfig:
    """The appendix's numbers; widths are ours."""

    size: int = 256
    heads: int = 8
    blocks: int = 5
    latents: int = 3
    question_length: int = 50
    """Longer questions are cut."""
    feed_forward: int = 1024
    classifier: int = 512
    dropout: float = 0.1
    latent_attention: bool = False


class StateTransformer(Model):
    """question, scene -> answers.

    Maps, averages over heads, blocks and the three tokens: `objects` (B, 10, 6), `words` (B, 50).
    """

    Config = StateTransformerConfig
    PRESETS: ClassVar[dict[str, Any]] = {
        "paper": StateTransformerConfig(),
        "compact": StateTransformerConfig(160, 8, 5, 3, 50, 448, 192, 0.1),
        "tiny": StateTransformerConfig(16, 2, 2, 3, 12, 32, 16, 0.0),
    }
    reads = frozenset({"question", "scene"})

    def __init__(self, sizes: Sizes, config: StateTransformerConfig) -> None:
        super().__init__(sizes, config)
        size = config.size
        self.scene = SceneTokens(size)
        self.words = nn.Embedding(sizes.words, size)
        self.question_kind = nn.Parameter(torch.empty(size).normal_(std=size**-0.5))
        places = MAX_OBJECTS * len(KINDS) + config.question_length
        self.places = nn.Parameter(torch.empty(places, size).normal_(std=size**-0.5))
        self.latents = nn.Parameter(torch.empty(config.latents, size).normal_(std=size**-0.5))
        self.norm = nn.LayerNorm(size)
        self.blocks = nn.ModuleList(
            DecoderLayer(size, config.heads, config.feed_forward, config.dropout, config.latent_attention)
            for _ in range(config.blocks)
        )
        self.answers = nn.Sequential(
            nn.LayerNorm(config.latents * size),
            nn.Linear(config.latents * size, config.classifier),
            nn.ReLU(),
            nn.Dropout(config.dropout),
            nn.Linear(config.classifier, sizes.answers),
        )

    def forward(self, batch: Batch) -> Output:
        if batch.scene is None:
            raise ValueError("This model reads scenes, and the batch has none.")
        objects = self.scene(batch.scene)
        count = objects.shape[1]
        objects = F.pad(objects, (0, 0, 0, 0, 0, MAX_OBJECTS - count)).flatten(1, 2)
        length = self.config.question_length
        question = F.pad(batch.question[:, :length], (0, max(0, length - batch.question.shape[1])), value=PAD)
        words = self.words(question) + self.question_kind
        tokens = self.norm(torch.cat([objects, words], 1) + self.places)
        latents = self.latents.expand(len(batch), -1, -1)
        weights = []
        for block in self.blocks:
            latents, seen = block(latents, tokens, tokens, None)
            weights.append(seen)
        drawn = torch.stack(weights).mean((0, 2))
        cut = MAX_OBJECTS * len(KINDS)
        maps = {"objects": torch.unflatten(drawn[:, :cut], 1, (MAX_OBJECTS, len(KINDS))), "words": drawn[:, cut:]}
        return Output(self.answers(latents.flatten(1)), maps)
