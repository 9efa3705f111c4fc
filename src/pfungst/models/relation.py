"""RN: relation networks (Santoro et al. 2017), on pixels and on states.

    answers = f( sum over all pairs i, j of  g([o_i, o_j, q]) )

Pixels: 128x128 -> 4 convolutions of stride 2, 24 channels each -> every cell, with its coordinates, is an object
(B, 64, 26); question -> words 32 -> LSTM 128; g: 4 layers of 256; f: 256, 256 with dropout 0.5, answers. With `cells`
only so many of a finer grid are objects, those that look like the centre of one, which it learns from scenes; as with
states, pairs with a cell that holds nothing are left out of the sum.

States: the scene as 10 * 6 tokens (x, y, size, shape, material, colour of up to 10 objects, or the empty token), as in
Measuring CLEVRness, section 5 and A.3: each token is projected with a matrix of its kind and a learnt embedding of
its kind is added; the six of an object, summed, are one object. g: 4 layers of 512; f: 512, 1024 with dropout 0.02,
answers. Pairs with an object that is not there are left out of the sum. `relations(batch)` is the representation just
after the last relational layer, which the paper's adversary decides on.

The first layer of g is applied to its three inputs apart and added up per pair: the same function, at a fraction of the
work (g would read every object once for every other one).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from pfungst.models.base import Batch, Model, Output, Sizes
from pfungst.models.layers import Grid, WordReader, coordinates
from pfungst.models.objects import centre_loss
from pfungst.models.scene import SceneTokens


@dataclass(frozen=True)
class RelationConfig:
    """Sizes of the published network on pixels."""

    word_size: int = 32
    hidden: int = 128
    """LSTM."""
    relation: tuple[int, ...] = (256, 256, 256, 256)
    """Layers of g."""
    classifier: tuple[int, ...] = (256, 256)
    """Layers of f before the answers; dropout stands before the last."""
    dropout: float = 0.5
    stem: tuple[int, ...] = (24, 24, 24, 24)
    """Channels of the CNN."""
    cells: int = 0
    """Cells that are objects, at most; 0: all, as published."""
    object_size: int = 0
    """Of an object, made of its cell by a layer and a matrix; 0: the cell as it is."""


@dataclass(frozen=True)
class RelationStateConfig:
    """Sizes of the published network on state descriptions."""

    word_size: int = 32
    hidden: int = 128
    object_size: int = 128
    """An object token."""
    relation: tuple[int, ...] = (512, 512, 512, 512)
    classifier: tuple[int, ...] = (512, 1024)
    dropout: float = 0.02


class Relations(nn.Module):
    """sum_{i,j} g([o_i, o_j, q]).

    Objects (B, N, D), mask (B, N), q (B, H) -> the sum (B, layers[-1]), the part of it that the pairs of each object
    are (B, N, layers[-1]), and the mean activity of every pair (B, N, N).
    """

    def __init__(self, objects: int, question: int, layers: Sequence[int]) -> None:
        super().__init__()
        self.first = nn.Linear(objects, layers[0], bias=False)
        self.second = nn.Linear(objects, layers[0], bias=False)
        self.ask = nn.Linear(question, layers[0])
        rest: list[nn.Module] = []
        for before, after in pairwise(layers):
            rest += [nn.Linear(before, after), nn.ReLU()]
        self.rest = nn.Sequential(*rest)
        self.output: int = layers[-1]

    def forward(self, objects: Tensor, there: Tensor, question: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        one, other = self.first(objects)[:, :, None], self.second(objects)[:, None]
        hidden = self.rest(torch.relu(one + other + self.ask(question)[:, None, None]))
        pairs = (there[:, :, None] & there[:, None, :])[..., None]
        hidden = hidden.masked_fill(~pairs, 0.0)
        each = hidden.float().sum(2)
        return each.sum(1), each, hidden.mean(-1)


class Relation(Model):
    """question, image -> answers. Maps: `picture`, how much the pairs of every cell say."""

    Config = RelationConfig
    PRESETS: ClassVar[dict[str, Any]] = {
        "paper": RelationConfig(),
        "compact": RelationConfig(64, 128, (256, 256, 256, 256), (256, 256), 0.1, (32, 64, 64, 64)),
        "features": RelationConfig(64, 192, (256, 256, 256, 256), (256, 256), 0.02, (), 12, 128),
        "tiny": RelationConfig(8, 12, (16, 16), (16, 16), 0.0, (8, 8)),
    }

    def __init__(self, sizes: Sizes, config: RelationConfig) -> None:
        super().__init__(sizes, config)
        self.grid = Grid(sizes, config.stem)
        size = self.grid.channels + 2
        self.reader = WordReader(sizes.words, config.word_size, config.hidden)
        if config.cells:
            self.centre = nn.Linear(size, 1)
            self.learns_from: frozenset[str] = self.learns_from | {"scene"}
        if config.object_size:
            self.token = nn.Sequential(nn.Linear(size, 2 * size), nn.ReLU(), nn.Linear(2 * size, config.object_size))
        self.pairs = Relations(config.object_size or size, config.hidden, config.relation)
        self.answers = _classifier(config.relation[-1], config.classifier, sizes.answers, config.dropout)

    def relations(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """What `Relations` gives; first (B, layers[-1]), after the sum over the pairs."""
        return self._related(batch)[0]

    def forward(self, batch: Batch) -> Output:
        (total, each, activity), where, centres = self._related(batch)
        shape = (self.grid.height, self.grid.width)
        drawn = torch.unflatten(_spread(activity.mean(1) + activity.mean(2), where, shape), -1, shape)
        stage = torch.unflatten(_spread(each.transpose(1, 2), where, shape), -1, shape)
        extra: dict[str, Any] = {"stages": [stage]}
        if centres is not None:
            extra["centres"] = torch.unflatten(centres, -1, shape)
        return Output(self.answers(total), {"picture": drawn}, extra)

    def cells(self, batch: Batch) -> Tensor:
        """The cells of the image with their coordinates, (B, H * W, C + 2)."""
        x = self.grid(batch)
        return torch.cat([x, coordinates(x)], 1).flatten(2).transpose(1, 2)

    def _related(self, batch: Batch) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor | None, Tensor | None]:
        """What `Relations` gives, the cells that are objects (B, K) and how much each looks like one (B, H * W)."""
        _, question = self.reader(batch.question)
        objects = self.cells(batch)
        there = torch.ones(objects.shape[:2], dtype=torch.bool, device=objects.device)
        where = centres = None
        if self.config.cells:
            centres = self.centre(objects)[..., 0]
            likely, where = centres.topk(min(self.config.cells, objects.shape[1]), -1)
            objects = objects.gather(1, where[..., None].expand(-1, -1, objects.shape[2]))
            there = likely > 0
        if self.config.object_size:
            objects = self.token(objects)
        return self.pairs(objects, there, question), where, centres

    def losses(self, batch: Batch, output: Output) -> dict[str, Tensor]:
        losses = super().losses(batch, output)
        if "centres" in output.extra:
            if batch.scene is None or batch.scene.pixels is None:
                raise ValueError("This model learns where objects are from scenes, and the batch has none.")
            losses["centres"] = centre_loss(output.extra["centres"], batch.scene)
        return losses


def _spread(values: Tensor, where: Tensor | None, shape: tuple[int, int]) -> Tensor:
    """Values of some cells (B, ..., K) at their places among all (B, ..., H * W); 0 elsewhere."""
    if where is None:
        return values
    where = where.view(len(where), *(1,) * (values.ndim - 2), -1).expand_as(values)
    return values.new_zeros(*values.shape[:-1], shape[0] * shape[1]).scatter(-1, where, values)


class RelationState(Model):
    """question, scene -> answers. Maps: `pairs` (B, N, N), how much every pair of objects says."""

    Config = RelationStateConfig
    PRESETS: ClassVar[dict[str, Any]] = {
        "paper": RelationStateConfig(),
        "compact": RelationStateConfig(64, 192, 128, (256, 256, 256, 256), (256, 256), 0.02),
        "tiny": RelationStateConfig(8, 12, 12, (16, 16), (16, 16), 0.0),
    }
    reads: ClassVar[frozenset[str]] = frozenset({"question", "scene"})

    def __init__(self, sizes: Sizes, config: RelationStateConfig) -> None:
        super().__init__(sizes, config)
        self.tokens = SceneTokens(config.object_size, empty=False)
        self.reader = WordReader(sizes.words, config.word_size, config.hidden)
        self.pairs = Relations(config.object_size, config.hidden, config.relation)
        self.answers = _classifier(config.relation[-1], config.classifier, sizes.answers, config.dropout)

    def relations(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """What `Relations` gives; first (B, layers[-1]), after the sum over the pairs."""
        if batch.scene is None:
            raise ValueError("This model reads scenes, and the batch has none.")
        _, question = self.reader(batch.question)
        objects = self.tokens(batch.scene).sum(2)
        summed: tuple[Tensor, Tensor, Tensor] = self.pairs(objects, batch.scene.present, question)
        return summed

    def forward(self, batch: Batch) -> Output:
        total, each, activity = self.relations(batch)
        return Output(self.answers(total), {"pairs": activity}, {"stages": [each]})


def _classifier(before: int, layers: Sequence[int], answers: int, dropout: float) -> nn.Sequential:
    parts: list[nn.Module] = []
    for index, after in enumerate(layers):
        parts += [nn.Linear(before, after), nn.ReLU()]
        parts += [nn.Dropout(dropout)] if index == len(layers) - 1 else []
        before = after
    return nn.Sequential(*parts, nn.Linear(before, answers))
