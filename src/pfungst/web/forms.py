"""Requests that change something or make somebody work. There is one way to write one: `action`.

It takes a form or JSON, checks the form token and, where the server has a token of its own, that the visitor gave it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pfungst.web.security import Refused
from pfungst.web.sessions import Session, Sessions

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
