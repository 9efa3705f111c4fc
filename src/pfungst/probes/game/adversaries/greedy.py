"""Greedy coordinate search: one object at a time, to every place it may stand on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pfungst.probes.game.minigame import MiniGame, Move

BUDGET = 100
"""Queries per question: a mini-game of ten against a player of images stays within two minutes."""


@dataclass(frozen=True)
class Greedy:
    """Starts from the scene as it stands; tries all places of one object, keeps the one that shook the player most,
    goes on with the next object, round after round.

    "Shook most" means the highest reward, and among equal rewards the lowest confidence where the player tells one;
    otherwise chance decides, which makes it a walk through legal neighbours.
    """

    name: str = "greedy"
    budget: int = BUDGET
    batch: int = 16
    """Places of an object asked about at once."""
    rounds: int = 20

    def attack(self, game: MiniGame, rng: np.random.Generator) -> None:
        for number in game.live():
            board = game.boards[number]
            here = np.array(board.start)
            for _ in range(self.rounds):
                before = game.queries(number)
                for mover in rng.permutation(len(board)):
                    tried = np.repeat(here[None], board.cells, axis=0)
                    tried[:, mover] = board.places[mover]
                    tried = tried[game.enforcers.allow(board, tried)]
                    tried = tried[rng.permutation(len(tried))]
                    moves: list[Move] = []
                    for start in range(0, len(tried), self.batch):
                        part = tried[start : start + self.batch]
                        moves += game.step([number] * len(part), list(part)) if number in game.live() else []
                    answered = [move for move in moves if move.answer is not None]
                    if answered:
                        here = max(answered, key=lambda move: (move.reward, -(move.confidence or 0.0))).positions
                    if number not in game.live():
                        break
                if number not in game.live() or game.queries(number) == before:
                    break
