"""Sessions: a signed cookie and nothing on the server; reusable for anything that needs to know a visitor again."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field


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

    def header(self, session: Session, secure: bool) -> str:
        """The value of a Set-Cookie header."""
        return f"{self.cookie}={self.write(session)}; Path=/; HttpOnly; SameSite=Lax" + ("; Secure" if secure else "")

    def _mac(self, text: str) -> str:
        return hmac.new(self.secret, text.encode(), hashlib.sha256).hexdigest()


def _same(first: str, second: str) -> bool:
    return hmac.compare_digest(first.encode("utf-8", "replace"), second.encode("utf-8", "replace"))
