"""An event loop in a thread of its own, for players that ask many things at once."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Awaitable, Callable

Closing = Callable[[], Awaitable[object]]


class Background:
    """Runs functions and coroutines in the background. The thread starts when it is first needed, again in a forked
    process, and ends with this object or with the program."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._process = 0
        self._started: asyncio.AbstractEventLoop | None = None
        self._closing: list[Closing] = []
        self._lock = threading.Lock()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._started is None or self._process != os.getpid():
                loop, self._closing = asyncio.new_event_loop(), []
                # A daemon: whoever leaves (Ctrl-C) need not wait for replies that nobody will read.
                thread = threading.Thread(target=_run, args=(loop, self._closing), name=self._name, daemon=True)
                thread.start()
                self._started, self._process = loop, os.getpid()
                weakref.finalize(self, _stop, loop, thread, os.getpid())
            return self._started

    def call(self, function: Callable[..., object], *arguments: object) -> None:
        """Have a function called there, soon."""
        self.loop.call_soon_threadsafe(function, *arguments)

    def at_the_end(self, close: Closing) -> None:
        """Have this awaited there before the loop closes."""
        if close not in self._closing:
            self._closing.append(close)


def _run(loop: asyncio.AbstractEventLoop, closing: list[Closing]) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
    loop.run_until_complete(_tidy(closing))
    loop.close()


async def _tidy(closing: list[Closing]) -> None:
    pending = asyncio.all_tasks() - {asyncio.current_task()}
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, *(close() for close in closing), return_exceptions=True)


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread, process: int) -> None:
    if process == os.getpid() and not loop.is_closed():
        loop.call_soon_threadsafe(loop.stop)
        if thread is not threading.current_thread():
            thread.join(2.0)
