"""The game as a Gymnasium environment, for any reinforcement-learning agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pfungst.core import Asker, Example, MissingExtra, Player, ProbeError
from pfungst.core.store import AnswerStore
from pfungst.probes.game.board import (
    OBJECT_FEATURES,
    QUESTION_LENGTH,
    TOKENS,
    boards_of,
    object_features,
    question_tokens,
)
from pfungst.probes.game.enforcers import Enforcers
from pfungst.probes.game.minigame import MiniGame
from pfungst.probes.game.rules import FOOLED, GameRules, rules_of
from pfungst.world.constants import MAX_OBJECTS

try:
    import gymnasium
    from gymnasium import spaces
except ImportError as error:
    raise MissingExtra("The Gymnasium environment of the game", "game") from error


class SceneGame(gymnasium.Env[dict[str, Any], Any]):  # type: ignore[misc]
    """One question an episode, one move an episode: where should the objects stand so that the player is fooled?

    player: a black box, it sees an image and a question (and the scene, if it declares `reads_scenes`).
    examples: questions with scene and program; those that cannot be played are left out, see `unfit`.
    preset: `paper`, `paper-places`, `paper-literal`, `code`, or `GameRules` of one's own; `ood` lifts the
        in-distribution constraints.
    observation: `state` gives `objects` (10, 18) and `question` (50); `pixels` gives `image` (height, width, 3) in the
        place of `objects`.
    store: answers are kept there and never asked again.

    Action: 10 x 2 bins; objects that the scene lacks ignore theirs. `reset(options={"board": 3})` chooses the question,
    otherwise it is random. `info` tells the question's id, the status of the move (`fooled`, `changed`, `same`,
    `invalid`, `unanswered`), the enforcer that refused it, the answers and the places.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 1}  # noqa: RUF012 (the name and kind Gymnasium wants)

    def __init__(
        self,
        player: Player,
        examples: Sequence[Example],
        preset: str | GameRules = "paper-places",
        *,
        observation: str = "state",
        ood: bool = False,
        enforcers: Enforcers | None = None,
        store: AnswerStore | None = None,
        render_mode: str | None = None,
    ) -> None:
        if observation not in ("state", "pixels"):
            raise ProbeError(f"An observation is state or pixels, not {observation!r}.")
        self.rules = rules_of(preset, ood=ood)
        boards, self.unfit = boards_of(examples, self.rules)
        boards = [board for board in boards if len(board) <= MAX_OBJECTS]
        if not boards:
            why = f" ({self.unfit[0][1]})" if self.unfit else ""
            raise ProbeError(f"None of the {len(examples)} questions can be played{why}.")
        self.game: MiniGame = MiniGame(boards, Asker(player, store), self.rules, enforcers=enforcers)
        self.render_mode = render_mode
        self._pixels = observation == "pixels"
        self._board = 0
        self._positions = boards[0].start
        bins = self.rules.bins
        self.action_space = spaces.MultiDiscrete(np.full(2 * MAX_OBJECTS, bins, dtype=np.int64))
        seen: dict[str, spaces.Space[Any]] = {"question": spaces.Box(0, TOKENS, (QUESTION_LENGTH,), dtype=np.int64)}
        if self._pixels:
            width, height = boards[0].size
            if any(board.size != (width, height) for board in boards):
                raise ProbeError("The scenes have images of different sizes: give width and height in the rules.")
            seen["image"] = spaces.Box(0, 255, (height, width, 3), dtype=np.uint8)
        else:
            seen["objects"] = spaces.Box(-4.0, 4.0, (MAX_OBJECTS, OBJECT_FEATURES), dtype=np.float32)
        self.observation_space = spaces.Dict(seen)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        super().reset(seed=seed)
        chosen = (options or {}).get("board")
        boards = self.game.boards
        if chosen is not None and not 0 <= int(chosen) < len(boards):
            raise ProbeError(f"There is no board {chosen}; this game has {len(boards)}.")
        self._board = int(self.np_random.integers(len(boards))) if chosen is None else int(chosen)
        self._positions = boards[self._board].start
        old = self.game.old_answer(self._board)
        info = {
            "board": self._board,
            "example_id": boards[self._board].example.id,
            "truth": boards[self._board].truth_text,
            "old_answer": None if old is None else old.text,
        }
        return self._observe(), info

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        board = self.game.boards[self._board]
        cells = action_cells(action, len(board), self.rules.bins)
        self._positions = board.positions(cells[None])[0]
        move = self.game.step([self._board], [self._positions])[0]
        info = {
            "board": self._board,
            "example_id": board.example.id,
            "status": move.status,
            "fooled": move.status == FOOLED,
            "refused_by": move.refused_by,
            "new_answer": move.answer,
            "positions": self._positions.tolist(),
            "queries": self.game.queries(self._board),
        }
        return self._observe(), move.reward, True, False, info

    def render(self) -> Any:
        """The scene as it stands after the last move, uint8 (height, width, 3)."""
        return self.game.boards[self._board].image(self._positions).pixels()

    def _observe(self) -> dict[str, Any]:
        board = self.game.boards[self._board]
        seen: dict[str, Any] = {"question": question_tokens(board.example.question, QUESTION_LENGTH)}
        if self._pixels:
            seen["image"] = board.image(self._positions).pixels()
        else:
            seen["objects"] = object_features(board.scene, self._positions)
        return seen


def action_cells(action: Any, objects: int, bins: int) -> Any:
    """An action (20,) of bins x0, y0, x1, y1 ... as one cell an object."""
    pairs = np.asarray(action, dtype=np.int64).reshape(-1, 2)
    if len(pairs) < objects or pairs.min(initial=0) < 0 or pairs.max(initial=0) >= bins:
        raise ProbeError(f"An action holds two bins of 0..{bins - 1} per object; this one has {pairs.tolist()}.")
    return pairs[:objects, 0] * bins + pairs[:objects, 1]
