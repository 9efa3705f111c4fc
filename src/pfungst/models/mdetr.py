"""MDETR, compact: a text-modulated detection transformer with a question head (Kamath et al. 2021).

    image -> CNN -> 1x1 -> (B, H*W, d), sine places;   question -> words, places -> text encoder -> (B, T, d)
    both side by side, with an embedding of their kind -> joint encoder: every cell sees every word   (B, H*W + T, d)
    decoder: object queries and one question query (B, K + 1, d) look at each other and at the memory
    every object query -> attributes and place of an object (or "no object"); the question query -> answers

What differs from the published model, to be small and to learn without pre-training: a trainable CNN for ResNet, a
small text encoder for RoBERTa, the attributes of the scene for the spans of the text that name an object (its soft
token prediction and contrastive loss), the centre for the box, one question query for one a type of question. As there,
objects are matched with the scene by the cheapest assignment, so it learns from states (Table 1 of
Measuring CLEVRness).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from pfungst.models.base import PAD, Batch, Model, Output, Scenes, Sizes
from pfungst.models.layers import Grid
from pfungst.models.objects import ObjectHead, detection_losses
from pfungst.models.transformer import DecoderLayer, EncoderLayer, sine_places

MATCHED = 128
"""Pictures of a batch whose objects are matched: of a thousand, matching took four times as long as all the rest."""


@dataclass(frozen=True)
class MdetrConfig:
    """Widths and depths of the published CLEVR model, but for its two pre-trained encoders."""

    size: int = 256
    heads: int = 8
    text_layers: int = 2
    encoder_layers: int = 6
    decoder_layers: int = 6
    queries: int = 25
    feed_forward: int = 2048
    question_length: int = 64
    """Longer questions are cut."""
    dropout: float = 0.1
    detection: float = 1.0
    """Weight of the losses on objects."""
    stem: tuple[int, ...] = (64, 128, 256, 256)
    """Channels of the CNN; none: features come from outside."""


class Mdetr(Model):
    """question, image -> answers. Maps: `picture` (B, H, W) and `words` (B, T): what the question query looks at;
    `objects` (B, K, 19) attribute logits and `places` (B, K, 2)."""

    Config = MdetrConfig
    PRESETS: ClassVar[dict[str, Any]] = {
        "paper": MdetrConfig(),
        "compact": MdetrConfig(128, 8, 1, 3, 3, 16, 320, 64, 0.0, 1.0, (48, 64, 96)),
        "features": MdetrConfig(128, 8, 1, 4, 2, 16, 320, 64, 0.0, 1.0, (128,)),
        "tiny": MdetrConfig(16, 2, 1, 1, 1, 5, 32, 16, 0.0, 1.0, (8, 8)),
    }
    learns_from: frozenset[str] = frozenset({"answer", "scene"})

    def __init__(self, sizes: Sizes, config: MdetrConfig) -> None:
        super().__init__(sizes, config)
        size, heads, wide, drop = config.size, config.heads, config.feed_forward, config.dropout
        self.grid = Grid(sizes, config.stem)
        self.enter = nn.Conv2d(self.grid.channels, size, 1)
        self.words = nn.Embedding(sizes.words, size, padding_idx=PAD)
        self.word_places = nn.Parameter(torch.empty(config.question_length, size).normal_(std=0.02))
        self.kinds = nn.Parameter(torch.empty(2, size).normal_(std=0.02))
        self.text = nn.ModuleList(EncoderLayer(size, heads, wide, drop) for _ in range(config.text_layers))
        self.encoder = nn.ModuleList(EncoderLayer(size, heads, wide, drop) for _ in range(config.encoder_layers))
        self.memory_norm = nn.LayerNorm(size)
        self.queries = nn.Parameter(torch.empty(config.queries + 1, size).normal_(std=size**-0.5))
        self.decoder = nn.ModuleList(DecoderLayer(size, heads, wide, drop) for _ in range(config.decoder_layers))
        self.norm = nn.LayerNorm(size)
        self.objects = ObjectHead(size, size)
        self.answers = nn.Sequential(nn.Linear(size, size), nn.ReLU(), nn.Linear(size, sizes.answers))

    def forward(self, batch: Batch) -> Output:
        grid = self.enter(self.grid(batch))
        height, width = grid.shape[2:]
        cells = grid.flatten(2).transpose(1, 2)
        question = batch.question[:, : self.config.question_length]
        mask = question != PAD
        words = self.words(question) + self.word_places[: question.shape[1]]
        # A row without any word would have nothing to attend to; its padding stands in.
        readable = mask | ~mask.any(-1, keepdim=True)
        for layer in self.text:
            words = layer(words, readable)
        memory = torch.cat([cells + self.kinds[0], words + self.kinds[1]], 1)
        count = cells.shape[1]
        places = memory.new_zeros(memory.shape[1], memory.shape[2])
        places[:count] = sine_places(height, width, memory.shape[2], memory.device).to(memory.dtype)
        there = torch.cat([mask.new_ones(len(batch), count), mask], 1)
        stages = []
        for layer in self.encoder:
            memory = layer(memory, there, places)
            stages.append(torch.unflatten(memory[:, :count].transpose(1, 2), 2, (height, width)))
        memory = self.memory_norm(memory)
        slots = torch.zeros_like(self.queries).expand(len(batch), -1, -1)
        weights = memory.new_zeros(0)
        for layer in self.decoder:
            slots, weights = layer(slots, memory + places, memory, there, self.queries)
        slots = self.norm(slots)
        objects, where = self.objects(slots[:, :-1])
        looked = weights[:, -1]
        maps: dict[str, Tensor] = {
            "picture": torch.unflatten(looked[:, :count], 1, (height, width)),
            "words": looked[:, count:],
            "objects": objects,
            "places": where,
        }
        return Output(self.answers(slots[:, -1]), maps, {"stages": stages})

    def losses(self, batch: Batch, output: Output) -> dict[str, Tensor]:
        losses = super().losses(batch, output)
        if batch.scene is not None and batch.scene.pixels is not None and self.config.detection:
            objects, places = (output.maps[name][:MATCHED] for name in ("objects", "places"))
            scene = Scenes(batch.scene.attributes[:MATCHED], batch.scene.positions[:MATCHED])
            found = detection_losses(objects, places, scene, batch.scene.pixels[:MATCHED])
            losses |= {name: self.config.detection * loss for name, loss in found.items()}
        return losses
