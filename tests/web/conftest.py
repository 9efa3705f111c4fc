"""A server over small real runs, started once for all tests of the explorer."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

import pfungst
from tests.conftest import png

pytest.importorskip("starlette", reason="the explorer needs the extra web")

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'</title>{{7*7}}"
"""Stands in questions, answers, ids, types and the name of a run."""


@dataclass
class Served:
    """A running server and somebody who visits it."""

    address: str
    settings: Any
    client: httpx.Client

    def get(self, path: str, **query: Any) -> httpx.Response:
        return self.client.get(self.address + path, params=query)

    def page(self, path: str, **query: Any) -> str:
        """The text of a page that must be there."""
        reply = self.get(path, **query)
        assert reply.status_code == 200, (path, query, reply.text[:500])
        return reply.text

    def token(self, path: str = "/") -> str:
        found = re.search(r'name="form-token" content="([0-9a-f]+)"', self.page(path))
        assert found is not None
        return found[1]

    def post(self, path: str, fields: dict[str, Any], *, token: str | None = None, **more: Any) -> httpx.Response:
        """Send a form with the visitor's token."""
        sent = {"form_token": self.token() if token is None else token, **fields}
        return self.client.post(self.address + path, data=sent, **more)

    def json(self, path: str, fields: dict[str, Any]) -> httpx.Response:
        return self.client.post(self.address + path, json=fields, headers={"x-form-token": self.token()})


@contextmanager
def serving(settings: Any, **client: Any) -> Iterator[Served]:
    """The server as `pfungst serve` runs it, on a port of its own."""
    import uvicorn

    from pfungst.web.app import make_app

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(make_app(settings), log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    with httpx.Client(timeout=60, follow_redirects=True, **client) as visitor:
        yield Served(f"http://127.0.0.1:{port}", settings, visitor)
    server.should_exit = True
    thread.join(10)


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PFUNGST_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        yield


@pytest.fixture(scope="session")
def made_runs(tmp_path_factory: pytest.TempPathFactory, cache: None) -> Path:
    """Two players on one data set of images with hostile texts, and one on the world with a game."""
    folder = tmp_path_factory.mktemp("explorer")
    data = folder / "data"
    data.mkdir()
    rows = []
    for number in range(30):
        (data / f"{number}.png").write_bytes(png(number * 8, (40, 30)).read())
        row = {
            "id": f"q{number}" if number else f"q/../{HOSTILE}",
            "question": f"Is square {number} red?" if number else f"Is it? {HOSTILE}",
            "image": f"{number}.png",
            "answer": ("no", "yes", "2")[number % 3] if number else HOSTILE,
            "answer_type": "yes/no" if number else HOSTILE,
            "group": f"g{number // 2}",
        }
        rows.append(json.dumps(row) + "\n")
    (data / "data.jsonl").write_text("".join(rows))
    runs = folder / "runs"
    for player in ("prior", "flaky:0.4"):
        out = runs / (player.partition(":")[0] if player == "prior" else f"sub & <b>{player[:5]}</b>")
        pfungst.examine(player, str(data / "data.jsonl"), ["control", "blind"], out)
    game = "game:adversary=rsg,size=2,seeds=1,budget=6"
    pfungst.examine("prior", "world?scenes=8", ["control", game], runs / "world", limit=24)
    return runs


@pytest.fixture(scope="session")
def settings(made_runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    from pfungst.web import WebSettings

    return WebSettings(
        (made_runs,), players=("prior", "oracle", "rn-state"), data="world?scenes=8", max_upload=200_000,
        max_pixels=500_000,
    )  # fmt: skip


@pytest.fixture(scope="session")
def served(settings: Any, cache: None) -> Iterator[Served]:
    with serving(settings) as one:
        yield one


@pytest.fixture(scope="session")
def guarded(settings: Any, cache: None) -> Iterator[Served]:
    """The same with a token, as on an address that others can reach."""
    from dataclasses import replace

    with serving(replace(settings, token="a long token")) as one:
        yield one


@pytest.fixture(scope="session")
def run_id(served: Served) -> Callable[[str], str]:
    """The id of the run whose folder name begins with this."""

    def find(start: str) -> str:
        from pfungst.web import Runs

        return next(run.id for run in Runs(served.settings.runs).all() if run.name.startswith(start))

    return find
