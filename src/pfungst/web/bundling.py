"""A static copy of runs: plain files for any web host, with the same pages as the explorer."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pfungst.api import slug
from pfungst.core import PfungstError, Progress
from pfungst.core.files import write_atomic
from pfungst.core.types import no_progress
from pfungst.report.page import static as report_static
from pfungst.web import views
from pfungst.web.index import PAGE, Wanted
from pfungst.web.pictures import LARGE, SMALL, moved_scene
from pfungst.web.runs import NotHere, RunCard, card_of
from pfungst.web.site import HERE, Site, WebSettings

MARK = ".pfungst-bundle"
"""A file that says that a folder is a bundle, and may be written over."""
MOST = 3 * PAGE
_FILTERS = ("probe", "variant", "outcome", "flip", "page")
_ASSETS = ("explorer.css", "explorer.js", "icon.svg")


@dataclass(frozen=True)
class Bundled:
    """What was written."""

    folder: Path
    pages: int
    images: int
    size: int
    """Bytes."""
    problems: tuple[str, ...] = ()
    """What of the runs cannot be shown, in sentences."""


@dataclass
class _StaticLinks:
    """Addresses of files. Whatever a page links to is remembered, and written later."""

    folder: Path
    site: Site | None = None
    static: bool = True
    waiting: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    images: dict[str, int] = field(default_factory=dict)

    def __call__(self, page: str, /, **query: Any) -> str:
        asked = {name: value for name, value in query.items() if value not in ("", None, (), [])}
        if page == "runs":
            return "index.html"
        if page.startswith("static/"):
            return page
        if page in ("image", "moved"):
            return self._image(page, asked)
        kept: dict[str, Any] = {name: asked[name] for name in ("run", "id") if name in asked}
        if page == "answers":
            kept = {"run": asked.get("run")} | {name: asked[name] for name in _FILTERS if name in asked}
        name = _name(page, kept)
        self.waiting.setdefault(name, (page, kept))
        return name

    def _image(self, page: str, asked: Mapping[str, Any]) -> str:
        assert self.site is not None
        try:
            run = self.site.runs.get(asked["run"])
            if page == "moved":
                moved = moved_scene(run, asked["id"])
                if moved is None:
                    raise NotHere("There is no such scene.")
                image: Any = moved.image(asked["which"])
            else:
                image = self.site.pictures.image(run, asked["id"])
            side = SMALL if asked.get("size") == "small" else LARGE
            content, kind = self.site.pictures.encoded(image, side)
        except PfungstError:
            return "static/icon.svg"
        name = f"images/{hashlib.sha256(content).hexdigest()[:24]}.{kind.rpartition('/')[2]}"
        if name not in self.images:
            write_atomic(self.folder / name, content)
            self.images[name] = len(content)
        return name


def bundle(
    runs: Sequence[str | Path], out: str | Path, *, most: int = MOST, progress: Progress = no_progress
) -> Bundled:
    """Write a static copy of runs to the folder `out`: open its index.html, or put it on a web host.

    runs: run folders, or folders of run folders.
    most: answers of every list (a probe, a variant, a kind of change); the page says where there are more.
    """
    folder = Path(out)
    if folder.exists() and any(folder.iterdir()) and not (folder / MARK).exists():
        raise PfungstError(f"{folder} has other files in it. Choose a new folder for the copy.")
    if most < 1:
        raise PfungstError(f"A list needs at least 1 answer, not {most}.")
    with tempfile.TemporaryDirectory() as aside:
        links = _StaticLinks(folder)
        settings = WebSettings(tuple(Path(run) for run in runs), notes=Path(aside) / "none.sqlite")
        site = Site(settings, links)
        links.site = site
        try:
            if not site.runs.all():
                raise PfungstError(f"There is no run in {', '.join(map(str, runs))}.")
            return _write(site, links, folder, -(-most // PAGE), progress)
        finally:
            site.close()


def _write(site: Site, links: _StaticLinks, folder: Path, pages: int, progress: Progress) -> Bundled:
    write_atomic(folder / MARK, b"")
    write_atomic(folder / "static" / "style.css", report_static("style.css").encode())
    for name in _ASSETS:
        write_atomic(folder / "static" / name, (HERE / "static" / name).read_bytes())
    sizes = {"index.html": _page(folder, "index.html", site.render("runs.html", **views.runs_page(site)))}
    done: set[str] = set()
    while len(done) < len(links.waiting):
        name = next(name for name in links.waiting if name not in done)
        done.add(name)
        page, query = links.waiting[name]
        sizes[name] = _page(folder, name, _rendered(site, page, query, pages))
        progress("writing pages", len(done), len(links.waiting))
    total = sum(sizes.values()) + sum(links.images.values())
    cards = [card_of(site, run) for run in site.runs.all()]
    problems = tuple(f"{card.name}: {told}" for card in cards if (told := card.problem or _empty(card)))
    return Bundled(folder, len(sizes), len(links.images), total, problems)


def _empty(card: RunCard) -> str:
    """That a finished run has no answers to show, in a sentence; empty where it has some."""
    if card.answers or not card.findings:
        return ""
    return "it has numbers but no answers. `pfungst rescore RUN` writes its tables anew."


def _rendered(site: Site, page: str, query: Mapping[str, Any], pages: int) -> str:
    chosen = query.get("run") or ()
    ids = [chosen] if isinstance(chosen, str) else list(chosen)
    if page == "run":
        return site.render("run.html", **views.run_page(site, site.runs.get(ids[0])))
    if page == "answers":
        wanted = Wanted.of({name: str(value) for name, value in query.items() if name != "run"})
        return site.render("answers.html", **views.answers_page(site, ids, wanted, limited=pages))
    if page == "example":
        return site.render("example.html", **views.example_page(site, site.runs.get(ids[0]), query["id"], Wanted()))
    raise PfungstError(f"A static copy has no page {page}.")


def _page(folder: Path, name: str, text: str) -> int:
    content = text.encode("utf-8", "replace")
    write_atomic(folder / name, content)
    return len(content)


def _name(page: str, query: Mapping[str, Any]) -> str:
    """A file name that says what is in it, and is that of no other page."""
    words = slug("-".join(str(value) for value in query.values() if isinstance(value, str | int)))[:60]
    digest = hashlib.sha256(json.dumps(query, sort_keys=True, default=str).encode()).hexdigest()[:10]
    return f"{page}-{words}-{digest}.html"
