"""Adversaries that search and learn nothing about questions: random scenes, one object at a time, cross-entropy."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from itertools import islice, tee

import numpy as np

from pfungst.probes.game.board import Board, Floats
from pfungst.probes.game.enforcers import Enforcers
from pfungst.probes.game.layouts import Layouts
from pfungst.probes.game.minigame import UNASKED, MiniGame, Move
from pfungst.probes.game.rules import INVALID
from pfungst.world.constants import BOUND

BUDGET = 100
"""Queries per question: a mini-game of ten against a player of images stays within two minutes."""
RANDOM_BUDGET = 5000
"""Queries an image-question pair (appendix B.3)."""


@dataclass(frozen=True)
class RandomScenes:
    """Random legal scenes, for each question until one fools the player.

    RSG, the baseline of appendix B.3 of Measuring CLEVRness: all enforcers agree to the scenes.
    """

    name: str = "rsg"
    budget: int = RANDOM_BUDGET
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


@dataclass(frozen=True)
class Greedy:
    """Tries all places of one object, keeps the one that shook the player most, goes on with the next object.

    It starts from the scene as it stands, and goes on round after round. "Shook most" means the highest reward, and
    among equal rewards the lowest confidence where the player tells one; otherwise chance decides, which makes it a
    walk through legal neighbours.
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
