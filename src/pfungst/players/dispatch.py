"""Questions on their way to servers: prepared ahead, sent where there is room, tried again, handed back."""

from __future__ import annotations

import asyncio
import heapq
import os
import queue
import random
import threading
import time
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import TypeAlias

from pfungst.core import Answer, PfungstError, PlayerError, Query
from pfungst.core.errors import BrokenImage, QueriesFailed
from pfungst.players.chat_api import AllFailing, Body, Chat, Fatal, Passing, Refused, Unfit
from pfungst.players.options import OpenAIOptions
from pfungst.players.servers import Meter, Server, Servers

LONGEST = 30.0
"""Seconds before a request is sent again, at most."""
_CHANCE = random.Random()
_TOGETHER = 16
"""Questions that one thread prepares before it hands them over."""
_OTHERS = 3
"""New questions that a server gets that replies with errors to all others, before it is considered down."""
_GATHER_SECONDS = 0.003
"""How long a reply may wait for others that are stored with it."""
_THREADS = min(4, os.cpu_count() or 1)
LOOK_SECONDS = 5.0
"""How often a call is looked after that hears nothing."""
_Came: TypeAlias = list[tuple[int, Answer]] | tuple[int, PfungstError] | Exception | None
"""Answers, a question that failed with the reason, why nothing more is asked, the end."""


@dataclass(slots=True, eq=False)
class _Asked:
    """One question on its way."""

    index: int
    query: Query
    body: Body = ()
    error: Exception | None = None
    """Why it could not be put into words and pixels."""
    tries: int = 0
    failed_at: Server | None = None
    failure: str = ""
    """What went wrong the last time."""
    place: ExitStack = field(default_factory=ExitStack)
    """Its place at the server that failed, while it waits to be asked again."""


class Dispatcher:
    """Asks servers. Safe to use from many threads: everything but the preparation of requests happens in one thread."""

    def __init__(self, name: str, chat: Chat, servers: Servers, options: OpenAIOptions, ahead: int) -> None:
        self.chat = chat
        self.servers = servers
        self.options = options
        self.ahead = ahead
        """Requests that are kept ready."""
        self.meter: Meter = Meter(options)
        self.background: Background = Background(name)
        self.name: str = name
        self._threads: tuple[int, ThreadPoolExecutor] | None = None
        self.calls: list[_Call] = []

    def ask(self, queries: Sequence[Query]) -> Iterator[list[tuple[int, Answer]]]:
        """(position, answer) as they come, in any order, those that came together in one list; an error is raised after
        the last answer there is."""
        call = _Call(self, queries)
        self.background.call(call.begin)
        failed: dict[int, PfungstError] = {}
        fatal: Exception | None = None
        try:
            while (came := self._next(call)) is not None:
                if isinstance(came, Exception):
                    fatal = fatal or came
                elif isinstance(came, tuple):
                    failed[came[0]] = came[1]
                else:
                    yield came
        finally:
            self.background.call(call.end)
        if fatal is not None:
            raise fatal
        if failed and not any(isinstance(error, PlayerError) for error in failed.values()):
            raise next(iter(failed.values()))  # an image that cannot be read: no server was asked
        if failed:
            images = [index for index, error in failed.items() if isinstance(error, BrokenImage)]
            raise QueriesFailed({index: str(error) for index, error in failed.items()}, images)

    def _next(self, call: _Call) -> _Came:
        while True:
            try:
                return call.done.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                self.background.call(call.look)

    @property
    def threads(self) -> ThreadPoolExecutor:
        """Where requests are made ready; a forked process needs threads of its own."""
        if self._threads is None or self._threads[0] != os.getpid():
            self._threads = os.getpid(), ThreadPoolExecutor(_THREADS, thread_name_prefix=f"{self.name}-image")
        return self._threads[1]


class _Call:
    """One call of `ask`. Its methods run in the loop's thread."""

    def __init__(self, dispatcher: Dispatcher, queries: Sequence[Query]) -> None:
        self.done: queue.SimpleQueue[_Came] = queue.SimpleQueue()
        self._came: list[tuple[int, Answer]] = []
        self._home = dispatcher
        self._queries = queries
        self._digests: dict[int, str] = {}
        self._order = by_image(queries, self._digests)
        self._next = 0
        self._preparing = 0
        self._ready: deque[_Asked] = deque()
        self._again: deque[_Asked] = deque()
        self._later: list[tuple[float, int, _Asked]] = []
        self._number = count()
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = float("inf")
        self._refused: list[tuple[int, Unfit]] = []
        """Questions that were refused before any other was answered: this may happen to all of them."""
        self._other: asyncio.Task[None] | None = None
        self._others = 0
        """Since the last answer: new questions that were asked because those before them failed."""
        self._stopping = False
        self._ended = False

    def begin(self) -> None:
        if not self._home.calls:
            self._home.servers.start_afresh()
            self._home.background.at_the_end(self._home.servers.close)
        self._home.calls.append(self)
        self._go_on()

    def end(self) -> None:
        """Nobody waits for answers any more."""
        self._stop()
        self._finish()
        for task in self._tasks:
            task.cancel()

    def look(self) -> None:
        """End a call that nothing can go on with any more: no reply, no timer, no preparation is waited for."""
        try:
            self._go_on()
            if self._open and not any(call._tasks or call._preparing or call._timer for call in self._home.calls):
                waiting = len(self._ready) + len(self._again) + self._left
                raise PlayerError(
                    f"{waiting:,} questions to {self._home.name} wait for nothing, which is an error in Pfungst. "
                    "Answers already received are kept: run the same command again to resume."
                )
        except Exception as error:
            self._end_with(error)
            self._finish()

    def _go_on(self) -> None:
        """Send what can be sent, and see to it that this is called again when more can."""
        if self._ended:
            return
        now = time.monotonic()
        if not self._stopping:
            while self._later and self._later[0][0] <= now:
                self._wait_no_more(heapq.heappop(self._later)[2])
            try:
                self._send_all(now)
            except AllFailing as error:
                self._give_up(error)
            except Fatal as error:
                self._end_with(error)
        if not self._stopping:
            self._prepare()
            self._set_timer(now)
        if not (self._tasks or self._preparing or self._open):
            self._finish()

    @property
    def _left(self) -> int:
        """Questions that nobody has prepared yet."""
        return 0 if self._stopping else len(self._order) - self._next

    @property
    def _open(self) -> bool:
        """Whether any question is still to be asked."""
        return bool(self._ready or self._again or self._later or self._left)

    def _send_all(self, now: float) -> None:
        home = self._home
        if self._refused:
            if home.meter.answers or not (self._tasks or self._preparing or self._open):
                while self._refused:
                    index, error = self._refused.pop()
                    self._fail(index, error)
            elif self._tasks:  # their replies will tell
                return
            else:
                raise Fatal(str(self._refused[0][1]))
        if self._open:
            home.servers.check()
        for line in (self._again, self._ready):
            while line:
                home.meter.check()
                server = home.servers.pick(now, line[0].failed_at)
                if server is None:
                    break
                self._send(line.popleft(), server)

    def _send(self, asked: _Asked, server: Server) -> asyncio.Task[None]:
        self._home.meter.requests += 1
        self._home.meter.retries += asked.tries > 0
        # Taken before the task runs, so that the next pick knows, and given back even if it never does.
        place = server.place()
        task = asyncio.get_running_loop().create_task(self._ask(asked, server))
        task.add_done_callback(partial(self._came_back, place))
        self._tasks.add(task)
        return task

    def _came_back(self, place: ExitStack, task: asyncio.Task[None]) -> None:
        place.close()
        self._tasks.discard(task)
        for call in list(self._home.calls):  # a place at a server is free: for another call as well
            call._go_on()

    async def _ask(self, asked: _Asked, server: Server) -> None:
        home = self._home
        try:
            answer = await server.ask(home.chat, asked.query, asked.body, home.meter)
        except Passing as failure:
            asked.failed_at = server
            asked.tries += 1
            asked.failure = str(failure)
            self._try_again(asked, server)
        except Refused:
            asked.failed_at = server
            if not self._stopping:
                self._again.append(asked)
        except Unfit as error:
            self._refused.append((asked.index, error))
        except Exception as error:
            self._end_with(error)
        else:
            self._others = 0
            if not self._came:
                asyncio.get_running_loop().call_later(_GATHER_SECONDS, self._hand_over)
            self._came.append((asked.index, answer))

    def _try_again(self, asked: _Asked, server: Server) -> None:
        if self._stopping:
            return
        if asked.tries > self._home.options.retries:
            try:
                self._home.servers.check()
            except AllFailing:
                pass
            except Fatal as error:
                self._end_with(error)
                return
            self._fail_all([asked])
            return
        # It keeps its place at that server while it waits: a server that fails is asked less. A server that asks for
        # time is closed as long as it says; another may be asked before.
        due = time.monotonic() + backoff(self._home.options.backoff, asked.tries - 1)
        asked.place = server.place()
        heapq.heappush(self._later, (due, next(self._number), asked))

    def _wait_no_more(self, asked: _Asked) -> None:
        asked.place.close()
        self._again.append(asked)

    def _fail(self, index: int, error: Exception) -> None:
        """A question that failed for good; the others go on, unless the same would happen to them."""
        if isinstance(error, PfungstError):
            self.done.put((index, error))
        else:
            self._end_with(error)

    def _fail_all(self, all_asked: Sequence[_Asked]) -> None:
        for asked in all_asked:
            assert asked.failed_at is not None
            sentence = (
                f"The question '{asked.query.question:.80}' failed {asked.tries} times at {asked.failed_at.name} "
                f"(last: {asked.failure}). Run again: answers already received are kept."
            )
            self.done.put((asked.index, PlayerError(sentence)))

    def _give_up(self, error: AllFailing) -> None:
        """Whatever was asked fails. Where other questions do not, or none is left, these questions are why."""
        if self._other in self._tasks:
            return
        if self._ready or self._preparing or self._left:
            if self._others == _OTHERS:
                self._end_with(error)
            elif self._ready:
                self._others += 1
                # The last: the next may be about the same image.
                self._other = self._send(self._ready.pop(), self._home.servers.any())
            return
        for _, _, asked in self._later:
            self._wait_no_more(asked)
        self._later.clear()
        self._fail_all(self._again)
        self._again.clear()

    def _end_with(self, error: Exception) -> None:
        self.done.put(error)
        self._stop()

    def _stop(self) -> None:
        """Ask nothing more; replies under way are waited for."""
        self._stopping = True
        for _, _, asked in self._later:
            self._wait_no_more(asked)
        for line in (self._ready, self._again, self._later):
            line.clear()

    def _hand_over(self) -> None:
        if self._came:
            self.done.put(self._came)
            self._came = []

    def _finish(self) -> None:
        if not self._ended:
            self._hand_over()
            self._ended = True
            self._home.calls.remove(self)
            if self._timer is not None:
                self._timer.cancel()
            self.done.put(None)

    def _set_timer(self, now: float) -> None:
        due = self._later[0][0] if self._later else float("inf")
        if self._ready or self._again:
            due = min(due, self._home.servers.next_opening(now))
        if due == self._timer_due:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_due = due
        if due < float("inf"):
            self._timer = asyncio.get_running_loop().call_later(max(0.0, due - now), self._ring)

    def _ring(self) -> None:
        self._timer, self._timer_due = None, float("inf")
        self._go_on()

    def _prepare(self) -> None:
        """Have requests made ahead in other threads: images are read, encoded and written as text there."""
        home = self._home
        while (
            self._left
            and self._preparing < _THREADS
            and len(self._ready) + _TOGETHER * self._preparing < max(home.ahead, _TOGETHER)
        ):
            part = self._order[self._next : self._next + _TOGETHER]
            home.threads.submit(self._make, [_Asked(index, self._queries[index]) for index in part])
            self._next += len(part)
            self._preparing += 1

    def _make(self, asked: list[_Asked]) -> None:
        for one in asked:
            try:
                one.body = self._home.chat.body(one.query, self._digests.get(id(one.query.image)))
            except Exception as error:
                one.error = error
        self._home.background.call(self._made, asked)

    def _made(self, asked: list[_Asked]) -> None:
        self._preparing -= 1
        for one in asked:
            if one.error is not None:
                self._fail(one.index, one.error)
            elif not self._stopping:
                self._ready.append(one)
        self._go_on()


def backoff(first: float, attempt: int) -> float:
    """Seconds to wait: they double with each attempt from `first` up to `LONGEST`, and are between half and all of
    that, by chance.

    The chance keeps many askers from coming back at the same moment; it never touches an answer.
    """
    return min(LONGEST, first * 2.0 ** min(attempt, 30)) * (0.5 + 0.5 * _CHANCE.random())


def by_image(queries: Sequence[Query], digests: dict[int, str]) -> list[int]:
    """Positions with those of one image together: it is encoded once, and servers that keep the beginning of a prompt
    read it once. `digests` takes what was found out on the way, by the id of the image object."""
    groups: dict[str, list[int]] = {}
    for index, query in enumerate(queries):
        image, name = query.image, ""
        if image is not None and id(image) in digests:
            name = digests[id(image)]
        elif image is not None:
            with suppress(PfungstError):  # told when the image is needed
                name = digests[id(image)] = image.digest
        groups.setdefault(name, []).append(index)
    return [index for group in groups.values() for index in group]


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
