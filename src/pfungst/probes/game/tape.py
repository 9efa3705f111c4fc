"""A mini-game played on another machine, small enough to send: what was asked and answered, in order.

`record(game)` there, `replay(tape, examples, rules)` here. Replaying judges every scene again with the enforcers of
this machine and leaves a `MiniGame` as if it had been played here, which `settle` verifies and writes down as ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pfungst.core import Answer, Example, PfungstError, Query
from pfungst.probes.game.board import SceneImage, boards_of
from pfungst.probes.game.minigame import MiniGame
from pfungst.probes.game.rules import INVALID, GameRules

VERSION = 1


def record(game: MiniGame) -> dict[str, Any]:
    """Everything that was asked, as JSON."""
    heard: dict[tuple[int, bytes, int], list[Any]] = game.asker.heard  # type: ignore[attr-defined]
    boards = [board.example.id for board in game.boards]
    moves = [
        [move.step, move.board, move.positions.ravel().tolist()] for move in game.moves() if move.status != INVALID
    ]
    answers = [[at, np.frombuffer(places).tolist(), take, *said] for (at, places, take), said in heard.items()]
    committed = [
        None if places is None else np.asarray(places).ravel().tolist()
        for places in (game.committed_to(at) for at in range(len(boards)))
    ]
    return {
        "version": VERSION,
        "boards": boards,
        "budget": game.budget,
        "moves": moves,
        "answers": answers,
        "committed": committed,
        "illegal": dict(game.illegal),
    }


class Heard:
    """An asker that remembers what was said about which layout, around another one."""

    def __init__(self, asker: Any, boards: Sequence[str]) -> None:
        self._asker = asker
        self._numbers = {name: at for at, name in enumerate(boards)}
        self.heard: dict[tuple[int, bytes, int], list[Any]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._asker, name)

    def ask(self, queries: Sequence[Query]) -> list[Answer | None]:
        answers: list[Answer | None] = self._asker.ask(queries)
        for query, answer in zip(queries, answers, strict=True):
            image = query.image
            if answer is not None and isinstance(image, SceneImage):
                confidence = None if answer.confidence is None else round(answer.confidence, 4)
                number = self._numbers[image.board.example.id]
                self.heard[number, image.positions, query.take] = [answer.text, confidence]
        return answers


class Recorded:
    """An asker that answers from a tape."""

    reads_scenes = False
    fingerprint = ""
    failed = 0
    last_error = ""

    def __init__(self, answers: Mapping[tuple[str, bytes, int], Answer]) -> None:
        self._answers = answers
        self.asked = self.recalled = 0

    def ask(self, queries: Sequence[Query]) -> list[Answer | None]:
        found: list[Answer | None] = []
        for query in queries:
            image = query.image
            assert isinstance(image, SceneImage)
            found.append(self._answers.get((image.board.example.id, image.positions, query.take)))
        self.asked += sum(one is not None for one in found)
        return found


def replay(tape: Mapping[str, Any], examples: Mapping[str, Example], rules: GameRules) -> MiniGame:
    """The mini-game of a tape. Raises PfungstError where it is about other questions or other rules."""
    if tape.get("version") != VERSION:
        raise PfungstError(f"The tape of a game has version {tape.get('version')!r}; {VERSION} can be read.")
    missing = [name for name in tape["boards"] if name not in examples]
    if missing:
        raise PfungstError(f"The tape of a game is about questions that are not here ({missing[0]} ...).")
    boards, unfit = boards_of([examples[name] for name in tape["boards"]], rules)
    if unfit:
        raise PfungstError(f"The tape of a game is about a question that cannot be played: {unfit[0][1]}")
    said = {
        (tape["boards"][at], np.asarray(places, dtype=np.float64).tobytes(), take): Answer(text, confidence=confidence)
        for at, places, take, text, confidence in tape["answers"]
    }
    game = MiniGame(boards, Recorded(said), rules, budget=tape["budget"])
    committed = {
        at: np.reshape(places, (-1, 2)) for at, places in enumerate(tape["committed"]) if places is not None
    }  # fmt: skip
    game.commit(committed)
    steps: dict[int, list[tuple[int, Any]]] = {}
    for step, board, places in tape["moves"]:
        steps.setdefault(step, []).append((board, np.reshape(places, (-1, 2))))
    for _, moves in sorted(steps.items()):
        game.step([board for board, _ in moves], [places for _, places in moves])
    refused = sum(game.illegal.values())
    if refused:
        raise PfungstError(
            f"{refused} scenes of a tape, allowed where it was played, are refused here: {game.illegal}."
        )
    game.illegal = {str(name): int(count) for name, count in tape["illegal"].items()}
    return game
