"""What fooled the player once, so that the A2C adversary ends up playing it.

A policy gradient forgets: a question is fooled by one of a hundred moves, that move gives one step, and the policy goes
on to others. Self-imitation (Oh et al. 2018, https://arxiv.org/abs/1806.05635) learns from remembered moves that paid
better than the critic expects,

    loss = -log p(move) max(R - V, 0),

which costs no query, since what came of them is known. The critic, which there learns from these moves as well, does
not: it would soon expect what is remembered, long before the policy plays it. Of each question the first move that
fooled is remembered, and no other: the distributions of x and y are independent, so that between two good moves lies a
third that may be none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pfungst.probes.game.adversaries.policy import Policy
from pfungst.probes.game.adversaries.table import BoardTable
from pfungst.probes.game.adversaries.torch_guard import torch
from pfungst.world.constants import MAX_OBJECTS

if TYPE_CHECKING:
    from collections.abc import Callable

AT_ONCE = 256
"""Questions in one update of `settle`."""
LOOK_EVERY = 10
"""Updates of `settle` between two looks whether it is done."""


class Memory:
    """The first fooling move of every question of the table that has one, as what each head should have said."""

    def __init__(self, table: BoardTable, bins: int) -> None:
        self._table, self._bins = table, bins
        boards = len(table.heads)
        self._cells = torch.zeros((boards, MAX_OBJECTS, 2), dtype=torch.int64)
        self._moves = torch.zeros((boards, MAX_OBJECTS), dtype=torch.bool)
        self._rewards = torch.zeros(boards)
        self.numbers: list[int] = []
        """Questions with something to remember, in the order they were fooled."""

    def add(self, number: int, cells: npt.NDArray[np.int64], reward: float) -> None:
        """Remember a move of a question, cells (objects,), where it has none yet."""
        heads = torch.from_numpy(self._table.heads[number])
        if self._moves[number, heads[0]]:
            return
        self._cells[number, heads] = torch.from_numpy(np.stack(np.divmod(cells, self._bins), axis=1))
        self._moves[number, heads] = True
        self._rewards[number] = reward
        self.numbers.append(number)

    def some(self, most: int, rng: np.random.Generator) -> list[int]:
        """Questions with something to remember, drawn at random where they are more than `most`."""
        return self.numbers if len(self.numbers) <= most else rng.choice(self.numbers, most, replace=False).tolist()

    def loss(self, policy: Policy, some: list[int]) -> torch.Tensor:
        """The loss above, mean over these questions."""
        log_p, values, _ = self._recall(policy, some)
        out: torch.Tensor = -(log_p * (self._rewards[some] - values).clamp(min=0.0).detach()).mean()
        return out

    @torch.no_grad()
    def settled(self, policy: Policy) -> bool:
        """Whether each remembered move is the likeliest of all moves."""
        parts = range(0, len(self.numbers), AT_ONCE)
        return all(bool(self._recall(policy, self.numbers[at : at + AT_ONCE])[2].all()) for at in parts)

    def settle(self, policy: Policy, learn: Callable[[torch.Tensor], None], most: int, rng: np.random.Generator) -> int:
        """Learn from what is remembered until the policy plays it, in at most so many updates; returns how many."""
        for step in range(most if self.numbers else 0):
            if step % LOOK_EVERY == 0 and self.settled(policy):
                return step
            learn(self.loss(policy, self.some(AT_ONCE, rng)))
        return most

    def _recall(self, policy: Policy, some: list[int]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Log-probabilities (questions,) of the moves, values (questions,), and whether each head that moves something
        finds what it should have said likeliest (questions, 10)."""
        x, y, values = self._table.decide(policy, some)
        both, wanted, moves = torch.stack([x, y], 2), self._cells[some], self._moves[some]
        log_p = both.gather(-1, wanted[..., None]).squeeze(-1).sum(-1)
        played = (both.argmax(-1) == wanted).all(-1) | ~moves
        return (log_p * moves).sum(-1), values, played
