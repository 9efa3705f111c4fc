"""What a server is told when it starts."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

PORT = 8907
PLAYERS = ("film", "rn-state", "butd", "oracle", "prior")
"""Offered unless the user names others: they come with the package and answer at once."""


@dataclass(frozen=True)
class WebSettings:
    """Where the runs are, who may reach the server, and what it accepts."""

    runs: tuple[Path, ...] = (Path("runs"),)
    """Run folders, or folders of run folders."""
    host: str = "127.0.0.1"
    port: int = PORT
    token: str = ""
    """Needed for everything beyond reading; empty: nothing is needed, which is refused unless `host` is loopback."""
    players: tuple[str, ...] = PLAYERS
    """Whom a visitor may ask. Nothing a visitor sends, and nothing in a run folder, names a player beyond these."""
    data: str = "world"
    """Data set of the live game and of the questions that visitors ask."""
    notes: Path | None = None
    """SQLite file of notes and tags; by default explorer.sqlite in the first folder of runs."""
    max_upload: int = 10_000_000
    """Bytes of an uploaded image."""
    max_pixels: int = 25_000_000
    """Pixels of an uploaded image."""
    max_form: int = 200_000
    """Bytes of any other request."""

    @property
    def is_local(self) -> bool:
        return is_loopback(self.host)

    @property
    def notes_file(self) -> Path:
        return self.notes if self.notes is not None else self.home / "explorer.sqlite"

    @property
    def home(self) -> Path:
        """Where saved questions and games go: the first folder of runs, or the folder around a single run."""
        first = self.runs[0]
        return first.resolve().parent if (first / "exam.json").exists() else first


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server on this address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
