"""The network of the universal adversary: how likely a layout fools the player.

    wrong(layout, question) = f( mean and maximum over all pairs i, j of g(thing i, thing j, question) )

It is the critic of an actor-critic with episodes of one step, only that it sees the move as well: with one step an
action's value is its expected reward, and regression finds that. The actor plays the best of many legal layouts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pfungst.core import PfungstError
from pfungst.probes.game.adversaries.describe import ASKED, THING, Described

CHUNK = 2048
"""Layouts looked at together."""


@dataclass(frozen=True)
class Fit:
    """How the network learns."""

    hidden: int = 96
    batch: int = 512
    rate: float = 1e-3
    weight_decay: float = 1e-3
    passes: int = 12
    """Over all that was asked."""
    held_out: float = 0.1
    """Share of the questions that it is checked on; the best pass counts."""
    group: int = 16
    """Layouts of one question in a batch: the actor learns from the difference between them."""
    actor: float = 3.0
    """Weight of the actor's loss beside the critic's."""


class Ranking(nn.Module):
    """things (B, 10, THING), first column 1 where there is one, asked (B, ASKED) -> log-odds of a wrong answer (B,)."""

    def __init__(self, hidden: int = 96) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(THING, hidden), nn.Linear(THING, hidden, bias=False)
        self.question = nn.Linear(ASKED, hidden)
        self.g = nn.Sequential(nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.f = nn.Sequential(
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
    def load(cls, path: Path) -> Ranking:
        from pfungst.models.tensors import load_tensors

        tensors, about = load_tensors(path)
        try:
            network = cls(int(json.loads(about["ranking"])["hidden"]))
            network.load_state_dict(tensors)
        except (KeyError, ValueError, RuntimeError) as error:
            raise PfungstError(f"{path}: these are no weights of a universal adversary ({error}).") from error
        return network.eval()


def fit(
    network: Ranking,
    questions: Sequence[Described],
    wrong: Sequence[np.ndarray[Any, np.dtype[np.bool_]]],
    how: Fit,
    seed: int,
) -> list[dict[str, float]]:
    """Learn from answered layouts: `wrong[i]` says which layouts of question i got a wrong answer.

    Critic: cross-entropy of a wrong answer. Actor: the share of wrong answers that a softmax over the layouts of one
    question would bring; only what differs between layouts of the same question helps it. The network ends as it was
    after its best pass, by the actor's share on held-out questions. Returns loss and held-out share of every pass.
    """
    device = next(network.parameters()).device
    rng = np.random.default_rng(seed)
    things = torch.from_numpy(np.concatenate([one.things for one in questions])).to(device)
    asked = torch.from_numpy(np.stack([one.asked for one in questions])).to(device)
    target = torch.from_numpy(np.concatenate(wrong).astype(np.float32)).to(device)
    counts = np.array([len(one.things) for one in questions])
    first = np.concatenate([[0], counts.cumsum()[:-1]])
    order = rng.permutation(len(questions))
    held = order[: max(1, int(how.held_out * len(order)))] if len(order) >= 10 else order
    learn = order[len(held) :] if len(order) >= 10 else order
    optimiser = torch.optim.AdamW(network.parameters(), lr=how.rate, weight_decay=how.weight_decay)
    group, many = min(how.group, int(counts.max())), max(1, how.batch // how.group)
    steps = max(1, int(counts[learn].sum()) // (group * many))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, how.rate, total_steps=max(2, how.passes * steps))
    best, kept, curve = -1.0, _copy(network), []
    for _ in range(how.passes):
        network.train()
        losses = []
        for _ in range(steps):
            some = rng.choice(learn, many)
            rows = torch.from_numpy(first[some][:, None] + rng.integers(0, counts[some][:, None], (many, group)))
            rows = rows.to(device)
            asks = asked[torch.from_numpy(some).to(device)].repeat_interleave(group, 0)
            odds, goal = network(things[rows.flatten()], asks), target[rows]
            critic = F.binary_cross_entropy_with_logits(odds, goal.flatten())
            share = (odds.view(many, group).softmax(1) * goal).sum(1)
            loss = critic - how.actor * share.mean()
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 5.0)
            optimiser.step()
            schedule.step()
            losses.append(loss.detach())
        network.eval()
        shares = []
        for number in held:
            own = slice(first[number], first[number] + counts[number])
            odds = torch.from_numpy(network.rank(Described(things[own].cpu().numpy(), asked[number].cpu().numpy())))
            shares.append(float((odds.softmax(0) * target[own].cpu()).sum()))
        curve.append({"loss": float(torch.stack(losses).mean()), "held_out": float(np.mean(shares))})
        if curve[-1]["held_out"] > best:
            best, kept = curve[-1]["held_out"], _copy(network)
    network.load_state_dict(kept)
    network.eval()
    return curve


def _copy(network: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in network.state_dict().items()}
