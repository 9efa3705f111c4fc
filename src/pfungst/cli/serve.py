"""pfungst serve"""

from __future__ import annotations

import secrets
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from pfungst.cli.examine import Json
from pfungst.cli.show import tell
from pfungst.core.code import own_modules


def serve(
    runs: Annotated[list[Path] | None, typer.Argument(help="Run folders, or folders of run folders [runs].")] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; any address other than loopback needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes any free one.")] = 8907,
    token: Annotated[
        str, typer.Option(envvar="PFUNGST_TOKEN", help="Needed for everything beyond reading [created if needed].")
    ] = "",
    player: Annotated[
        list[str] | None, typer.Option("--player", help="A player that visitors may ask. Repeatable.")
    ] = None,
    data: Annotated[str, typer.Option("--data", "-d", help="Data set of the live game and the questions.")] = "world",
    as_json: Json = False,
) -> None:
    """Explore runs in the browser: live progress, every answer, your own questions, the live game.

    Ends with Ctrl-C. With --json the address is printed as JSON.
    """
    from pfungst.web import WebSettings
    from pfungst.web import serve as run_server
    from pfungst.web.site import PLAYERS, is_loopback

    own_modules()
    if not token and not is_loopback(host):
        token = secrets.token_urlsafe(24)
    settings = WebSettings(tuple(runs or [Path("runs")]), host, port, token, tuple(player or PLAYERS), data)

    def ready(address: str) -> None:
        need = [f"Asking, playing and writing notes need the token {token}"] if token else []
        lines = [f"The explorer is at {address}", *need, "Stop it with Ctrl-C."]
        tell({"address": address, "token": token or None}, lines, as_json)
        sys.stdout.flush()

    with suppress(KeyboardInterrupt):  # the way to end it
        run_server(settings, ready)
