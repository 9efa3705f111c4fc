"""The network that learns skip-thoughts: an encoder and two decoders, for the sentence before and the one after."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pfungst.text.encoders.gru import GRUWeights, equation_states

if TYPE_CHECKING:
    from pfungst.text.encoders.training import SkipThoughtsConfig


class Reader(nn.Module):
    """A GRU that gives the state after each sentence's own last word."""

    def __init__(self, size_in: int, size: int, *, reset_after: bool) -> None:
        super().__init__()
        self.reset_after = reset_after
        self.gru: nn.GRU = nn.GRU(size_in, size)
        _, states, bias, second = self.gru.all_weights[0]
        with torch.no_grad():
            bias.zero_()
            second.zero_()
            for block in states.chunk(3):
                nn.init.orthogonal_(block)
        # The published layout has one bias; torch's second one stays at zero.
        second.requires_grad_(False)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """(words, sentences, e) and lengths -> (sentences, h)."""
        states = self.gru(x)[0] if self.reset_after else equation_states(self.published(), x)
        last = (lengths - 1).clamp(min=0).view(1, -1, 1).expand(1, -1, states.shape[2])
        return cast(Tensor, states.gather(0, last)[0])

    def published(self) -> dict[str, Tensor]:
        """The weights in the published layout (see `GRUWeights`)."""
        size = self.gru.hidden_size
        inputs, states, b, _ = self.gru.all_weights[0]
        w, u = inputs.T, states.T
        return {
            "W": w[:, : 2 * size], "U": u[:, : 2 * size], "Wx": w[:, 2 * size :],
            "Ux": u[:, 2 * size :], "b": b[: 2 * size], "bx": b[2 * size :],
        }  # fmt: skip

    def weights(self) -> GRUWeights:
        return GRUWeights(
            **{name: t.detach().cpu().float().contiguous().numpy() for name, t in self.published().items()}
        )


class SkipThoughtsNet(nn.Module):
    """Encoder (uni-skip and bi-skip over one table of words), two conditional GRU decoders, one output layer.

    A decoder is given the sentence's vector at every word, which is the papers' C h added to the reset gate, the update
    gate and the new state.
    """

    def __init__(self, config: SkipThoughtsConfig, words: int) -> None:
        super().__init__()
        self.config = config
        e = config.word_size
        self.table: nn.Embedding = nn.Embedding(words, e)
        self.grams: nn.Embedding = nn.Embedding(config.grams, e)
        nn.init.normal_(self.table.weight, std=0.1)
        nn.init.normal_(self.grams.weight, std=0.1)
        half = config.bi // 2
        self.uni = Reader(e, config.uni, reset_after=config.reset_after) if config.uni else None
        self.ahead = Reader(e, half, reset_after=config.reset_after) if half else None
        self.behind = Reader(e, half, reset_after=config.reset_after) if half else None
        dim = config.uni + 2 * half
        self.previous: nn.GRU = nn.GRU(e + dim, config.decoder)
        self.next: nn.GRU = nn.GRU(e + dim, config.decoder)
        self.output: nn.Linear = nn.Linear(config.decoder, words + 1)

    def look_up(self, ids: Tensor, spelled: Tensor, grams: tuple[Tensor, Tensor]) -> Tensor:
        """Word vectors; where `spelled`, from the letter n-grams instead of the table."""
        known = ids.clamp(max=self.table.num_embeddings - 1)
        vectors = cast(Tensor, self.table(known))
        chosen = ids[spelled]
        if chosen.numel():
            buckets, shares = grams[0][chosen], grams[1][chosen]
            made = F.embedding_bag(buckets, self.grams.weight, mode="sum", per_sample_weights=shares)
            vectors = vectors.masked_scatter(spelled.unsqueeze(2), made.to(vectors.dtype))
        return vectors

    def vectors(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Skip-thought vectors (sentences, dim): each part of length 1."""
        parts = []
        if self.uni is not None:
            parts.append(F.normalize(self.uni(x, lengths).float(), dim=1))
        if self.ahead is not None and self.behind is not None:
            # Reversed within each sentence's own length, so that padding is still read last.
            steps = torch.arange(len(x), device=x.device).unsqueeze(1)
            order = torch.where(steps < lengths, lengths - 1 - steps, steps).unsqueeze(2).expand(-1, -1, x.shape[2])
            both = [self.ahead(x, lengths), self.behind(x.gather(0, order), lengths)]
            parts.append(F.normalize(torch.cat(both, dim=1).float(), dim=1))
        return torch.cat(parts, dim=1)

    def decode(self, decoder: nn.GRU, vectors: Tensor, inputs: Tensor, targets: Tensor) -> Tensor:
        """Mean negative log-likelihood of a neighbour's words, `targets` (words, sentences); -100 is not counted."""
        x = torch.cat([inputs, vectors.to(inputs.dtype).unsqueeze(0).expand(len(inputs), -1, -1)], dim=2)
        states = decoder(x)[0]
        counted = targets != -100
        if not bool(counted.any()):
            return vectors.sum() * 0
        return F.cross_entropy(self.output(states[counted]).float(), targets[counted])


def contrast(one: Tensor, two: Tensor, same: Tensor, temperature: float) -> Tensor:
    """How hard it is to find each sentence's neighbour among all of the batch (Logeswaran and Lee 2018).

    `same` (n, n): pairs that are no wrong answers although they are not the neighbour (equal sentences).
    """
    scores = F.normalize(one, dim=1) @ F.normalize(two, dim=1).T / temperature
    scores = scores.masked_fill(same, float("-inf"))
    right = torch.arange(len(one), device=one.device)
    return (F.cross_entropy(scores, right) + F.cross_entropy(scores.T, right)) / 2
