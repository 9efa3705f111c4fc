"""What the addresses of the explorer and of a study have in common."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from pfungst.report.page import static as report_static
from pfungst.web.runs import NotHere


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
