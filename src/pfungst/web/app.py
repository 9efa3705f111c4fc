"""The application: its addresses, the pages that only read, notes, and how far the runs are, as it changes."""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from itertools import chain
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from pfungst.core import Dataset, Image, PfungstError
from pfungst.web import views
from pfungst.web.asking import AskPages
from pfungst.web.desk import Desk, Row, save
from pfungst.web.game import GamePages
from pfungst.web.index import Place, Wanted
from pfungst.web.notes import LONGEST_NOTE, Note, parse_tags, shown_image, tagged_lines
from pfungst.web.pictures import LARGE, SMALL, moved_scene
from pfungst.web.runs import NotHere, RunFolder, Runs, card_of, state_of, told_apart
from pfungst.web.security import FOREIGN_POLICY, Actions, App, Form, Guard, Refused, Session, Sessions, allowed_hosts
from pfungst.web.serving import router, static_route
from pfungst.web.site import HERE, Site, WebSettings

EVERY_SECONDS = 1.0
BEAT_SECONDS = 15.0
"""A line that says nothing, so that nobody on the way ends the connection."""
MOST_LISTENERS = 200
OURS = {"explorer.css": "text/css", "explorer.js": "text/javascript", "game.js": "text/javascript",
        "icon.svg": "image/svg+xml"}  # fmt: skip
"""Files of ours beside the report's style."""
HEADINGS = {404: "Not here", 403: "Not allowed", 413: "Too large", 500: "Something went wrong"}
MOST_WRONG_TOKENS = 30
"""In a minute, from all visitors together; more are not looked at."""


class Watch:
    """The state of all runs, as it changes: server-sent events. Read once a second however many listen."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._at, self._states = -1e9, "{}"
        self._lock = asyncio.Lock()
        self._listeners = 0

    async def events(self, request: Request) -> Response:
        if self._listeners >= MOST_LISTENERS:
            raise Refused(503, "Too many pages are already open. Reload this page to see the progress of the runs.")
        return StreamingResponse(self._events(request), media_type="text/event-stream")

    async def _events(self, request: Request) -> AsyncIterator[str]:
        self._listeners += 1
        sent, beat = "", time.monotonic()
        try:
            while not await request.is_disconnected():
                states = await self._now()
                if states != sent:
                    sent, beat = states, time.monotonic()
                    yield f"data: {states}\n\n"
                elif time.monotonic() - beat > BEAT_SECONDS:
                    beat = time.monotonic()
                    yield ": still here\n\n"
                await asyncio.sleep(EVERY_SECONDS)
        finally:
            self._listeners -= 1

    async def _now(self) -> str:
        async with self._lock:
            if time.monotonic() - self._at > EVERY_SECONDS:
                self._states = json.dumps(await run_in_threadpool(self._read))
                self._at = time.monotonic()
            return self._states

    def _read(self) -> dict[str, Any]:
        return {run.id: asdict(state_of(run)) for run in self._runs.all()}


class Explorer:
    """Pages for visitors, drawn from a site."""

    def __init__(self, settings: WebSettings) -> None:
        if not settings.is_local and not settings.token:
            raise PfungstError(
                f"A server on {settings.host} can be reached by others, so it needs a token: give one, or let "
                "`pfungst serve` make one."
            )
        self.settings = settings
        self.site: Site = Site(settings)
        self.desk: Desk = Desk(settings)
        self.sessions: Sessions = Sessions(f"pfungst_{settings.port}")
        self._wrong: deque[float] = deque(maxlen=MOST_WRONG_TOKENS)
        self.actions: Actions = Actions(self.sessions, bool(settings.token))

    def app(self) -> App:
        """The application, guarded."""
        routes = [
            Route("/", self._runs),
            Route("/run", self._run),
            Route("/answers", self._answers),
            Route("/example", self._example),
            Route("/image", self._image),
            Route("/moved", self._moved),
            Route("/shown", self._shown),
            Route("/report", self._report),
            Route("/events", Watch(self.site.runs).events),
            static_route(HERE / "static", OURS),
            Route("/sign-in", lambda request: self.page(request, "sign_in.html", here="sign-in")),
            self.actions.action("/sign-in", self._sign_in, open_to_all=True),
            Route("/notes", self._notes),
            Route("/notes/export", self._export),
            self.actions.action("/notes/write", self._write_note),
            *AskPages(self).routes(),
            *GamePages(self).routes(),
        ]
        largest = {"/": self.settings.max_form, "/ask/upload": self.settings.max_upload + self.settings.max_form}
        hosts = allowed_hosts(self.settings.host)
        return Guard(router(routes, self.site.close), self.sessions, hosts, largest, self._error)

    def page(self, request: Request, template: str, status: int = 200, **context: Any) -> Response:
        """A page for this visitor."""
        return HTMLResponse(self.html(request.state.session, template, **context), status)

    def html(self, session: Session, template: str, **context: Any) -> str:
        return self.site.render(
            template, form_token=self.sessions.form_token(session), may_write=self.may_write(session), **context
        )

    def may_write(self, session: Session) -> bool:
        return session.may_write or not self.settings.token

    def data(self, run: str) -> Dataset:
        """The data set of a run; where none is named, that of the game and of the questions."""
        return self.site.pictures.data(self.site.runs.get(run)) if run else self.desk.data

    def save(self, player: str, rows: Sequence[Row]) -> RunFolder:
        """Add the variants of a question to the saved ones of a player; returns their run."""
        folder = save(self.settings.home, player, rows)
        self.site.runs.refresh()
        return next(run for run in self.site.runs.all() if run.path.resolve() == folder.resolve())

    def _error(self, status: int, sentence: str, session: Session) -> bytes:
        heading = HEADINGS.get(status, "This did not work")
        return self.html(session, "error.html", here="", status=status, heading=heading, sentence=sentence).encode()

    def _runs(self, request: Request) -> Response:
        return self.page(request, "runs.html", **views.runs_page(self.site))

    def _run(self, request: Request) -> Response:
        return self.page(request, "run.html", **views.run_page(self.site, self._named(request)))

    def _answers(self, request: Request) -> Response:
        ids = request.query_params.getlist("run")
        return self.page(request, "answers.html", **views.answers_page(self.site, ids, Wanted.of(request.query_params)))

    def _example(self, request: Request) -> Response:
        query = request.query_params
        at = query.get("at", "")
        number = int(at) if at.isascii() and at.isdecimal() and len(at) < 12 else None
        found = views.example_page(
            self.site, self._named(request), query.get("id", ""), Wanted.of(query), number, query.getlist("with")
        )
        return self.page(request, "example.html", **found)

    def _image(self, request: Request) -> Response:
        image = self.site.pictures.image(self._named(request), request.query_params.get("id", ""))
        return self.image(request, image, SMALL if request.query_params.get("size") == "small" else LARGE)

    def _moved(self, request: Request) -> Response:
        found = moved_scene(self._named(request), request.query_params.get("id", ""))
        if found is None:
            raise NotHere("There is no such image.")
        return self.image(request, found.image(request.query_params.get("which", "")), LARGE)

    def _shown(self, request: Request) -> Response:
        """The image that a variant showed, made again; a drawing that says so where it cannot be."""
        run, query = self._named(request), request.query_params
        row = self.site.index.row(
            run, Place(run.id, query.get("probe", ""), query.get("id", ""), query.get("variant", ""))
        )
        image = shown_image(self.site, run, row)[0] if row is not None else None
        if image is None:
            return Response((HERE / "static" / "gone.svg").read_text("utf-8"), media_type="image/svg+xml")
        return self.image(request, image, SMALL)

    def image(self, request: Request, image: Image, side: int) -> Response:
        """An image for the browser, which may keep it and ask whether it is still the same."""
        tag = f'"{image.digest[:40]}-{side}"'
        headers = {"etag": tag, "cache-control": "private, max-age=600"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        content, kind = self.site.pictures.encoded(image, side)
        return Response(content, media_type=kind, headers=headers)

    def _report(self, request: Request) -> Response:
        run = self._named(request)
        file = run.file(run.read_as("report.html"))
        if file is None:
            raise NotHere("This run has no report.")
        return FileResponse(file, media_type="text/html", headers={"content-security-policy": FOREIGN_POLICY})

    def _notes(self, request: Request) -> Response:
        tag, notes = request.query_params.get("tag", ""), self.site.notes
        names = told_apart(card_of(self.site, run) for run in self.site.runs.all())
        return self.page(
            request, "notes.html", here="notes", notes=notes.all(tag), tags=notes.tags(), tag=tag, names=names
        )

    def _write_note(self, form: Form) -> Response:
        place = Place(*(form.text(name) for name in ("run", "probe", "id", "variant")))
        row = self.site.index.row(self.site.runs.get(place.run), place)
        if row is None:
            raise NotHere("There is no such answer to write a note on.")
        self.site.notes.write(Note(place, form.text("note", LONGEST_NOTE), parse_tags(form.text("tags"))))
        address = self.site.links("example", run=place.run, id=place.example_id, at=row["number"])
        return RedirectResponse(address, 303)

    def _export(self, request: Request) -> Response:
        """The tagged answers as a data set."""
        lines = tagged_lines(self.site, request.query_params.get("tag", ""))
        first = next(lines, None)
        if first is None:
            raise PfungstError("No tagged answer can be exported: tag some on the page of an example.")
        headers = {"content-disposition": 'attachment; filename="tagged.jsonl"'}
        return StreamingResponse(chain([first], lines), media_type="application/jsonl", headers=headers)

    def _named(self, request: Request) -> Any:
        return self.site.runs.get(request.query_params.get("run", ""))

    def _sign_in(self, form: Form) -> Response:
        if len(self._wrong) == self._wrong.maxlen and time.monotonic() - self._wrong[0] < 60:
            raise Refused(429, "Too many wrong tokens were given. Try again in a minute.")
        given = form.text("token")
        if not self.settings.token or not hmac.compare_digest(given.encode(), self.settings.token.encode()):
            self._wrong.append(time.monotonic())
            raise Refused(403, "This is not the token of this server.")
        return self.sessions.signed_in("/")


def make_app(settings: WebSettings) -> App:
    """The explorer as an ASGI application."""
    return Explorer(settings).app()
