"""What a server is told when it starts; and what all pages share: runs, index, images, notes, and their templates."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from pfungst.core import PfungstError
from pfungst.report.card import format_cell, format_finding, format_p, number
from pfungst.report.page import template_engine
from pfungst.web.index import Index, is_right
from pfungst.web.notes import Notes
from pfungst.web.pictures import Pictures
from pfungst.web.runs import Runs

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


HERE = Path(__file__).parent


class Links:
    """Addresses of pages. A static copy has others, see `bundling`."""

    static = False

    def __call__(self, page: str, /, **query: Any) -> str:
        """The address of `runs`, `run`, `answers`, `example`, `image`, `static/NAME` ... with a query."""
        asked = {name: value for name, value in query.items() if value not in ("", None, ())}
        path = "/" if page == "runs" else f"/{quote(page)}"
        return path + (f"?{urlencode(asked, doseq=True)}" if asked else "")


@dataclass
class Site:
    """One server, or one static copy."""

    settings: WebSettings
    links: Any = field(default_factory=Links)

    def __post_init__(self) -> None:
        for folder in self.settings.runs:
            if not folder.is_dir():
                raise PfungstError(f"{folder} is not a folder. Name a run folder, or a folder of run folders.")
        self.runs: Runs = Runs(self.settings.runs)
        self.pictures: Pictures = Pictures()
        self.notes: Notes = Notes(self.settings.notes_file)
        self.cards: dict[str, tuple[float, Any]] = {}
        """What is known about runs, and since when; see `views.card_of`."""
        self.options: dict[tuple[Any, ...], dict[str, list[tuple[str, str]]]] = {}
        """What can be chosen from the answers of some runs, see `views`."""

    @cached_property
    def index(self) -> Index:
        return Index()

    def close(self) -> None:
        if "index" in self.__dict__:
            self.index.close()

    @cached_property
    def _templates(self) -> Any:
        environment = template_engine("pfungst.web")
        environment.globals.update(
            link=self.links, is_right=is_right, number=number, finding=format_finding, p_value=format_p,
            cell=format_cell, is_static=self.links.static,
        )  # fmt: skip
        environment.filters.update(thousands=lambda n: f"{n:,}")
        return environment

    def render(self, template: str, **context: Any) -> str:
        shared: Mapping[str, Any] = {"form_token": "", "may_write": False, "needs_token": bool(self.settings.token)}
        text: str = self._templates.get_template(template).render({**shared, **context})
        return text.encode("utf-8", "replace").decode("utf-8")
