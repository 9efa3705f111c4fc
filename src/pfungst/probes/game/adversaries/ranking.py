"""The network of the universal adversary: how likely a layout fools the player.

    wrong(layout, question) = f( mean and maximum over all pairs i, j of g(thing i, thing j, question) )

It is the critic of an actor-critic with episodes of one step, only that it sees the move as well: with one step an
action's value is its expected reward, and regression finds that. The actor plays the best of many legal layouts.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pfungst.core import PfungstError
from pfungst.probes.game.adversaries.describe import ASKED, THING, Described

CHUNK = 2048
"""Layouts looked at together."""


class LayoutRanker(nn.Module):
    """things (B, 10, THING), first column 1 where there is one, asked (B, ASKED) -> log-odds of a wrong answer (B,)."""

    def __init__(self, hidden: int = 96) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(THING, hidden), nn.Linear(THING, hidden, bias=False)
        self.question: nn.Linear = nn.Linear(ASKED, hidden)
        self.g: nn.Sequential = nn.Sequential(nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.f: nn.Sequential = nn.Sequential(
            nn.Linear(2 * hidden + ASKED, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1)
        )

    def forward(self, things: Tensor, asked: Tensor) -> Tensor:
        there = things[:, :, 0]
        both = (there[:, :, None] * there[:, None, :])[..., None]
        pairs = self.one(things)[:, :, None] + self.other(things)[:, None] + self.question(asked)[:, None, None]
        # Never negative, so that pairs that are not there do not count for the maximum either.
        related = self.g(pairs) * both
        mean = related.sum((1, 2)) / both.sum((1, 2)).clamp(min=1.0)
        out: Tensor = self.f(torch.cat([mean, related.amax((1, 2)), asked], 1)).squeeze(1)
        return out

    @torch.no_grad()
    def rank(self, described: Described) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Log-odds (layouts,) of a wrong answer."""
        device = next(self.parameters()).device
        asked = torch.from_numpy(described.asked).to(device)
        parts = []
        for start in range(0, len(described.things), CHUNK):
            things = torch.from_numpy(described.things[start : start + CHUNK]).to(device)
            parts.append(self(things, asked.expand(len(things), -1)).cpu())
        return torch.cat(parts).numpy() if parts else np.zeros(0, np.float32)

    def save(self, path: Path, about: dict[str, Any] | None = None) -> None:
        from pfungst.models.tensors import save_tensors

        hidden = self.question.out_features
        save_tensors(path, self.state_dict(), {"ranking": json.dumps({"hidden": hidden, **(about or {})})})

    @classmethod
    def load(cls, path: Path) -> LayoutRanker:
        from pfungst.models.tensors import load_tensors

        tensors, about = load_tensors(path)
        try:
            network = cls(int(json.loads(about["ranking"])["hidden"]))
            network.load_state_dict(tensors)
        except (KeyError, ValueError, RuntimeError) as error:
            raise PfungstError(f"{path}: these are not weights of a universal adversary ({error}).") from error
        return network.eval()
