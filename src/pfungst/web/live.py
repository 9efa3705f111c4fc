"""How far the runs are, as it changes: server-sent events."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from pfungst.web.runs import Runs, state_of
from pfungst.web.security import Refused

if TYPE_CHECKING:
    from pfungst.web.app import Explorer

EVERY_SECONDS = 1.0
BEAT_SECONDS = 15.0
"""A line that says nothing, so that nobody on the way ends the connection."""
MOST_LISTENERS = 200


class _Watch:
    """The state of all runs, read once a second however many listen."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._at, self._states = -1e9, "{}"
        self._lock = asyncio.Lock()
        self.listeners = 0

    async def states(self) -> str:
        async with self._lock:
            if time.monotonic() - self._at > EVERY_SECONDS:
                self._states = json.dumps(await run_in_threadpool(self._read))
                self._at = time.monotonic()
            return self._states

    def _read(self) -> dict[str, Any]:
        return {run.id: asdict(state_of(run)) for run in self._runs.all()}


def routes(explorer: Explorer) -> list[Route]:
    watch = _Watch(explorer.site.runs)

    async def events(request: Request) -> Response:
        if watch.listeners >= MOST_LISTENERS:
            raise Refused(503, "Too many pages are already open. Reload this page to see the progress of the runs.")
        return StreamingResponse(_events(watch, request), media_type="text/event-stream")

    return [Route("/events", events)]


async def _events(watch: _Watch, request: Request) -> AsyncIterator[str]:
    watch.listeners += 1
    told, beat = "", time.monotonic()
    try:
        while not await request.is_disconnected():
            states = await watch.states()
            if states != told:
                told, beat = states, time.monotonic()
                yield f"data: {states}\n\n"
            elif time.monotonic() - beat > BEAT_SECONDS:
                beat = time.monotonic()
                yield ": still here\n\n"
            await asyncio.sleep(EVERY_SECONDS)
    finally:
        watch.listeners -= 1
