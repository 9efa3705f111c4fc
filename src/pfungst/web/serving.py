"""Running the server."""

from __future__ import annotations

import socket
from collections.abc import Callable

from pfungst.core import MissingExtra, PfungstError
from pfungst.web.settings import WebSettings


def serve(settings: WebSettings, ready: Callable[[str], None] = lambda address: None) -> None:
    """Serve until interrupted. `ready` is called with the address once the port is open.

    Port 0 takes any free port.
    """
    try:
        import uvicorn

        from pfungst.web.app import make_app
    except ImportError as error:
        if (error.name or "").startswith("pfungst"):
            raise
        raise MissingExtra("pfungst serve", "web") from None
    from dataclasses import replace

    listening = _bound(settings.host, settings.port)
    port = int(listening.getsockname()[1])
    app = make_app(replace(settings, port=port))
    name = f"[{settings.host}]" if ":" in settings.host else settings.host
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
    except OSError as error:
        raise PfungstError(
            f"The server cannot listen on {host}, port {port} ({error.strerror or error}). Choose another with --port."
        ) from error
    return made
