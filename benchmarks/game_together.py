"""What does a mini-game against random scenes cost if its players share boards, scenes and images, beside each alone?

Both times every player is asked about the same scenes and says the same. Alone, boards are made and scenes drawn and
rendered for each player anew. Seconds are those of processors, so that other work on the machine does not count.

    python benchmarks/game_together.py [--quick]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pfungst.core import Asker, Player
from pfungst.models import encode
from pfungst.players import resolve
from pfungst.probes.game import GAMES, MiniGame, boards_of
from pfungst.probes.game.adversaries import get_adversary
from pfungst.probes.game.board import Board
from pfungst.world import embedded

PAPER = GAMES["paper-places"]
PLAYERS = ("film", "tbd", "mdetr", "rn", "iep", "san", "ban", "rn-state", "state-transformer")


def played(player: Player, boards: Sequence[Board], budget: int) -> list[tuple[int, bytes, str | None]]:
    game = MiniGame(boards, Asker(player), PAPER, budget=budget)
    get_adversary("rsg").attack(game, np.random.default_rng(0))
    return [(move.board, move.positions.tobytes(), move.answer) for move in game.moves()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer players, questions and scenes")
    quick = parser.parse_args().quick
    names, questions, budget = (PLAYERS[:3], 5, 20) if quick else (PLAYERS, 11, 100)
    examples = [example for example in embedded(scenes=30, seed=7, cache=False) if example.id == example.group]
    examples = [replace(example, choices=()) for example in examples[:questions]]

    def ready(*some: str) -> list[Player]:
        """Players that have seen nothing of the boards yet, compiled and loaded."""
        encode.shared_eyes.cache_clear()
        players = [resolve(name) for name in some]
        for player in players:
            played(player, boards_of(examples[-1:], PAPER)[0], 2)
        encode.remember(questions * budget)
        return players

    alone, separate = 0.0, []
    for name in names:
        (player,) = ready(name)
        start = time.process_time()
        separate.append(played(player, boards_of(examples[:-1], PAPER)[0], budget))
        alone += time.process_time() - start
    players = ready(*names)
    start = time.process_time()
    boards = boards_of(examples[:-1], PAPER)[0]
    together = [played(player, boards, budget) for player in players]
    shared = time.process_time() - start
    assert together == separate, "the players were not asked the same, or said something else"
    print(f"{len(names)} players, {questions - 1} questions, {budget} scenes each: {sum(map(len, separate)):,} answers")
    print(f"each alone {alone:.1f} s, together {shared:.1f} s: {alone / shared:.1f} times as quick")


if __name__ == "__main__":
    main()
