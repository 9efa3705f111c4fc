"""Any Stable-Baselines3 agent as the adversary of the game: here PPO, against a player with a known weakness.

    pip install 'pfungst[torch]' gymnasium stable-baselines3
    python examples/sb3_game.py [--steps 2000]

The environment has episodes of one step, so any agent for contextual bandits will do. Put your own player in the place
of `Hasty`: anything with `name`, `fingerprint` and `answer(queries)`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pfungst.core import Answer, Example, Query
from pfungst.probes.game import SceneGame
from pfungst.world import answer, answer_text, embedded


class Hasty:
    """Answers from the scene, but says "no" whenever something stands near the right corner."""

    name, fingerprint, reads_scenes = "hasty", "hasty-1", True

    def __init__(self, examples: Sequence[Example]) -> None:
        self.programs = {one.question: one.program for one in examples}

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        return [Answer(self._one(query)) for query in queries]

    def _one(self, query: Query) -> str:
        program, scene = self.programs[query.question], query.scene
        if program is None or scene is None or any(one["3d_coords"][0] >= 2.5 for one in scene["objects"]):
            return "no"
        value = answer(program, scene)
        return "no" if value is None else answer_text(value)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    steps = parser.parse_args().steps
    from stable_baselines3 import PPO

    # Scenes of few objects, so that an agent without a legality mask finds legal moves; originals, no rephrasings.
    world = [one for one in embedded(scenes=120, seed=3) if one.id == one.group]
    examples = [one for one in world if one.scene and len(one.scene["objects"]) <= 4][:20]
    env = SceneGame(Hasty(examples), examples)
    agent = PPO("MultiInputPolicy", env, n_steps=128, batch_size=64, seed=0, verbose=0)
    agent.learn(total_timesteps=steps)
    part = max(1, len(env.game.curve) // 5)
    for start in range(0, 5 * part, part):
        some = env.game.curve[start : start + part]
        legal, reward = (sum(getattr(point, name) for point in some) / len(some) for name in ("legal", "reward"))
        print(f"moves {start:5} to {start + len(some):5}: {legal:5.1%} legal, mean reward {reward:+.3f}")
    fooled = [board.example.id for n, board in enumerate(env.game.boards) if env.game.fooled(n)]
    print(f"fooled on {len(fooled)} of {len(env.game.boards)} questions: {', '.join(fooled)}")


if __name__ == "__main__":
    main()
