"""Adversaries that know before they ask: they rank many legal layouts and ask about the worst first."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pfungst.probes.game.board import Board, Floats
from pfungst.probes.game.layouts import fair_layouts
from pfungst.probes.game.minigame import MiniGame

BUDGET = 20
"""Queries per question: they are made for few."""

Ranker: TypeAlias = Callable[[Board, Floats], npt.NDArray[np.floating[Any]]]
"""A board and layouts (layouts, objects, 2) to (layouts,): the higher, the likelier is a wrong answer."""


@dataclass(frozen=True)
class Ordered(ABC):
    """Draws many legal layouts of a question, which costs no query, and asks about those it ranks highest."""

    name: str = ""
    budget: int = BUDGET
    candidates: int = 400
    """Legal layouts of a question it chooses among."""
    batch: int = 5
    """Scenes of a question asked about at once, the worst first."""

    @abstractmethod
    def ranker(self, game: MiniGame) -> Ranker:
        """What ranks the layouts of this mini-game's boards."""

    def attack(self, game: MiniGame, rng: np.random.Generator) -> None:
        rank = self.ranker(game)
        chances = rng.spawn(len(game.boards))
        ranked: dict[int, Floats] = {}
        for number in game.live():
            board = game.boards[number]
            fair = fair_layouts(board, game.enforcers, chances[number], self.candidates)
            if len(fair):
                ranked[number] = fair[np.argsort(-rank(board, fair), kind="stable")]
        for start in range(0, max(map(len, ranked.values()), default=0), self.batch):
            live = [number for number in game.live() if len(ranked.get(number, ())) > start]
            if not live:
                break
            next_ones = {number: ranked[number][start : start + self.batch] for number in live}
            which = [number for number, some in next_ones.items() for _ in some]
            game.step(which, [one for some in next_ones.values() for one in some])
            if not start:
                # What it would show if it had a single try is the very first.
                game.commit({number: fair[0] for number, fair in ranked.items()})
