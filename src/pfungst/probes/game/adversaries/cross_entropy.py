"""Cross-entropy search: a table of odds an object, sharpened towards the layouts that did best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pfungst.probes.game.layouts import Layouts
from pfungst.probes.game.minigame import UNASKED, MiniGame, Move
from pfungst.probes.game.rules import INVALID

BUDGET = 100
"""Queries per question: a mini-game of ten against a player of images stays within two minutes."""


@dataclass(frozen=True)
class CrossEntropy:
    """Draws layouts from one distribution over cells an object, moves the distribution towards the best tenth.

    The bandit of the adversaries: it looks at no image, scene or question, only at rewards (and at the player's
    confidence, where it tells one). Layouts that gap or margin forbid are never drawn.
    """

    name: str = "cross-entropy"
    budget: int = BUDGET
    batch: int = 32
    """Layouts per round."""
    elite: float = 0.1
    """Share of a round that the distribution moves towards."""
    rate: float = 0.3
    """How far it moves, from 0 to 1."""
    floor: float = 0.2
    """Share of the uniform distribution that always stays, so that no place is forgotten."""
    patience: int = 40
    """Rounds in a row without a new question to the player after which a board is given up."""

    def attack(self, game: MiniGame, rng: np.random.Generator) -> None:
        for number in game.live():
            board = game.boards[number]
            layouts, uniform = Layouts(board), np.full((len(board), board.cells), 1.0 / board.cells)
            odds, idle = uniform.copy(), 0
            while number in game.live() and idle < self.patience:
                cells, _, whole = layouts.sequential(rng, (1 - self.floor) * odds + self.floor * uniform, self.batch)
                cells, before = cells[whole], game.queries(number)
                moves = game.step([number] * len(cells), list(board.positions(cells)))
                idle = 0 if game.queries(number) > before else idle + 1
                ranked = [(_worth(move), -at) for at, move in enumerate(moves) if move.status not in (INVALID, UNASKED)]
                if len({worth for worth, _ in ranked}) < 2:
                    continue  # nothing to learn from a round in which all did alike
                best = [-at for _, at in sorted(ranked, reverse=True)[: max(1, int(self.elite * len(cells)))]]
                hits = np.zeros_like(odds)
                for at in best:
                    hits[np.arange(len(board)), cells[at]] += 1.0 / len(best)
                odds = (1 - self.rate) * odds + self.rate * hits


def _worth(move: Move) -> float:
    """The reward; confidence only breaks ties, its weight is below the least difference of rewards."""
    return move.reward - 0.01 * (move.confidence or 0.0)
