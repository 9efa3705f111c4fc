"""Which mini-games there are to play, and where their tapes lie."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pfungst.core import ProbeError

from .export import TEST, Exported

ON_SCENES = ("rn-state", "state-transformer")
"""Players that read scenes: each process asks them itself."""
LEARN = "learn"
BUDGETS = {"a2c": 100, "rsg": 100, "committee": 20, "universal": 20, "a2c-pixel": 100}
"""Queries a question, where nothing else is said."""
PHASES = (("committee", "a2c", "rsg"), ("universal",), ("a2c-pixel",))
"""The most wanted first. What a committee has looked at is known to all who ask later."""


@dataclass(frozen=True)
class Task:
    """A mini-game to play, or (`adversary` learn) a universal adversary to train."""

    player: str
    adversary: str
    run: int = 0
    size: int = 10
    budget: int = 100
    options: tuple[tuple[str, Any], ...] = ()
    """Settings of the adversary."""

    @property
    def folder(self) -> str:
        """Of the tapes, and later of the run."""
        budget = f"-{self.budget}" if self.budget != BUDGETS.get(self.adversary, self.budget) else ""
        return f"{self.player}-{self.adversary}-{self.size}{budget}"


def tasks_of(given: Namespace, exported: Exported) -> list[Task]:
    """What there is to do, the most wanted first; players take turns."""
    tasks = [Task(player, LEARN) for player in given.players if "universal" in given.adversaries]
    questions = len(exported.splits[TEST])
    if questions < given.size:
        raise ProbeError(f"{questions} questions were prepared, too few for a mini-game of {given.size}: see --test.")
    games = questions // given.size
    committee = (("members", given.members), ("candidates", given.candidates))
    for phase in PHASES:
        for run in range(min(given.seeds, games)):
            for adversary in (one for one in phase if one in given.adversaries):
                budget = given.budget or BUDGETS[adversary]
                settings = committee if adversary == "committee" else ()
                tasks += [Task(player, adversary, run, given.size, budget, settings) for player in given.players]
    for run in range(min(given.long_games, games)):
        tasks += [Task(player, "rsg", run, given.size, 5000) for player in given.players]
    return [task for task in tasks if not tape_of(given.out, task).exists()]


def tape_of(out: Path, task: Task) -> Path:
    """What a finished task leaves."""
    if task.adversary == LEARN:
        return network_of(out, task.player)
    return out / "tapes" / task.folder / f"round-{task.run:05d}.json.gz"


def network_of(out: Path, player: str) -> Path:
    """The universal adversary that was trained against a player."""
    return out / "universal" / f"{player}.safetensors"


def sample_number(exported: Exported, task: Task) -> int:
    return task.run % (len(exported.splits[TEST]) // task.size)


def sample(exported: Exported, task: Task) -> list[str]:
    """The questions of a mini-game: no two mini-games share one as long as there are enough."""
    names = exported.splits[TEST]
    order = np.random.default_rng(task.size).permutation(len(names))
    first = sample_number(exported, task) * task.size
    return [names[i] for i in sorted(order[first : first + task.size].tolist())]
