"""What the servers of the explorer and of a study have in common: their addresses, and how they run."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from pfungst.core import MissingExtra, PfungstError
from pfungst.report.page import static as report_static
from pfungst.web.runs import NotHere
from pfungst.web.site import WebSettings


def router(routes: Sequence[Route], close: Callable[[], None]) -> Router:
    """An application of these routes. `close` is called when the server ends.

    The bare router: Starlette's application would answer errors itself, before the guard sees them.
    """

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        yield
        close()

    async def no_page(scope: Any, receive: Any, send: Any) -> None:
        raise NotHere("There is no such page.")

    return Router(routes, lifespan=lifespan, default=no_page)


def static_route(folder: Path, kinds: Mapping[str, str]) -> Route:
    """The style of the report, and the files of a folder, by their names and types."""

    def static(request: Request) -> Response:
        name = request.path_params["name"]
        if name != "style.css" and name not in kinds:
            raise NotHere("There is no such file.")
        content = report_static(name) if name == "style.css" else (folder / name).read_text("utf-8")
        headers = {"cache-control": "max-age=300"}
        return Response(content, media_type=kinds.get(name, "text/css"), headers=headers)

    return Route("/static/{name}", static)


def serve(settings: WebSettings, ready: Callable[[str], None] = lambda address: None) -> None:
    """Serve until interrupted. `ready` is called with the address once the port is open.

    Port 0 takes any free port.
    """
    try:
        import uvicorn  # noqa: F401

        from pfungst.web.app import make_app
    except ImportError as error:
        if (error.name or "").startswith("pfungst"):
            raise
        raise MissingExtra("pfungst serve", "web") from None
    run_app(lambda port: make_app(replace(settings, port=port)), settings.host, settings.port, ready)


def run_app(make: Callable[[int], Any], host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve the ASGI application that `make` gives for a port, until interrupted."""
    import uvicorn

    listening = _bound(host, port)
    port = int(listening.getsockname()[1])
    app = make(port)
    name = f"[{host}]" if ":" in host else host
    ready(f"http://{name}:{port}/")
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, timeout_keep_alive=30,
        timeout_graceful_shutdown=2, limit_concurrency=1000,
    )  # fmt: skip
    uvicorn.Server(config).run(sockets=[listening])


def _bound(host: str, port: int) -> socket.socket:
    try:
        kind, *_, address = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(kind, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(2048)  # from here on visitors wait instead of being turned away
    except OSError as error:
        raise PfungstError(
            f"The server cannot listen on {host}, port {port} ({error.strerror or error}). Choose another with --port."
        ) from error
    return made
