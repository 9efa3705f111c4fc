"""Asking about layouts that are ranked already."""

from __future__ import annotations

from collections.abc import Mapping

from pfungst.probes.game.board import Floats
from pfungst.probes.game.minigame import MiniGame


def ask_in_order(game: MiniGame, ranked: Mapping[int, Floats], batch: int) -> None:
    """Ask about the layouts of every board, the first ones first, and commit to the very first.

    ranked: board -> (layouts, objects, 2).
    """
    for start in range(0, max(map(len, ranked.values()), default=0), batch):
        live = [number for number in game.live() if len(ranked.get(number, ())) > start]
        if not live:
            break
        next_ones = {number: ranked[number][start : start + batch] for number in live}
        which = [number for number, some in next_ones.items() for _ in some]
        game.step(which, [one for some in next_ones.values() for one in some])
        if not start:
            game.commit({number: fair[0] for number, fair in ranked.items()})
