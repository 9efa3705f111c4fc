"""What stands between the network and the pages: hosts, sizes, sessions, headers, and errors without inner details.

A session is a signed cookie and nothing on the server. `Guard` is a plain ASGI middleware that any application of ours
can be wrapped in. There is one way to write a request that changes something or makes somebody work: `Actions.action`
takes a form or JSON, checks the form token and, where the server has a token of its own, that the visitor gave it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import secrets
import traceback
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from pfungst.core import PfungstError
from pfungst.web.site import is_loopback


@dataclass(frozen=True)
class Session:
    """A visitor. `may_write` once the token of the server was given."""

    id: str
    may_write: bool = False
    is_new: bool = False


@dataclass(frozen=True)
class Sessions:
    """Makes and reads the cookie. A new secret means that all earlier cookies are forgotten."""

    cookie: str
    """Its name. Cookies of one host are shared by all its ports, so the name holds the port."""
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def new(self, may_write: bool = False) -> Session:
        return Session(secrets.token_urlsafe(18), may_write, is_new=True)

    def read(self, value: str | None) -> Session | None:
        """The session of a cookie; None where it is not one of ours."""
        id_, rights, mac = [*(value or "").split("."), "", "", ""][:3]
        if not id_ or rights not in ("r", "w") or not _same(mac, self._mac(f"session {id_} {rights}")):
            return None
        return Session(id_, rights == "w")

    def write(self, session: Session) -> str:
        rights = "w" if session.may_write else "r"
        return f"{session.id}.{rights}.{self._mac(f'session {session.id} {rights}')}"

    def form_token(self, session: Session) -> str:
        """What every form of this visitor must bring along; no other site can know it."""
        return self._mac(f"form {session.id}")

    def is_form_token(self, session: Session, token: str) -> bool:
        return _same(token, self.form_token(session))

    def signed_in(self, address: str) -> Response:
        """Leads a visitor who gave the token on, with a new session: one that somebody may have planted before gets no
        rights."""
        cookie = self.header(self.new(may_write=True), False)
        return RedirectResponse(address, 303, {"set-cookie": cookie})

    def header(self, session: Session, secure: bool) -> str:
        """The value of a Set-Cookie header."""
        return f"{self.cookie}={self.write(session)}; Path=/; HttpOnly; SameSite=Lax" + ("; Secure" if secure else "")

    def _mac(self, text: str) -> str:
        return hmac.new(self.secret, text.encode(), hashlib.sha256).hexdigest()


def _same(first: str, second: str) -> bool:
    return hmac.compare_digest(first.encode("utf-8", "replace"), second.encode("utf-8", "replace"))


Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""No inline script or style, nothing from elsewhere."""
FOREIGN_POLICY = "sandbox allow-scripts allow-downloads; frame-ancestors 'none'"
"""For files of a run folder, such as its report: whatever is in them acts as a stranger, not as this site."""
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
_DRAINED = 64_000_000
"""Bytes of a request that is too large that are read before the answer."""
SAFE = ("GET", "HEAD", "OPTIONS")
_log = logging.getLogger("pfungst.web")


class Refused(PfungstError):
    """A request that is not allowed, with its HTTP status."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class _TooLarge(Exception):
    """`more`: whether some of the request is still to come."""

    def __init__(self, more: bool) -> None:
        self.more = more


@dataclass(frozen=True)
class Guard:
    """Wraps an application.

    hosts: host names that are answered to; empty: all. A page elsewhere whose name leads to this machine (DNS
        rebinding) is told nothing.
    largest: bytes that a request may bring, by path prefix; the longest prefix counts.
    """

    app: App
    sessions: Sessions
    hosts: frozenset[str]
    largest: Mapping[str, int]
    show_error: Callable[[int, str, Session], bytes]
    """Makes the page of an error."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])}
        session = self.sessions.read(_cookie(headers.get("cookie", ""), self.sessions.cookie)) or self.sessions.new()
        scope.setdefault("state", {})["session"] = session
        answer = _Answer(self, scope, send, session)
        try:
            self._check(scope, headers)
            await self.app(scope, self._counted(scope, headers, receive), answer)
        except Refused as error:
            await answer.error(error.status, str(error))
        except _TooLarge as error:
            if error.more:
                await _drained(receive)
            await answer.error(413, "This is more than the server accepts in one request.")
        except PfungstError as error:
            await answer.error(getattr(error, "status", 400), str(error))
        except Exception:
            number = secrets.token_hex(4)
            _log.error("error %s at %s\n%s", number, scope.get("path"), traceback.format_exc())
            await answer.error(500, f"Something went wrong in the server. Its log has the details, as error {number}.")

    def _check(self, scope: Scope, headers: Mapping[str, str]) -> None:
        host = headers.get("host", "")
        if self.hosts and _host_name(host) not in self.hosts:
            raise Refused(421, "This server does not answer under this name. Use the address that it printed.")
        if scope["method"] in SAFE:
            return
        # Browsers say where a request comes from; a form token is needed besides.
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise Refused(403, "This request comes from another site.")
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            raise Refused(403, "This request comes from another site.")

    def _counted(self, scope: Scope, headers: Mapping[str, str], receive: Receive) -> Receive:
        path = scope.get("path", "")
        most = self.largest[max((prefix for prefix in self.largest if path.startswith(prefix)), key=len)]
        said = headers.get("content-length", "")
        if said and (not said.isdecimal() or int(said) > most):
            raise _TooLarge(more=True)
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > most:
                raise _TooLarge(message.get("more_body", False))
            return message

        return counted


async def _drained(receive: Receive) -> None:
    """Read on and forget: a visitor who is still sending would see a broken connection instead of the reason."""
    left = _DRAINED
    while left > 0:
        message = await receive()
        left -= len(message.get("body", b""))
        if message["type"] != "http.request" or not message.get("more_body", False):
            return


class _Answer:
    """Sends, with our headers; remembers whether it has begun."""

    def __init__(self, guard: Guard, scope: Scope, send: Send, session: Session) -> None:
        self._guard, self._scope, self._send, self._session = guard, scope, send, session
        self._begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._begun = True
            known = {name.decode("latin-1").lower() for name, _ in message["headers"]}
            added = {"content-security-policy": POLICY, **HEADERS}
            if "cache-control" not in known:
                added["cache-control"] = "no-store"
            # Read again: signing in changes it.
            session: Session = self._scope["state"]["session"]
            if session.is_new and not self._scope.get("path", "").startswith("/static/"):
                added["set-cookie"] = self._guard.sessions.header(session, self._scope.get("scheme") == "https")
            extra = [(name.encode(), text.encode()) for name, text in added.items() if name not in known]
            message = {**message, "headers": [*message["headers"], *extra]}
        await self._send(message)

    async def error(self, status: int, sentence: str) -> None:
        if self._begun:
            return  # half an answer is out: the connection ends, which the reader notices
        body = self._guard.show_error(status, sentence, self._session)
        headers = [(b"content-type", b"text/html; charset=utf-8"), (b"content-length", str(len(body)).encode())]
        if status == 413:
            headers.append((b"connection", b"close"))
        await self({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})


def allowed_hosts(host: str) -> frozenset[str]:
    """The names that a server on this address answers to; all where it is not on loopback."""
    return frozenset({"localhost", "127.0.0.1", "[::1]", host.lower()}) if is_loopback(host) else frozenset()


def _host_name(host: str) -> str:
    name = host.strip().lower()
    if name.startswith("["):
        return name.partition("]")[0] + "]"
    return name.partition(":")[0]


def _cookie(header: str, name: str) -> str | None:
    for part in header.split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return value
    return None


FORM_TOKEN = "form_token"
HEADER = "x-form-token"


@dataclass(frozen=True)
class Form:
    """What a visitor sent."""

    fields: Mapping[str, Any]
    """Texts of a form, or the values of a JSON object."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    session: Session = field(default_factory=lambda: Session(""))

    def text(self, name: str, most: int = 2000) -> str:
        """A text; empty where it is not there."""
        value = self.fields.get(name, "")
        if not isinstance(value, str) or len(value) > most:
            raise Refused(400, f"The field {name} must be a text of at most {most:,} characters.")
        return value.strip()


Handler = Callable[[Form], Response]


@dataclass(frozen=True)
class Actions:
    """Makes the routes of requests that change something."""

    sessions: Sessions
    needs_sign_in: bool
    """Whether visitors must have given the token of the server."""

    def action(self, path: str, handler: Handler, *, open_to_all: bool = False) -> Route:
        """A POST route. The handler runs in a thread of its own.

        open_to_all: without the server's token; for signing in.
        """

        async def endpoint(request: Request) -> Response:
            session: Session = request.state.session
            form = await _read(request, session)
            token = request.headers.get(HEADER) or str(form.fields.get(FORM_TOKEN, ""))
            if not self.sessions.is_form_token(session, token):
                raise Refused(403, "This form is too old or comes from elsewhere. Reload the page and try again.")
            if self.needs_sign_in and not session.may_write and not open_to_all:
                raise Refused(
                    403, "Sign in with the token of this server first: it was printed where the server was started."
                )
            return await run_in_threadpool(handler, form)

        return Route(path, endpoint, methods=["POST"])


async def _read(request: Request, session: Session) -> Form:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        try:
            fields = json.loads(await request.body())
        except (ValueError, RecursionError):
            raise Refused(400, "The request is not JSON.") from None
        if not isinstance(fields, dict):
            raise Refused(400, "The request must be a JSON object.")
        return Form(fields, session=session)
    if kind not in ("application/x-www-form-urlencoded", "multipart/form-data"):
        raise Refused(415, "The request is neither a form nor JSON.")
    texts: dict[str, str] = {}
    files: dict[str, bytes] = {}
    try:
        async with request.form(max_files=2, max_fields=50) as sent:
            for name, value in sent.multi_items():
                if isinstance(value, UploadFile):
                    files[name] = await value.read()
                else:
                    texts[name] = value
    except (MultiPartException, HTTPException, UnicodeDecodeError):
        raise Refused(400, "The form cannot be read.") from None
    return Form(texts, files, session)
