"""The layers that several architectures share."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from pfungst.models.base import PAD, Batch, Sizes


def pixels(image: Tensor) -> Tensor:
    """uint8 pixels as floats around 0 with a spread of about 1; features pass as they are."""
    return (image.float() - 127.0) / 64.0 if image.dtype == torch.uint8 else image


class Stem(nn.Module):
    """The small trainable CNN of the world: 3x3 convolutions of stride 2, batch normalisation, ReLU.

    (B, C, H, W) -> (B, channels[-1], H', W') with H' = ceil(H / 2**layers). Without channels it passes its input on:
    then features come from outside, as in the papers.
    """

    def __init__(self, image: tuple[int, int, int], channels: Sequence[int]) -> None:
        layers: list[nn.Module] = []
        before, height, width = image
        for after in channels:
            layers += [nn.Conv2d(before, after, 3, 2, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
            before, height, width = after, -(-height // 2), -(-width // 2)
        super().__init__()
        self.layers = nn.Sequential(*layers)
        self.shape: tuple[int, int, int] = (before, height, width)

    def forward(self, image: Tensor) -> Tensor:
        seen: Tensor = self.layers(pixels(image))
        return seen


class Grid(nn.Module):
    """The image of a batch as a grid (B, C, H, W), through a stem where there is one."""

    def __init__(self, sizes: Sizes, stem: Sequence[int]) -> None:
        super().__init__()
        self.stem = Stem(sizes.image, stem)
        self.channels, self.height, self.width = self.stem.shape

    def forward(self, batch: Batch) -> Tensor:
        if batch.image is None:
            raise ValueError("This model looks at images, and the batch has none.")
        grid: Tensor = self.stem(batch.image)
        return grid


class Regions(nn.Module):
    """The image of a batch as R regions (B, R, D) and which of them are there (B, R).

    Given region features are taken as they are; else the cells of the grid are the regions, row by row.
    """

    def __init__(self, sizes: Sizes, stem: Sequence[int]) -> None:
        super().__init__()
        self.grid = None if sizes.regions else Grid(sizes, stem)
        self.size: int = sizes.regions if self.grid is None else self.grid.channels

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        if self.grid is None:
            if batch.regions is None:
                raise ValueError("This model looks at regions, and the batch has none.")
            return batch.regions, batch.regions.abs().sum(-1) > 0
        cells = self.grid(batch).flatten(2).transpose(1, 2)
        return cells, torch.ones(cells.shape[:2], dtype=torch.bool, device=cells.device)

    def draw(self, weights: Tensor) -> Tensor:
        """Weights (..., R) in the shape of the grid (..., H, W); as they are for given regions."""
        if self.grid is None:
            return weights
        return torch.unflatten(weights, -1, (self.grid.height, self.grid.width))


class Pooled(nn.Module):
    """The image of a batch as one vector (B, D): the mean over the regions that are there."""

    def __init__(self, sizes: Sizes, stem: Sequence[int]) -> None:
        super().__init__()
        self.regions = Regions(sizes, stem)
        self.size: int = self.regions.size

    def forward(self, batch: Batch) -> Tensor:
        cells, there = self.regions(batch)
        mean: Tensor = (cells * there[..., None]).sum(1) / there.sum(1, keepdim=True).clamp(min=1)
        return mean


class WordReader(nn.Module):
    """Embedding and recurrent network over words.

    question (B, T) -> outputs (B, T, H) with zeros behind the last word, and the state after the last word (B, H). An
    empty question is read as one padding word.
    """

    def __init__(self, words: int, word_size: int, hidden: int, *, layers: int = 1, cell: str = "lstm") -> None:
        super().__init__()
        self.words = nn.Embedding(words, word_size, padding_idx=PAD)
        kind = {"lstm": nn.LSTM, "gru": nn.GRU}[cell]
        self.network = kind(word_size, hidden, layers, batch_first=True)
        self.hidden = hidden

    def forward(self, question: Tensor) -> tuple[Tensor, Tensor]:
        outputs, state = self.states(question)
        return outputs, (state[0] if isinstance(state, tuple) else state)[-1]

    def states(self, question: Tensor, embedded: Tensor | None = None) -> tuple[Tensor, Tensor | tuple[Tensor, Tensor]]:
        """Outputs, and the state of every layer: (layers, B, H), a pair of them for an LSTM."""
        places = torch.arange(1, question.shape[-1] + 1, device=question.device)
        lengths = (places * (question != PAD)).amax(-1).clamp(min=1).cpu()
        vectors = self.words(question) if embedded is None else embedded
        packed = pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
        outputs, state = self.network(packed)
        padded, _ = pad_packed_sequence(outputs, batch_first=True, total_length=question.shape[1])
        return padded, state


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over what is there in the last dimension; zeros where nothing is."""
    scores = scores.float().masked_fill(~mask, -torch.inf)
    empty = ~mask.any(-1, keepdim=True)
    return F.softmax(scores.masked_fill(empty, 0.0), -1).masked_fill(~mask, 0.0)


def glimpses(scores: Tensor, regions: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
    """Attention that looks several times: scores (B, R, G), regions (B, R, D), mask (B, R) -> weights (B, G, R), and
    what is seen, one glimpse after the other (B, G * D)."""
    weights = masked_softmax(scores.transpose(1, 2), there[:, None])
    return weights, torch.einsum("bgr,brd->bgd", weights.to(regions.dtype), regions).flatten(1)


def mean_words(embedding: nn.Embedding, words: Tensor) -> Tensor:
    """Average vector of the words (..., T) -> (..., D); zeros for no word."""
    there = (words != PAD).unsqueeze(-1)
    mean: Tensor = (embedding(words) * there).sum(-2) / there.sum(-2).clamp(min=1)
    return mean


def score_choices(scorer: nn.Module, known: Tensor, embedding: nn.Embedding, batch: Batch) -> Tensor:
    """Scores (B, K) of the choices: each is the mean of its words beside what is known (B, D); -inf where none is."""
    if batch.choices is None:
        raise ValueError("This model scores choices, and the batch has none.")
    choices = mean_words(embedding, batch.choices)
    pairs = torch.cat([known[:, None].expand(-1, choices.shape[1], -1), choices], -1)
    scores: Tensor = scorer(pairs).squeeze(-1)
    return scores.masked_fill(~batch.choice_mask, -torch.inf)


def coordinates(like: Tensor) -> Tensor:
    """(B, 2, H, W): column and row of every cell, from -1 to 1."""
    batch, _, height, width = like.shape
    rows = torch.linspace(-1, 1, height, device=like.device, dtype=like.dtype)
    columns = torch.linspace(-1, 1, width, device=like.device, dtype=like.dtype)
    grid = torch.stack([columns.expand(height, width), rows[:, None].expand(height, width)])
    return grid.expand(batch, 2, height, width)


def normed(before: int, after: int) -> nn.Linear:
    """Linear layer with weight normalisation."""
    layer: nn.Linear = weight_norm(nn.Linear(before, after), dim=None)  # type: ignore[arg-type]
    return layer


class NormedReLU(nn.Sequential):
    """Dropout, weight-normed linear, ReLU: the layer of Pythia and BAN."""

    def __init__(self, before: int, after: int, dropout: float = 0.0) -> None:
        super().__init__(nn.Dropout(dropout), normed(before, after), nn.ReLU())


class GatedTanh(nn.Module):
    """tanh(W x + b) * sigmoid(W' x + b'), the layer of the bottom-up top-down model."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.value = nn.Linear(before, after)
        self.gate = nn.Linear(before, after)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.value(x)) * torch.sigmoid(self.gate(x))


class ConvClassifier(nn.Sequential):
    """1x1 convolution, pooling over the whole grid, two layers: the classifier of FiLM, IEP and TbD.

    (B, C, H, W) -> (B, answers). `pool` is `max` over the whole grid, or `window`: 2x2 maxima, flattened, which keeps
    where something was.
    """

    def __init__(
        self, shape: tuple[int, int, int], projection: int, hidden: int, answers: int, *, pool: str, norm: bool = False
    ) -> None:
        channels, height, width = shape
        layers: list[nn.Module] = [nn.Conv2d(channels, projection, 1)]
        layers += [nn.BatchNorm2d(projection)] if norm else []
        layers += [nn.ReLU()]
        if pool == "max":
            layers += [nn.AdaptiveMaxPool2d(1), nn.Flatten()]
            flat = projection
        else:
            layers += [nn.MaxPool2d(2, 2, ceil_mode=True), nn.Flatten()]
            flat = projection * -(-height // 2) * -(-width // 2)
        super().__init__(*layers, nn.Linear(flat, hidden), nn.ReLU(), nn.Linear(hidden, answers))
