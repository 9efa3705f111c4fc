"""Running the server."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pfungst.core import MissingExtra, PfungstError
from pfungst.web.settings import WebSettings


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
