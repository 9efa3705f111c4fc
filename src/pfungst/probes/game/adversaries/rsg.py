"""RSG: random scenes that keep all rules, the baseline of appendix B.3 of Measuring CLEVRness."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from itertools import islice, tee

import numpy as np

from pfungst.probes.game.board import Board, Floats
from pfungst.probes.game.enforcers import Enforcers
from pfungst.probes.game.layouts import Layouts
from pfungst.probes.game.minigame import MiniGame
from pfungst.world.constants import BOUND

BUDGET = 5000
"""Queries an image-question pair (appendix B.3)."""


@dataclass(frozen=True)
class RandomScenes:
    """Random scenes that all enforcers agree to, for each question until one fools the player."""

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
        scenes = {number: self._scenes(game, game.boards[number], chances[number]) for number in game.live()}
        # All boards together: a player that looks at many images at once is asked about many.
        while drawn := [(number, some) for number in game.live() for some in islice(scenes[number], 1)]:
            game.step([number for number, some in drawn for _ in some], [one for _, some in drawn for one in some])
            game.commit({number: some[0] for number, some in drawn if game.committed_to(number) is None})

    def _scenes(self, game: MiniGame, board: Board, chance: np.random.Generator) -> Iterator[Floats]:
        """Batches of different scenes of a board that all enforcers agree to. Drawn once: the next player of the same
        mini-game is shown them again."""
        known = repr((self, game.enforcers, chance.bit_generator.state))
        if known not in board.drawn:
            (board.drawn[known],) = tee(self._draw_scenes(board, game.enforcers, chance), 1)
        return copy(board.drawn[known])

    def _draw_scenes(self, board: Board, enforcers: Enforcers, chance: np.random.Generator) -> Iterator[Floats]:
        layouts = Layouts(board)
        seen: set[bytes] = set()
        idle = 0
        while idle < self.patience:
            drawn = {one.tobytes(): one for one in self._draw(board, layouts, chance)}
            fresh = np.array([one for name, one in drawn.items() if name not in seen]).reshape(-1, len(board), 2)
            seen.update(drawn)
            fair = fresh[enforcers.allow(board, fresh)]
            idle = 0 if len(fair) else idle + 1
            if len(fair):
                yield fair

    def _draw(self, board: Board, layouts: Layouts, rng: np.random.Generator) -> Floats:
        if not self.free:
            return board.positions(layouts.uniform(rng, self.batch))
        reach = BOUND * (board.rules.stretch if board.rules.ood else 1.0)
        return rng.uniform(-reach, reach, (self.batch * 40, len(board), 2))
