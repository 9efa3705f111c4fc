"""How many moves a second does the game judge and ask, beside the same loop with a straightforward engine?

Both loops play the same moves on the same boards against the same quick player that reads scenes, under the same
rules, and must agree on every reward. The straightforward loop takes one move at a time: rules pair by pair, relations
and program walked in Python, pixels counted one scene at a time, nothing remembered. Seconds are those of processors,
so that other work on the machine does not count.

    python benchmarks/game_steps.py [--quick]
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from pfungst.core import Answer, Asker, Query
from pfungst.probes.game import GAMES, Layouts, MiniGame, boards_of
from pfungst.probes.game.verifier import run_program
from pfungst.world import embedded, visible_pixels
from pfungst.world.constants import RADIUS, RELATIONS

PAPER = GAMES["paper-places"]


class Quick:
    """Answers yes where the first object stands in the right half."""

    name, fingerprint, reads_scenes, batch_size = "quick", "quick-1", True, 4096

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        return [Answer("yes" if q.scene["objects"][0]["3d_coords"][0] > 0 else "no") for q in queries if q.scene]


def plain_reward(board: Any, positions: Any, player: Quick, old: str) -> float:
    """One move, the straightforward way."""
    scene = board.scene.moved(positions).to_json()
    things = scene["objects"]
    for i, one in enumerate(things):
        x, y, _ = one["3d_coords"]
        if abs(x) > 3 or abs(y) > 3:
            return -0.8
        for other in things[:i]:
            dx, dy = x - other["3d_coords"][0], y - other["3d_coords"][1]
            if math.hypot(dx, dy) - RADIUS[one["size"]] - RADIUS[other["size"]] < 0.25:
                return -0.8
            for name in RELATIONS:
                way = scene["directions"][name]
                if 0 < dx * way[0] + dy * way[1] < 0.4:
                    return -0.8
    if run_program(scene, board.program.to_json()) != board.truth_text or visible_pixels(scene).min() < 200:
        return -0.8
    new = player.answer([Query(board.example.question, None, scene=scene)])[0].text
    return -0.1 if new == old else 1.0 if old == board.truth_text else 0.1


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    count = 1000 if parser.parse_args().quick else 6000
    examples = [one for one in embedded(scenes=30, seed=1, cache=False) if one.id == one.group][:20]
    boards, _ = boards_of(examples, PAPER)
    rng = np.random.default_rng(0)
    which, layouts = [], []
    for number, board in enumerate(boards):
        # Half the moves keep gap and margin, as a masked adversary's do; half are drawn blindly.
        legal = board.positions(Layouts(board).uniform(rng, count // 40))
        blind = board.positions(rng.integers(0, board.cells, (count // 40, len(board))))
        layouts += [*legal, *blind]
        which += [number] * (len(legal) + len(blind))
    MiniGame(boards, Asker(Quick()), PAPER).step(which[:8], layouts[:8])  # compile

    # Boards remember what was seen of them: each loop gets new ones.
    game = MiniGame(boards_of(examples, PAPER)[0], Asker(Quick()), PAPER)
    start = time.process_time()
    fast = [move.reward for move in game.step(which, layouts)]
    quick_time = time.process_time() - start
    single = MiniGame(boards_of(examples, PAPER)[0], Asker(Quick()), PAPER)
    start = time.process_time()
    for number, positions in zip(which, layouts, strict=True):
        single.step([number], [positions])
    single_time = time.process_time() - start
    old = [(game.old_answer(n) or Answer("")).text for n in range(len(boards))]
    start = time.process_time()
    plain = [plain_reward(boards[n], one, Quick(), old[n]) for n, one in zip(which, layouts, strict=True)]
    plain_time = time.process_time() - start
    assert plain == fast, "the two loops disagree"
    start = time.process_time()
    game.step(which, layouts)
    again_time = time.process_time() - start
    n = len(which)
    print(f"{n} moves on {len(boards)} boards; legal: {np.mean(np.array(fast) != -0.8):.0%}; all rewards agree")
    for name, seconds in (
        ("straightforward loop", plain_time),
        ("one move at a time (Gymnasium)", single_time),
        ("batched", quick_time),
        ("moves tried before", again_time),
    ):
        print(f"{name:32} {n / seconds:10,.0f} steps/s   {plain_time / seconds:6.1f}x")


if __name__ == "__main__":
    main()
