"""Running the server of a study."""

from __future__ import annotations

from collections.abc import Callable

from pfungst.study.app import make_app
from pfungst.study.folder import Study
from pfungst.web.serving import run_app

PORT = 8908


def serve(
    study: Study,
    host: str = "127.0.0.1",
    port: int = PORT,
    public: str = "",
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve until interrupted. `ready` is called with the address once the port is open.

    public: the address under which workers reach the server, where a proxy stands before it
    """
    run_app(
        lambda port: make_app(study, host, port, public),
        host, port, lambda address: ready(public.rstrip("/") + "/" if public else address),
    )  # fmt: skip
