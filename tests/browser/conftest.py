"""A real browser: Chromium, from the system or Playwright's own. Tests skip with a reason where there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import pfungst

PATIENCE = 120_000
"""Milliseconds that a busy machine may take for one step."""
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SHOTS = os.environ.get("PFUNGST_SCREENSHOTS", "")
"""A folder: `make screenshots` lets the tests write what they see there."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    # Not longer: Playwright leaves an event loop running, beside which others cannot start theirs.
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with playwright.sync_playwright() as started:
        own = started.chromium.executable_path
        found = next((path for path in map(shutil.which, NAMES) if path), own if Path(own).exists() else None)
        if found is None:
            pytest.skip("there is no Chromium: `make browser` installs one")
        root = hasattr(os, "geteuid") and os.geteuid() == 0
        # The sandbox refuses to run as root, which containers are.
        try:
            browser = started.chromium.launch(executable_path=found, args=["--no-sandbox"] if root else [])
        except playwright.Error as error:
            pytest.skip(f"{found} does not start: {str(error).splitlines()[0]}")
        yield browser
        browser.close()


@dataclass
class Visit:
    """Opens pages in contexts of their own, and notes what the browser complains about."""

    browser: Any
    complaints: list[str] = field(default_factory=list)
    contexts: list[Any] = field(default_factory=list)

    def __call__(self, path: Path | str, width: int = 1280, height: int = 900, **options: Any) -> Any:
        context = self.browser.new_context(viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(PATIENCE)
        self.contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.goto(path.as_uri() if isinstance(path, Path) else path)
        return page


@pytest.fixture
def visit(chromium: Any) -> Iterator[Visit]:
    """Opens a page; what the browser complains about (a refused script or style, an exception) fails the test."""
    visited = Visit(chromium)
    yield visited
    for context in visited.contexts:
        context.close()
    assert not visited.complaints


ONE_OF_EACH = """() => {
  const seen = new Set();
  for (const card of document.querySelectorAll('.cases > .case')) {
    if (seen.has(card.dataset.probe)) card.remove();
    seen.add(card.dataset.probe);
  }
}"""
"""Cases of one probe are alike: axe-core takes its time, and sees one of each."""


@pytest.fixture(scope="session")
def violations() -> Callable[[Any], list[str]]:
    """What axe-core finds against WCAG 2 A and AA on a page, in words."""
    axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    source = (Path(axe.__file__).parent / "axe.min.js").read_text("utf-8")

    def check(page: Any) -> list[str]:
        page.evaluate(ONE_OF_EACH)
        page.evaluate(source)
        found = page.evaluate("axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']})")
        return [
            f"{one['id']}: {node['html'][:200]} {node['failureSummary'][:300]}"
            for one in found["violations"]
            for node in one["nodes"][:5]
        ]

    return check


@pytest.fixture(scope="session")
def shoot() -> Callable[..., None]:
    """Writes a screenshot for the documentation, where one is wanted."""

    def take(page: Any, name: str, **options: Any) -> None:
        if SHOTS:
            page.wait_for_timeout(1500)  # until all images are decoded and painted
            page.screenshot(path=Path(SHOTS) / f"{name}.png", **options)

    return take


PROBES = ("control", "blind", "rephrase", "noise:ranker=rouge", "decoys:pool_limit=40",
          "game:adversary=rsg,size=6,seeds=1,budget=10")  # fmt: skip
PLAYERS = {"prior": PROBES, "flaky:0.3": PROBES[:1], "random": PROBES[:1]}
"""The first has a report with all probes; all of them are compared."""


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Exams on the built-in world. Screenshots show models that look; tests need no more than players that do not."""
    folder = tmp_path_factory.mktemp("runs")
    players = {"san": PROBES, "film": PROBES[:3], "ban": PROBES[:3]} if SHOTS else PLAYERS
    with pytest.MonkeyPatch.context() as patch:
        if not SHOTS:
            patch.setenv("PFUNGST_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        for player, probes in players.items():
            out = folder / player.partition(":")[0]
            pfungst.examine(player, "world", list(probes), out, limit=400 if SHOTS else 24)
    return [folder / player.partition(":")[0] for player in players]
