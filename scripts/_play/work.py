"""A process that plays mini-games one after the other; it asks the desk about pictures."""

from __future__ import annotations

import json
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pfungst.core import Answer, ProbeError, Query
from pfungst.probes.game.adversaries import Adversary, get_adversary
from pfungst.probes.game.adversaries.committee import Bench, Committee
from pfungst.probes.game.asker import Asking
from pfungst.probes.game.board import Board, Floats
from pfungst.probes.game.minigame import MiniGame

from .desk import Request
from .export import RULES, TRAIN, Exported, write_json_gz
from .tasks import LEARN, ON_SCENES, Task, network_of, sample, sample_number, tape_of


class DeskAsker:
    """Asks the desk what a player answers."""

    reads_scenes = False
    fingerprint = ""
    recalled = failed = 0
    last_error = ""

    def __init__(self, line: Any, player: str) -> None:
        self._line, self._player = line, player
        self.asked = 0

    def ask(self, queries: Sequence[Query]) -> list[Answer | None]:
        if not queries:
            return []
        images: list[Any] = [one.image for one in queries]
        items = [(one.board.example.id, one.positions, query.take) for one, query in zip(images, queries, strict=True)]
        self._line.send(("ask", Request((self._player,), items)))
        self.asked += len(items)
        return [Answer(text, confidence=confidence) for text, confidence in self._line.recv()]


@dataclass(frozen=True)
class DeskBench:
    """Members that sit at the desk."""

    line: Any
    members: tuple[str, ...]

    def sure(self, board: Board, layouts: Floats) -> Floats:
        items = [(board.example.id, board.image(one).positions, 0) for one in layouts]
        self.line.send(("ask", Request(self.members, items, judge=True)))
        found: Floats = self.line.recv()
        return found


@dataclass(frozen=True)
class DeskCommittee(Committee):
    """A committee whose members sit at the desk, where one picture does for all of them."""

    line: Any = None
    player: str = ""

    def bench(self, asker: Asking) -> Bench:
        others = tuple(name for name in self.names if name != self.player)
        if not others:
            raise ProbeError(f"The committee has no member but the player {self.player}: --members names others.")
        return DeskBench(self.line, others)


def work(line: Any, exported: Exported, given: Namespace) -> None:
    """Plays what it is told to until nothing is left."""
    import torch

    torch.set_num_threads(1)
    players: dict[str, Any] = {}
    while True:
        line.send(("next",))
        task = line.recv()
        if task == "wait":
            time.sleep(0.5)
            continue
        if task is None:
            return
        began = time.monotonic()
        asker: Asking = DeskAsker(line, task.player)
        if task.player in ON_SCENES:
            from pfungst.players.zoo import load as zoo
            from pfungst.probes.game.asker import Asker

            if task.player not in players:
                players[task.player] = zoo(task.player, batch_size=256)
            asker = Asker(players[task.player])
        try:
            if task.adversary == LEARN:
                learn(task, asker, exported, given)
            else:
                play_one(task, adversary_of(task, line, given), asker, exported, given)
        except Exception as error:  # the other mini-games shall not fail because of one
            print(f"{task}: {type(error).__name__}: {error}", flush=True)
            if given.strict:
                raise
        line.send(("done",))
        if task.adversary == LEARN or time.monotonic() - began > 30:
            print(f"{task.folder} {task.run}: {time.monotonic() - began:.0f} s", flush=True)


def adversary_of(task: Task, line: Any, given: Namespace) -> Adversary:
    """Who plays this mini-game."""
    if task.adversary == "committee":
        return DeskCommittee(line=line, player=task.player, **dict(task.options))
    # Questions that have hardly a legal layout are given up early; 64 take part in one update.
    quick = {"patience": 20, "max_steps": 100 * -(-task.size // 64)}
    settings: dict[str, Any] = {}
    if task.adversary == "universal":
        settings = {"weights": str(network_of(given.out, task.player))}
    elif task.adversary == "a2c":
        settings = {"features": str(given.out / "seen-rn-state.npz"), **quick}
    elif task.adversary == "a2c-pixel":
        settings = {"features": str(given.out / "seen-rn.npz"), **quick}
    elif task.adversary == "rsg" and task.budget <= 100:
        # All at once, so that no question's scenes end with the one that fooled: their mean is that of random scenes.
        # Where so many draws found no more layouts there are none.
        settings = {"patience": 1, "batch": task.budget}
    return get_adversary(task.adversary, **settings)


def play_one(task: Task, adversary: Adversary, asker: Asking, exported: Exported, given: Namespace) -> None:
    """One mini-game; leaves its tape."""
    from pfungst.probes.game.rows import ask_again
    from pfungst.probes.game.tape import Heard, record

    ids = sample(exported, task)
    game = MiniGame([exported.boards[name] for name in ids], Heard(asker, ids), RULES, budget=task.budget)
    adversary.attack(game, np.random.default_rng([given.seed, task.run, 7]))
    ask_again(game)
    path = tape_of(given.out, task)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json_gz(path, {"task": asdict(task), "game": sample_number(exported, task), **record(game)})


def learn(task: Task, asker: Asking, exported: Exported, given: Namespace) -> None:
    """Train the universal adversary against one player."""
    from pfungst.probes.game.adversaries.ranking import Fit
    from pfungst.probes.game.learning import Learning
    from pfungst.probes.game.learning import learn as train

    boards = [exported.boards[name] for name in exported.splits[TRAIN]]
    gpu = given.device.startswith("cuda")
    how = Learning(
        given.first, given.rounds, given.each, fit=Fit(batch=2048 if gpu else 256, passes=given.passes),
        device=given.device,
    )  # fmt: skip
    game = MiniGame(boards, asker, RULES, budget=how.queries)
    pools = {board.example.id: board.pool for board in boards if board.pool is not None}
    heard: dict[str, Any] = {}
    network, curve = train(game, how, np.random.default_rng([given.seed, 11]), pools, heard)
    np.savez_compressed(given.out / "universal" / f"{task.player}-answers.npz", **heard)
    about = {"player": task.player, "questions": len(boards), "curve": curve, "learning": asdict(how)}
    network.save(network_of(given.out, task.player), about)
    print(f"{task.player}: {json.dumps(curve)}", flush=True)
