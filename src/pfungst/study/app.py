"""The pages of a study. Workers come by a link of their own; the people who run it sign in with the admin token."""

from __future__ import annotations

import hmac
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from pfungst.core import PfungstError, UsageError
from pfungst.core.files import jsonable
from pfungst.report.card import format_cell
from pfungst.report.page import template_engine
from pfungst.study.book import Saved, Turn, Worker
from pfungst.study.folder import IMAGES, Study
from pfungst.study.items import TRAINING, BadAnswer, in_words
from pfungst.study.results import answers_csv, payments_csv, study_results
from pfungst.web.security import Actions, App, Form, Guard, Refused, Session, Sessions, allowed_hosts
from pfungst.web.serving import router, run_app, static_route

HERE = Path(__file__).parent
PORT = 8908
OURS = {"study.css": "text/css", "study.js": "text/javascript"}
MAX_FORM = 50_000
"""Bytes of a request."""
CODES = ("worker", "PROLIFIC_PID", "workerId")
"""Query parameters that may hold the code of a worker who joins: ours, Prolific's, Mechanical Turk's."""
_KEPT = 20_000
"""Visitors that are remembered."""


@dataclass
class Limit:
    """A bucket for each visitor: `burst` at once, then `per_second` more."""

    per_second: float
    burst: int
    clock: Callable[[], float] = time.monotonic
    _left: OrderedDict[Hashable, tuple[float, float]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def check(self, who: Hashable) -> None:
        """Count one; Refused where it is one too many."""
        now = self.clock()
        with self._lock:
            left, at = self._left.pop(who, (float(self.burst), now))
            left = min(self.burst, left + (now - at) * self.per_second)
            self._left[who] = (left - 1 if left >= 1 else left, now)
            while len(self._left) > _KEPT:
                self._left.popitem(last=False)
        if left < 1:
            raise Refused(
                429, "There were too many requests in a short time. Please wait a moment, then load the page again."
            )


class Pages:
    """The site of one study."""

    def __init__(self, study: Study, host: str, port: int, public: str = "") -> None:
        self.study: Study = study
        self.book = study.book
        self.sessions: Sessions = Sessions(f"pfungst_study_{port}", study.keys.secret)
        self.actions: Actions = Actions(self.sessions, needs_sign_in=False)
        parts = urlsplit(public)
        named = parts.hostname
        if public and (parts.scheme not in ("http", "https") or not named):
            raise UsageError(
                f"The public address is that of a website, such as https://study.example.org, not {public!r}."
            )
        local = allowed_hosts(host)
        self.hosts: frozenset[str] = local | {named.lower()} if local and named else local
        # Reading a page costs little; guessing a link or a token must not pay.
        self.answering: Limit = Limit(2.0, 40)
        self.joining: Limit = Limit(2.0, 200)
        self.guessing: Limit = Limit(0.5, 30)
        self.signing: Limit = Limit(0.5, 10)

    def app(self) -> App:
        pages = [
            Route("/", self._front),
            Route("/join/{key}", self._join),
            Route("/w/{token}", self._worker_page),
            Route("/w/{token}/image/{turn}/{number}", self._image),
            static_route(HERE / "static", OURS),
            self.actions.action("/consent", self._consent),
            self.actions.action("/answer", self._answer),
            self.actions.action("/break", self._break),
            Route("/admin", self._overview),
            Route("/admin/sign-in", lambda request: self.page(request.state.session, "sign_in.html")),
            Route("/admin/{name}", self._download),
            self.actions.action("/admin/sign-in", self._sign_in),
        ]
        return Guard(router(pages, self.study.close), self.sessions, self.hosts, {"/": MAX_FORM}, self._error)

    # Drawing

    @cached_property
    def _templates(self) -> Any:
        return template_engine("pfungst.study")

    def html(self, session: Session, template: str, **context: Any) -> str:
        shared = {
            "title": self.study.title, "form_token": self.sessions.form_token(session),
            "contact": self.study.settings.contact,
        }  # fmt: skip
        text: str = self._templates.get_template(template).render({**shared, **context})
        return text.encode("utf-8", "replace").decode("utf-8")

    def page(self, session: Session, template: str, status: int = 200, **context: Any) -> Response:
        return HTMLResponse(self.html(session, template, **context), status)

    def _error(self, status: int, sentence: str, session: Session) -> bytes:
        return self.html(session, "message.html", heading="This did not work", sentence=sentence).encode()

    # Workers

    def _front(self, request: Request) -> Response:
        sentence = "To take part, use the link that you were given. It is only for you."
        return self.page(request.state.session, "message.html", heading=self.study.title, sentence=sentence)

    def _join(self, request: Request) -> Response:
        """A new worker, by the link for all. A code that is known leads nowhere: its owner has a link already."""
        self.joining.check(_address(request))
        if not hmac.compare_digest(request.path_params["key"].encode(), self.study.keys.join.encode()):
            self.guessing.check(_address(request))
            raise Refused(404, "This link does not lead to a study.")
        code = next((found for name in CODES if (found := request.query_params.get(name, "").strip())), "")
        if not code:
            raise Refused(400, "This link lacks your code. Open it from the page where you found it.")
        try:
            worker = self.book.join(code)
        except PfungstError:
            raise Refused(
                409, "Somebody with this code has started already. If that was you, use the address of your own page."
            ) from None
        return RedirectResponse(self.address(worker), 303)

    def address(self, worker: Worker, **query: Any) -> str:
        path = f"/w/{self.study.keys.token(worker.id, worker.code)}"
        return f"{path}?{urlencode(query)}" if query else path

    def who(self, token: str, address: str = "") -> Worker:
        """The worker of a link; Refused where there is none."""
        worker = self.book.worker(_number(token.partition("-")[0]))
        wanted = self.study.keys.token(worker.id, worker.code) if worker is not None else "-"
        if worker is None or not hmac.compare_digest(token.encode("utf-8", "replace"), wanted.encode()):
            self.guessing.check(address)
            raise Refused(404, "This link does not belong to anybody. Check that you copied all of it.")
        return worker

    def _worker_page(self, request: Request) -> Response:
        worker = self.who(request.path_params["token"], _address(request))
        session: Session = request.state.session
        if worker.consented is None:
            return self.page(
                session, "consent.html", token=self._token(worker), consent=self.study.settings.consent,
                instructions=self.study.instructions, code=worker.code,
            )  # fmt: skip
        if "rest" in request.query_params:
            return self.page(session, "rest.html", address=self.address(worker))
        saved = self._saved(worker, request.query_params.get("saved", ""), request.query_params.get("again", ""))
        return self._next_page(session, worker, saved)

    def _next_page(
        self, session: Session, worker: Worker, saved: Mapping[str, Any] | None = None, problem: str = "",
        given: Mapping[str, Any] | None = None, turn: Turn | None = None,
    ) -> Response:  # fmt: skip
        turn = turn or self.book.next(worker)
        standing = self.book.standing(worker)
        if turn is None:
            code = self.study.completion(worker.id, worker.code) if standing.answered else ""
            return self.page(session, "done.html", saved=saved, code=code, answered=standing.answered,
                             url=self.study.settings.completion_url, worker=worker.code)  # fmt: skip
        return self.page(
            session, "item.html", 422 if problem else 200, turn=turn, content=turn.content,
            token=self._token(worker), address=self.address(worker), saved=saved, problem=problem, given=given or {},
            training=turn.role == TRAINING, standing=standing, instructions=self.study.instructions,
        )  # fmt: skip

    def _token(self, worker: Worker) -> str:
        return self.study.keys.token(worker.id, worker.code)

    def _saved(self, worker: Worker, number: str, again: str) -> dict[str, Any] | None:
        """What to tell about the answer before; nothing where there is none."""
        turn = self.book.turn(worker, _number(number))
        if turn is None or turn.value is None:
            return None
        told = turn.role == TRAINING
        return {
            "words": in_words(turn.content, turn.value), "again": bool(again), "training": told,
            "right": turn.right if told else None, "explanation": turn.content.explanation if told else "",
        }  # fmt: skip

    def _consent(self, form: Form) -> Response:
        worker = self.who(form.text("worker"))
        if form.text("agree") != "yes":
            raise Refused(400, "To take part, tick the box that says that you agree.")
        self.book.consent(worker)
        return RedirectResponse(self.address(worker), 303)

    def _answer(self, form: Form) -> Response:
        worker = self.who(form.text("worker"))
        self.answering.check(worker.id)
        if worker.consented is None:
            raise Refused(403, "Agree to take part first.")
        turn_id = _number(form.text("turn", 20))
        try:
            saved: Saved | None = self.book.submit(worker, turn_id, form.fields, _seconds(form.text("active", 20)))
        except BadAnswer as problem:
            turn = self.book.turn(worker, turn_id)
            return self._next_page(form.session, worker, None, str(problem), form.fields, turn)
        if saved is None:
            raise Refused(404, "This item is not yours. Load your page again.")
        more = {} if saved.now else {"again": 1}
        return RedirectResponse(self.address(worker, saved=saved.turn.id, **more), 303)

    def _break(self, form: Form) -> Response:
        worker = self.who(form.text("worker"))
        self.book.rest(worker)
        return RedirectResponse(self.address(worker, rest=1), 303)

    def _image(self, request: Request) -> Response:
        """An image of an item that was given to this worker; no other can be had."""
        worker = self.who(request.path_params["token"], _address(request))
        turn = self.book.turn(worker, _number(request.path_params["turn"]))
        number = _number(request.path_params["number"])
        if turn is None or worker.consented is None or not 0 <= number < len(turn.content.images):
            raise Refused(404, "There is no such image.")
        name = Path(turn.content.images[number][0]).name
        file = self.study.folder / IMAGES / name
        if not file.is_file():
            raise Refused(404, "There is no such image.")
        kind = "image/png" if file.suffix == ".png" else "image/jpeg"
        return Response(file.read_bytes(), media_type=kind, headers={"cache-control": "private, max-age=3600"})

    # Those who run the study: they need the admin token; a worker's is none

    def _overview(self, request: Request) -> Response:
        if not request.state.session.may_write:
            return RedirectResponse("/admin/sign-in", 303)
        results = study_results(self.study)
        tables = [
            (table, [[format_cell(jsonable(cell)) for cell in row] for row in table.rows]) for table in results.tables
        ]
        workers = [(one.code, self.address(one)) for one in self.book.workers()]
        return self.page(
            request.state.session, "admin.html", results=results, tables=tables, workers=workers,
            join=f"/join/{self.study.keys.join}?worker=CODE",
        )  # fmt: skip

    def _download(self, request: Request) -> Response:
        if not request.state.session.may_write:
            raise Refused(403, "Sign in first, at /admin/sign-in.")
        results = study_results(self.study)
        name = request.path_params["name"]
        if name == "answers.csv":
            content = answers_csv(results)
        elif name == "payments.csv":
            content = payments_csv(results, self.study.settings.currency)
        else:
            raise Refused(404, "There is no such file.")
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(content, media_type="text/csv", headers=headers)

    def _sign_in(self, form: Form) -> Response:
        self.signing.check("")
        if not hmac.compare_digest(form.text("token").encode(), self.study.keys.admin.encode()):
            time.sleep(0.5)
            raise Refused(403, "This is not the admin token of this study.")
        return self.sessions.signed_in("/admin")


def make_app(study: Study, host: str = "127.0.0.1", port: int = 0, public: str = "") -> App:
    """The study as an ASGI application."""
    return Pages(study, host, port, public).app()


def serve(
    study: Study,
    host: str = "127.0.0.1",
    port: int = PORT,
    public: str = "",
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve until interrupted. `ready` is called with the address once the port is open.

    public: the address under which workers reach the server, where a proxy stands before it
    """
    run_app(
        lambda port: make_app(study, host, port, public),
        host, port, lambda address: ready(public.rstrip("/") + "/" if public else address),
    )  # fmt: skip


def _number(text: str) -> int:
    """The number of a row; -1, which no row has, for anything that is none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else -1


def _seconds(text: str) -> float | None:
    """What the browser says about the time the page was in front."""
    try:
        found = float(text)
    except ValueError:
        return None
    return found if 0 <= found < 1e7 else None


def _address(request: Request) -> str:
    return request.client.host if request.client is not None else ""
