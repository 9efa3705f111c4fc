"""The live game: a visitor moves the objects of a scene, the enforcers judge, the player answers, the program knows."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from pfungst.core import Asker, Dataset, Example, PfungstError
from pfungst.probes.game.adversaries import get_adversary
from pfungst.probes.game.board import Board, Floats
from pfungst.probes.game.enforcers import Enforcers
from pfungst.probes.game.minigame import UNASKED, MiniGame, Move
from pfungst.probes.game.rules import GAMES, GameRules
from pfungst.report.page import data_url
from pfungst.scores import same_answer
from pfungst.web.desk import Row, Seat, find_example
from pfungst.web.security import Form, Refused
from pfungst.world.constants import BOUND, COLOR_RGB, RADIUS
from pfungst.world.programs import answer_text

if TYPE_CHECKING:
    from pfungst.web.app import Explorer


REFUSALS = {
    "count": "A CLEVR scene has {least} to {most} objects.",
    "bounds": "Objects stay within the square.",
    "gap": "Two objects are too close to each other.",
    "margin": "Two objects are level: which is left or in front would be hard to see.",
    "relevance": "The right answer would change: the program says {now} here, not {truth}.",
    "pixels": "An object is hidden behind another: too few of its pixels show.",
}
"""Enforcer -> what it says to a visitor."""
ADVERSARIES = ("greedy", "rsg", "cross-entropy")
"""Those that need neither torch nor training before their first move."""
BUDGET = 60
"""Moved scenes that an adversary may ask about."""
MOST_SEARCHES = 2
SUGGESTED = 24
RULES: GameRules = GAMES["paper-places"]
ENFORCERS = Enforcers.of(RULES)


class GamePages:
    """Choose a question, move its objects, watch an adversary do it."""

    def __init__(self, explorer: Explorer) -> None:
        self._explorer = explorer
        self._boards: dict[tuple[str, str], Board] = {}
        self._searches = threading.Semaphore(MOST_SEARCHES)

    def routes(self) -> list[Route]:
        actions: dict[str, Any] = {"judge": self.judge, "answer": self.answer, "search": self.search, "save": self.save}
        posts = (self._explorer.actions.action(f"/game/{name}", handler) for name, handler in actions.items())
        return [Route("/game", self.show), *posts]

    def show(self, request: Request) -> Response:
        run, id_ = request.query_params.get("run", ""), request.query_params.get("id", "")
        data = self._explorer.data(run)
        examples = playable(data, SUGGESTED)
        if not examples:
            raise PfungstError(f"The data set {data.name} has no scenes to play with. Serve with --data world.")
        example = find_example(data, id_) if id_ else examples[0]
        board = self._board(data, example)
        players = self._explorer.settings.players
        chosen = request.query_params.get("player", "")
        return self._explorer.page(
            request, "game.html", here="game", run=run, example=example, examples=examples, players=players,
            player=chosen if chosen in players else players[0], adversaries=ADVERSARIES, truth=board.truth_text,
            scene=json.dumps(scene_of(board)), image=drawn(board, board.start),
        )  # fmt: skip

    def judge(self, form: Form) -> Response:
        """What the rules say, what the program says, and the image: while an object is dragged."""
        _, board = self._named(form)
        positions = positions_of(form.fields.get("positions"), board)
        refused, now = refused_by(board, positions)
        return JSONResponse({
            "refused": [{"rule": rule, "sentence": sentence} for rule, sentence in refused], "now": now,
            "truth": board.truth_text, "image": drawn(board, positions),
        })  # fmt: skip

    def answer(self, form: Form) -> Response:
        """What the player says, before and after."""
        data, board = self._named(form)
        seat = self._seat(form, data)
        positions = positions_of(form.fields.get("positions"), board)
        before, after = (self._said(board, seat, places).answer for places in (board.start, positions))
        truth = board.truth_text
        fair = not refused_by(board, positions)[0]
        return JSONResponse({
            "before": {"text": before.text, "right": same_answer(before.text, truth)},
            "after": {"text": after.text, "confidence": after.confidence, "right": same_answer(after.text, truth)},
            "outcome": outcome(truth, before.text, after.text) if fair else "Not a fair scene: a rule forbids it.",
        })  # fmt: skip

    def save(self, form: Form) -> Response:
        """The scene as it stands and as it was moved, with both answers, as rows of a run."""
        data, board = self._named(form)
        seat = self._seat(form, data)
        positions = positions_of(form.fields.get("positions"), board)
        if refused := refused_by(board, positions)[0]:
            raise PfungstError(f"Only fair scenes can be saved. {refused[0][1]}")
        by = form.text("by", 40)
        moved = f"moved by {by if by in ADVERSARIES else 'hand'}"
        rows = [self._said(board, seat, board.start), self._said(board, seat, positions, moved)]
        run = self._explorer.save(seat.player.name, rows)
        return JSONResponse({"run": run.id, "address": self._explorer.site.links("run", run=run.id)})

    def search(self, form: Form) -> Response:
        """Let an adversary try: every move with what came of it, then how it ended, one JSON object a line."""
        data, board = self._named(form)
        seat, adversary, seed = self._seat(form, data), form.text("adversary"), form.fields.get("seed", 0)
        if adversary not in ADVERSARIES:
            raise Refused(400, f"The adversaries here are {', '.join(ADVERSARIES)}.")
        if not self._searches.acquire(blocking=False):
            raise Refused(503, "Other searches are running. Try again in a moment.")
        told: queue.Queue[dict[str, Any] | None] = queue.Queue()
        stopped = threading.Event()

        def work() -> None:
            try:
                with seat.lock:
                    game = _Shown([board], Asker(seat.player), told, stopped)
                    rng = np.random.default_rng(seed if isinstance(seed, int) and seed >= 0 else 0)
                    get_adversary(adversary).attack(game, rng)
                told.put(_ending(game))
            except _Stopped:
                pass
            except PfungstError as error:
                told.put({"end": "failed", "sentence": str(error)})
            finally:
                self._searches.release()
                told.put(None)

        threading.Thread(target=work, daemon=True).start()

        def lines() -> Iterator[str]:
            try:
                while (event := told.get()) is not None:
                    yield json.dumps(event) + "\n"
            finally:
                stopped.set()  # the visitor left: so does the adversary

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    def _named(self, form: Form) -> tuple[Dataset, Board]:
        data = self._explorer.data(form.text("run"))
        return data, self._board(data, find_example(data, form.text("id")))

    def _board(self, data: Dataset, example: Example) -> Board:
        key = (data.fingerprint or data.name, example.id)
        if key not in self._boards:
            if len(self._boards) > 200:
                self._boards.clear()
            self._boards[key] = Board.of(example, RULES)
        return self._boards[key]

    def _seat(self, form: Form, data: Dataset) -> Seat:
        return self._explorer.desk.seat(form.text("player"), data)

    def _said(self, board: Board, seat: Seat, positions: Floats, condition: str = "clean") -> Row:
        """A layout and what the player says to it."""
        query = board.query(positions, scene=True)
        answer = self._explorer.desk.answers(seat, [query], board.example.id)[0]
        return Row(board.example, query, answer, condition)


def playable(data: Dataset, count: int) -> list[Example]:
    """Some questions that can be played, spread over the data set."""
    fit = [
        one
        for one in data.originals
        if one.scene is not None and one.program is not None
        and RULES.min_objects <= len(one.scene.get("objects", ())) <= RULES.max_objects
    ]  # fmt: skip
    return fit[:: max(1, len(fit) // count)][:count]


def refused_by(board: Board, positions: Floats) -> tuple[list[tuple[str, str]], str | None]:
    """The rules that forbid a layout (objects, 2), each with its sentence, and what the program says there."""
    value = board.moved.answers(positions[None])[0]
    now = None if value is None else answer_text(value)
    words = {"least": RULES.min_objects, "most": RULES.max_objects, "truth": board.truth_text,
             "now": now if now is not None else "nothing"}  # fmt: skip
    refused = [
        (part.name, REFUSALS.get(part.name, "A rule of the game forbids this.").format_map(words))
        for part in ENFORCERS.parts
        if not part.allows(board, positions[None])[0]
    ]
    return refused, now


class _Stopped(Exception):
    pass


class _Shown(MiniGame):
    """A mini-game of one question that tells every move."""

    def __init__(
        self, boards: Sequence[Board], asker: Asker, told: queue.Queue[dict[str, Any] | None], stopped: threading.Event
    ) -> None:
        self._told, self._stop = told, stopped
        super().__init__(boards, asker, RULES, budget=BUDGET)

    def step(self, which: Sequence[int], layouts: Sequence[npt.ArrayLike]) -> list[Move]:
        if self._stop.is_set():
            raise _Stopped
        fresh = ~self.tried(0, np.asarray([np.asarray(one, dtype=np.float64) for one in layouts]))
        moves = super().step(which, layouts)
        for move in (move for move, new in zip(moves, fresh, strict=True) if new and move.status != UNASKED):
            self._told.put(
                {"positions": move.positions.tolist(), "status": move.status, "answer": move.answer,
                 "confidence": move.confidence, "refused": move.refused_by, "query": move.query}
            )  # fmt: skip
        return moves


def _ending(game: MiniGame) -> dict[str, Any]:
    fooled, changed, asked = game.fooled(0), game.changed(0), game.queries(0)
    if fooled is not None:
        sentence = f"Fooled after {asked} scenes: the right answer is still {game.boards[0].truth_text}."
        return {"end": "fooled", "positions": fooled.positions.tolist(), "sentence": sentence}
    if changed is not None:
        sentence = f"The player was wrong before; after {asked} scenes it gave another answer."
        return {"end": "changed", "positions": changed.positions.tolist(), "sentence": sentence}
    return {"end": "stood", "sentence": f"The player withstood {asked} scenes."}


def positions_of(value: Any, board: Board) -> Floats:
    """Places that a visitor sent: a list of [x, y] for each object, numbers within a few times the square."""
    try:
        places = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise Refused(400, "The places must be numbers.") from None
    if places.shape != (len(board), 2) or not np.isfinite(places).all() or np.abs(places).max(initial=0) > 4 * BOUND:
        raise Refused(400, "There must be one place for each object, near the square.")
    return np.ascontiguousarray(places)


def drawn(board: Board, positions: Floats) -> str:
    """The image of a layout as a data URL."""
    return data_url("image/png", board.image(positions).read())


def scene_of(board: Board) -> dict[str, Any]:
    """What the page needs to draw the plan: objects, directions, the grid of the game's own moves."""
    scene = board.scene
    objects = [
        {"name": f"{one.size} {one.color} {one.material} {one.shape}", "shape": one.shape, "metal":
         one.material == "metal", "radius": RADIUS[one.size], "turn": one.rotation or 0.0,
         "colour": "#" + "".join(f"{value:02x}" for value in COLOR_RGB[one.color])}
        for one in scene.objects
    ]  # fmt: skip
    return {
        "objects": objects,
        "start": scene.positions.tolist(),
        "right": list(scene.directions["right"][:2]),
        "behind": list(scene.directions["behind"][:2]),
        "bound": BOUND,
    }


def outcome(truth: str, before: str, after: str) -> str:
    """What a move did to the player, in a sentence."""
    was, is_ = same_answer(before, truth), same_answer(after, truth)
    if was and not is_:
        return "Fooled! It was right before."
    if not was and is_:
        return "Right now; it was wrong before."
    if was:
        return "Still right."
    return "Still wrong." if same_answer(before, after) else "Wrong before and after, with another answer."
