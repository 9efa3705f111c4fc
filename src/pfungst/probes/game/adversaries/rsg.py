"""RSG: random scenes that keep all rules, the baseline of appendix B.3 of Measuring CLEVRness."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pfungst.probes.game.board import Board, Floats
from pfungst.probes.game.layouts import Layouts
from pfungst.probes.game.minigame import MiniGame
from pfungst.world.constants import BOUND

BUDGET = 5000
"""Queries an image-question pair (appendix B.3)."""


@dataclass(frozen=True)
class RandomScenes:
    """Random scenes that all enforcers agree to, question by question, until one fools the player."""

    name: str = "rsg"
    budget: int = BUDGET
    batch: int = 50
    """Scenes asked about at once."""
    free: bool = False
    """False: the places of the game's own moves, so that the comparison with other adversaries is fair. True: any place
    within the bounds."""
    patience: int = 40
    """Batches in a row without a single new legal scene after which a question is given up."""

    def attack(self, game: MiniGame, rng: np.random.Generator) -> None:
        # A stream of chance for every board: all players are shown the same scenes, however early one is fooled.
        chances = rng.spawn(len(game.boards))
        for number in game.live():
            board, rng = game.boards[number], chances[number]
            layouts = Layouts(board)
            seen: set[bytes] = set()
            idle = 0
            while number in game.live() and idle < self.patience:
                drawn = self._draw(board, layouts, rng)
                fresh = [one for one in drawn if one.tobytes() not in seen]
                seen.update(one.tobytes() for one in fresh)
                fair = np.stack(fresh) if fresh else drawn[:0]
                fair = fair[game.enforcers.allow(board, fair)] if len(fair) else fair
                idle = 0 if len(fair) else idle + 1
                if len(fair):
                    game.step([number] * len(fair), list(fair))
                if len(fair) and game.committed_to(number) is None:
                    game.commit({number: fair[0]})

    def _draw(self, board: Board, layouts: Layouts, rng: np.random.Generator) -> Floats:
        if not self.free:
            return board.positions(layouts.uniform(rng, self.batch))
        reach = BOUND * (board.rules.stretch if board.rules.ood else 1.0)
        return rng.uniform(-reach, reach, (self.batch * 40, len(board), 2))
