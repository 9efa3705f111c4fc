"""State-Input Transformer (Appendix A.3 and Figure 5 of Measuring CLEVRness).

    scene -> 10 * 6 = 60 object tokens: x, y, size, shape, material, colour of up to 10 objects, the empty token else
    question -> 50 tokens, padded with the empty token
    every kind of token has a projection of its own; a learnt embedding of its kind is added      (B, 110, d)
    three learnt tokens (B, 3, d)
    5 blocks of cross-attention between the three and all input tokens: the three look at the 110, then the 110 at the
    three, each followed by a feed-forward layer
    the three tokens, side by side -> feed-forward classifier -> answers

The appendix names no widths: 8 heads of 32 are ours. Its example, emb(material) + emb(object), is read as one embedding
of the kind of a token and one of the object that it belongs to, which tells the objects apart; words have one of their
place. "Cross-attention between all input embeddings and those three" is read both ways; with `both_ways` off only the
three look, and a relation must be worked out within three vectors. `latent_attention` lets the three tokens look at
each other in every block, as in Perceiver; the appendix has only cross-attention, so it is off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import nn

from pfungst.models.base import PAD, Batch, Model, Output, Sizes
from pfungst.models.scene import KINDS, SceneTokens
from pfungst.models.transformer import DecoderLayer
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
    both_ways: bool = True


class StateTransformer(Model):
    """question, scene -> answers.

    Maps, averages over heads, blocks and the three tokens: `objects` (B, 10, 6), `words` (B, 50).
    """

    Config = StateTransformerConfig
    PRESETS: ClassVar[dict[str, Any]] = {
        "paper": StateTransformerConfig(),
        "compact": StateTransformerConfig(160, 8, 5, 3, 50, 448, 192, 0.0),
        "tiny": StateTransformerConfig(16, 2, 2, 3, 12, 32, 16, 0.0),
    }
    reads: ClassVar[frozenset[str]] = frozenset({"question", "scene"})

    def __init__(self, sizes: Sizes, config: StateTransformerConfig) -> None:
        super().__init__(sizes, config)
        size = config.size
        self.scene = SceneTokens(size)
        self.words = nn.Embedding(sizes.words, size)
        self.question_kind = nn.Parameter(torch.empty(size).normal_(std=size**-0.5))
        # As large as the embeddings of the words: what belongs together is found by them alone.
        self.objects = nn.Parameter(torch.empty(MAX_OBJECTS, 1, size).normal_())
        self.places = nn.Parameter(torch.empty(config.question_length, size).normal_())
        self.latents = nn.Parameter(torch.empty(config.latents, size).normal_(std=size**-0.5))
        self.norm = nn.LayerNorm(size)
        self.blocks = nn.ModuleList(
            DecoderLayer(size, config.heads, config.feed_forward, config.dropout, config.latent_attention)
            for _ in range(config.blocks)
        )
        # What the last block would tell the inputs nobody reads.
        self.back = nn.ModuleList(
            DecoderLayer(size, config.heads, size, config.dropout, self_attention=False, shown=False)
            for _ in range(config.blocks - 1 if config.both_ways else 0)
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
        objects = (F.pad(objects, (0, 0, 0, 0, 0, MAX_OBJECTS - objects.shape[1])) + self.objects).flatten(1, 2)
        length = self.config.question_length
        question = F.pad(batch.question[:, :length], (0, max(0, length - batch.question.shape[1])), value=PAD)
        words = self.words(question) + self.question_kind + self.places
        tokens = self.norm(torch.cat([objects, words], 1))
        latents = self.latents.expand(len(batch), -1, -1)
        weights, stages = [], []
        cut, shape = MAX_OBJECTS * len(KINDS), (MAX_OBJECTS, len(KINDS))
        for index, block in enumerate(self.blocks):
            latents, seen = block(latents, tokens, tokens, None)
            weights.append(seen)
            if index < len(self.back):
                tokens, _ = self.back[index](tokens, latents, latents, None)
                stages.append(torch.unflatten(tokens[:, :cut], 1, shape).mean(2))
        drawn = torch.stack(weights).mean((0, 2))
        maps = {"objects": torch.unflatten(drawn[:, :cut], 1, shape), "words": drawn[:, cut:]}
        return Output(self.answers(latents.flatten(1)), maps, {"stages": stages} if stages else {})
