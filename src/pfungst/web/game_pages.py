"""The page of the live game, and what it asks the server while objects are dragged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from pfungst.core import Dataset, PfungstError
from pfungst.probes.game.board import Board
from pfungst.scores import same_answer
from pfungst.web.desk import Seat, find_example
from pfungst.web.forms import Form
from pfungst.web.play import ADVERSARIES, Table, drawn, outcome, positions_of, scene_of
from pfungst.web.saving import Row

if TYPE_CHECKING:
    from pfungst.web.app import Explorer

SUGGESTED = 24


class GamePages:
    """Choose a question, move its objects, watch an adversary do it."""

    def __init__(self, explorer: Explorer) -> None:
        self._explorer = explorer
        self._table = Table(explorer.desk)

    def show(self, request: Request) -> Response:
        run, id_ = request.query_params.get("run", ""), request.query_params.get("id", "")
        data = self._explorer.data(run)
        examples = self._table.playable(data, SUGGESTED)
        if not examples:
            raise PfungstError(f"The data set {data.name} has no scenes to play with. Serve with --data world.")
        example = find_example(data, id_) if id_ else examples[0]
        board = self._table.board(data, example)
        players = self._explorer.settings.players
        chosen = request.query_params.get("player", "")
        return self._explorer.page(
            request, "game.html", here="game", run=run, example=example, examples=examples, players=players,
            player=chosen if chosen in players else players[0], adversaries=ADVERSARIES, truth=board.truth_text,
            scene=json.dumps(scene_of(board)), image=drawn(board, board.start),
        )  # fmt: skip

    def judge(self, form: Form) -> Response:
        """What the rules say, what the program says, and the image: while an object is dragged."""
        _, board = self._board(form)
        positions = positions_of(form.fields.get("positions"), board)
        verdict = self._table.judge(board, positions)
        refused = [{"rule": rule, "sentence": sentence} for rule, sentence in verdict.refused]
        return JSONResponse({"refused": refused, "now": verdict.now, "truth": verdict.truth,
                             "image": drawn(board, positions)})  # fmt: skip

    def answer(self, form: Form) -> Response:
        """What the player says, before and after."""
        data, board = self._board(form)
        seat = self._seat(form, data)
        positions = positions_of(form.fields.get("positions"), board)
        before, after = (self._table.answer(board, seat, one) for one in (board.start, positions))
        truth = board.truth_text
        fair = not self._table.judge(board, positions).refused
        return JSONResponse({
            "before": {"text": before.text, "right": same_answer(before.text, truth)},
            "after": {"text": after.text, "confidence": after.confidence, "right": same_answer(after.text, truth)},
            "outcome": outcome(truth, before.text, after.text) if fair else "Not a fair scene: a rule forbids it.",
        })  # fmt: skip

    def search(self, form: Form) -> Response:
        """The moves of an adversary as they come, one JSON object a line."""
        data, board = self._board(form)
        seed = form.fields.get("seed", 0)
        events = self._table.search(
            board, self._seat(form, data), form.text("adversary"), seed if isinstance(seed, int) and seed >= 0 else 0
        )

        def lines() -> Iterator[str]:
            for event in events:
                yield json.dumps(event) + "\n"

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    def save(self, form: Form) -> Response:
        """The scene as it stands and as it was moved, with both answers, as rows of a run."""
        data, board = self._board(form)
        seat = self._seat(form, data)
        positions = positions_of(form.fields.get("positions"), board)
        refused = self._table.judge(board, positions).refused
        if refused:
            raise PfungstError(f"Only fair scenes can be saved. {refused[0][1]}")
        by = form.text("by", 40)
        rows = []
        layouts = (("clean", board.start), (f"moved by {by if by in ADVERSARIES else 'hand'}", positions))
        for condition, places in layouts:
            query = board.query(places, scene=True)
            said = self._table.answer(board, seat, places)
            rows.append(Row(board.example, query, said, condition))
        run = self._explorer.save(seat.player.name, rows)
        return JSONResponse({"run": run.id, "address": self._explorer.site.links("run", run=run.id)})

    def _board(self, form: Form) -> tuple[Dataset, Board]:
        data = self._explorer.data(form.text("run"))
        return data, self._table.board(data, find_example(data, form.text("id")))

    def _seat(self, form: Form, data: Dataset) -> Seat:
        return self._explorer.desk.seat(form.text("player"), data)


def routes(explorer: Explorer) -> list[Route]:
    pages = GamePages(explorer)
    actions: dict[str, Any] = {"judge": pages.judge, "answer": pages.answer, "search": pages.search, "save": pages.save}
    return [
        Route("/game", pages.show),
        *(explorer.actions.action(f"/game/{name}", handler) for name, handler in actions.items()),
    ]
