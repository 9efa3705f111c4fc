"""The page on which visitors ask questions of their own."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from pfungst.core import Dataset, Example, Image, PfungstError
from pfungst.report.page import data_url
from pfungst.web.asking import Asked, ask, own_id
from pfungst.web.desk import Seat, find_example
from pfungst.web.forms import Form
from pfungst.web.pictures import LARGE, SMALL, checked_image, encode
from pfungst.web.runs import NotHere
from pfungst.web.saving import Row

if TYPE_CHECKING:
    from pfungst.web.app import Explorer

SUGGESTED = 60
_TICKETS = 200
"""Answered questions that can still be saved."""
_MOST_CHOICES = 26


class AskPages:
    """Asking, and saving what was said."""

    def __init__(self, explorer: Explorer) -> None:
        self._explorer = explorer
        self.desk = explorer.desk
        self._tickets: OrderedDict[str, tuple[Seat, Asked, str]] = OrderedDict()

    def show(self, request: Request) -> Response:
        query = request.query_params
        run, id_ = query.get("run", ""), query.get("id", "")
        filled: dict[str, Any] = {}
        if id_:
            example = find_example(self._explorer.data(run), id_)
            filled = {"question": example.question, "target": example.target or "",
                      "choices": ", ".join(example.choices)}  # fmt: skip
        return self._explorer.page(request, "ask.html", **self._page(run=run, id=id_, **filled))

    def image(self, request: Request) -> Response:
        """The image of an example that can be asked about."""
        query = request.query_params
        image = find_example(self._explorer.data(query.get("run", "")), query.get("id", "")).image
        if image is None:
            raise NotHere("There is no such image.")
        return self._explorer.image(request, image, SMALL)

    def ask(self, form: Form) -> Response:
        run, id_, player = form.text("run"), form.text("id"), form.text("player")
        given = {name: form.text(name) for name in ("question", "target", "choices")}
        page = self._page(run=run, id=id_, player=player, **given)
        data = self._explorer.data(run)
        try:
            example = self._example(form, data, given, id_)
            seat = self.desk.seat(player, data)
            asked = ask(self.desk, seat, example, data)
        except PfungstError as error:
            return self._html(form, page | {"problem": str(error)}, 400)
        ticket = secrets.token_urlsafe(12)
        self._tickets[ticket] = (seat, asked, form.session.id)
        while len(self._tickets) > _TICKETS:
            self._tickets.popitem(last=False)
        return self._html(form, page | {"asked": asked, "image": _shown(example.image), "ticket": ticket})

    def save(self, form: Form) -> Response:
        seat, asked, owner = self._tickets.get(form.text("ticket"), (None, None, ""))
        if seat is None or asked is None or owner != form.session.id:
            raise NotHere("These answers are gone. Ask again, then save.")
        rows = [Row(asked.example, asked.clean.query, asked.clean.answer, "clean")]
        for part in asked.parts:
            rows += [
                Row(asked.example, one.query, one.answer, f"{part.title.lower()}: {one.name}") for one in part.said
            ]
        run = self._explorer.save(seat.player.name, rows)
        page = self._page(player=seat.spec, question=asked.example.question)
        found = page | {"asked": asked, "image": _shown(asked.example.image), "saved": run.id}
        return self._html(form, found)

    def _example(self, form: Form, data: Dataset, given: Mapping[str, str], id_: str) -> Example:
        if not given["question"]:
            raise PfungstError("Type a question.")
        choices = tuple(dict.fromkeys(one.strip() for one in given["choices"].split(",") if one.strip()))
        if len(choices) == 1 or len(choices) > _MOST_CHOICES:
            raise PfungstError(f"Give no choices, or 2 to {_MOST_CHOICES} of them, separated by commas.")
        target = given["target"] or None
        if choices and target is not None and target not in choices:
            choices = (*choices, target)
        mine = Example("", given["question"], target=target, answers=(target,) if target else (), choices=choices)
        upload = form.files.get("image", b"")
        if upload:
            settings = self._explorer.settings
            image: Image = checked_image(upload, settings.max_upload, settings.max_pixels)
            name = image.digest[:16]
            return replace(mine, id=own_id(mine.question, target, name), image=image, image_id=name)
        if not id_:
            raise PfungstError("Choose an image: upload one, or name an example of the data set.")
        base = find_example(data, id_)
        if base.question == mine.question and base.target == target:
            return replace(base, choices=choices)
        return replace(
            mine, id=own_id(mine.question, target, base.image_id), image=base.image, image_id=base.image_id,
            scene=base.scene, program=base.program if base.question == mine.question else None,
        )  # fmt: skip

    def _page(self, **given: Any) -> dict[str, Any]:
        data = self._explorer.data(given.get("run", ""))
        seen = [example for example in data.originals if example.image is not None]
        step = max(1, len(seen) // SUGGESTED)
        players = self._explorer.settings.players
        known: dict[str, Any] = {"here": "ask", "players": players, "player": players[0], "data_name": data.name,
                                 "examples": seen[::step][:SUGGESTED], "question": "", "target": "", "choices": "",
                                 "run": "", "id": "", "asked": None, "problem": "", "image": "", "ticket": "",
                                 "saved": ""}  # fmt: skip
        return known | given

    def _html(self, form: Form, page: dict[str, Any], status: int = 200) -> Response:
        return HTMLResponse(self._explorer.html(form.session, "ask.html", **page), status)


def _shown(image: Image | None) -> str:
    if image is None:
        return ""
    content, kind = encode(image, LARGE)
    return data_url(kind, content)


def routes(explorer: Explorer) -> list[Route]:
    pages = AskPages(explorer)
    return [
        Route("/ask", pages.show),
        Route("/ask/image", pages.image),
        explorer.actions.action("/ask/upload", pages.ask),
        explorer.actions.action("/ask/save", pages.save),
    ]
