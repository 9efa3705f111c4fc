"""Transformer layers that show their attention."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class MultiHead(nn.Module):
    """Multi-head attention: queries (B, Q, d), keys and values (B, K, d), mask of keys (B, K) -> (B, Q, d)."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        if size % heads:
            raise ValueError(f"{heads} heads do not divide a width of {size}.")
        self.heads = heads
        self.query = nn.Linear(size, size)
        self.key = nn.Linear(size, size)
        self.value = nn.Linear(size, size)
        self.join = nn.Linear(size, size)

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = (self._split(x) for x in (self.query(queries), self.key(keys), self.value(values)))
        allowed = None if mask is None else mask[:, None, None]
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
        joined: Tensor = self.join(attended.transpose(1, 2).flatten(2))
        return joined

    @torch.no_grad()
    def weights(self, queries: Tensor, keys: Tensor, mask: Tensor | None = None) -> Tensor:
        """Mean weights over the heads, (B, Q, K)."""
        q, k = self._split(self.query(queries)), self._split(self.key(keys))
        scores = (q @ k.transpose(-1, -2)).float() / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None, None], -torch.inf)
        return scores.softmax(-1).mean(1)

    def _split(self, x: Tensor) -> Tensor:
        return torch.unflatten(x, -1, (self.heads, -1)).transpose(1, 2)


class FeedForward(nn.Sequential):
    """Layer norm, linear, ReLU, linear."""

    def __init__(self, size: int, hidden: int, dropout: float) -> None:
        super().__init__(
            nn.LayerNorm(size), nn.Linear(size, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, size)
        )


class EncoderLayer(nn.Module):
    """x + attention(norm x), then x + feed-forward(norm x). `places` are added to queries and keys, not to values."""

    def __init__(self, size: int, heads: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.attention = MultiHead(size, heads)
        self.dropout = nn.Dropout(dropout)
        self.forward_ = FeedForward(size, hidden, dropout)

    def forward(self, x: Tensor, mask: Tensor | None, places: Tensor | None = None) -> Tensor:
        y = self.norm(x)
        guided = y if places is None else y + places
        x = x + self.dropout(self.attention(guided, guided, y, mask))
        passed: Tensor = x + self.dropout(self.forward_(x))
        return passed


class DecoderLayer(nn.Module):
    """Queries (B, Q, d) look at each other, then at the memory (B, K, d); `self_attention` may be left out.

    Without `shown` no weights are worked out, and zeros (B, 0) stand for them.
    """

    def __init__(
        self, size: int, heads: int, hidden: int, dropout: float, self_attention: bool = True, shown: bool = True
    ) -> None:
        super().__init__()
        self.shown = shown
        self.own_norm = nn.LayerNorm(size) if self_attention else None
        self.own = MultiHead(size, heads) if self_attention else None
        self.norm = nn.LayerNorm(size)
        self.cross = MultiHead(size, heads)
        self.dropout = nn.Dropout(dropout)
        self.forward_ = FeedForward(size, hidden, dropout)

    def forward(
        self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, own_places: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The next queries, and the mean weights over the memory (B, Q, K)."""
        if self.own is not None and self.own_norm is not None:
            y = self.own_norm(x)
            guided = y if own_places is None else y + own_places
            x = x + self.dropout(self.own(guided, guided, y))
        y = self.norm(x)
        guided = y if own_places is None else y + own_places
        x = x + self.dropout(self.cross(guided, keys, values, mask))
        weights = self.cross.weights(guided, keys, mask) if self.shown else x.new_zeros(len(x), 0)
        return x + self.dropout(self.forward_(x)), weights


def sine_places(height: int, width: int, size: int, device: torch.device) -> Tensor:
    """(H * W, d): sines and cosines of the row in one half, of the column in the other."""
    half = size // 2
    rates = torch.exp(torch.arange(0, half, 2, device=device) * (-math.log(10000.0) / half))
    parts = []
    for count, wide in ((height, False), (width, True)):
        angle = torch.linspace(0, 2 * math.pi, count, device=device)[:, None] * rates * 16
        wave = torch.cat([angle.sin(), angle.cos()], -1)[:, :half]
        parts.append(wave[None].expand(height, width, half) if wide else wave[:, None].expand(height, width, half))
    flat = torch.cat(parts, -1).flatten(0, 1)
    return F.pad(flat, (0, size - flat.shape[-1]))
