"""What stands between the network and the pages: hosts, sizes, sessions, headers, and errors without inner details.

`Guard` is a plain ASGI middleware that any application of ours can be wrapped in; `actions` in `forms.py` are the only
requests that change something.
"""

from __future__ import annotations

import logging
import secrets
import traceback
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pfungst.core import PfungstError
from pfungst.web.sessions import Session, Sessions
from pfungst.web.settings import is_loopback

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
