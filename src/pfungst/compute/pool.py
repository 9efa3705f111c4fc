"""Workers that hold something and do what they are sent: one supervisor, for processes of this machine and for Ray.

What a worker holds is made where the worker runs: a function that does shards (`shards.run_shards`), or a player
(`pfungst.players.replicate`). A worker that dies, hangs or is told to go is replaced. The task that it had begun
comes back as a `Death`; those that lay behind it are done by others. On a cluster the last words of a worker can be
lost with it: of several tasks nobody knows then which it was at, and each is done again with none behind it.
"""

from __future__ import annotations

import math
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from pfungst.core import PfungstError
from pfungst.core.code import describe

LOOK_SECONDS = 1.0
"""How often workers are looked after that say nothing."""
START_SECONDS = 1800.0
"""How long a worker may take at least to make what it holds, where there is a limit at all."""
STILLBORN = 3
"""Workers in a row that may die before they have told what they hold."""

T = TypeVar("T")


class ComputeError(PfungstError):
    """Work that cannot be started where it was asked to run."""


class Unmade(ComputeError):
    """What the workers should hold cannot be made, for a reason that holds for all of them."""


class Stillborn(ComputeError):
    """The workers die before they have told what they hold; the text says how the last did."""


@dataclass(frozen=True, slots=True)
class Death:
    """What came of a task whose worker died while it was at it."""

    how: str


class Held(Protocol):
    """What a worker holds."""

    def about(self) -> Any:
        """What must be known of it outside of the worker."""
        ...

    def do(self, *content: Any) -> Any: ...


class Worker(Protocol):
    """One worker, seen from outside."""

    def send(self, content: Sequence[Any]) -> None:
        """Something to do; it does one thing after the other."""
        ...

    def hear(self) -> tuple[str, Any] | None:
        """What it says: `ready` with what it holds is about, `unmade` with the reason, `done` with the outcome, `dead`
        with how it died, `lost` where the machine it ran on is gone; None: nothing."""
        ...

    def stop(self) -> None: ...


class Workers(Protocol):
    """Where workers come from."""

    files: bool
    """They see the files of this process."""
    heard: bool
    """What a worker says before it dies is heard: it died at the first task that it has not called done."""

    def start(self, number: int) -> Worker: ...
    def wait(self, workers: Sequence[Any]) -> None:
        """Until one of them may have something to say."""
        ...

    def close(self) -> None: ...


def begin(make: Callable[[], Held]) -> tuple[Held | None, tuple[str, Any]]:
    """In the worker: what it holds, and what it says first."""
    try:
        held = make()
        return held, ("ready", held.about())
    except PfungstError as error:
        return None, ("unmade", str(error))
    except Exception as error:
        return None, ("unmade", describe(error))


@dataclass(eq=False)
class _Slot:
    """A place for a worker: when one dies the next takes its place, and its GPU."""

    number: int
    worker: Worker
    ready: bool = False
    tasks: deque[tuple[int, Any]] = field(default_factory=deque)
    """What it has to do, in this order, each with the number of its run: it works on the first."""
    alone: bool = False
    """Nothing may lie behind what it does."""
    since: float = field(default_factory=time.monotonic)
    """When it began with the first."""


class Pool(Generic[T]):
    """Workers that share tasks. The first starts at once when somebody asks what it holds, the others when there is
    something to do for them.

    count : workers at most
    ahead : tasks that a worker holds; with 2 the next is there while one is done
    timeout : seconds without a word after which a worker that is at a task is replaced
    welcome : called with what each worker says it holds
    """

    def __init__(
        self,
        workers: Workers,
        count: int,
        *,
        ahead: int = 1,
        timeout: float = math.inf,
        welcome: Callable[[Any], None] = lambda about: None,
    ) -> None:
        self._workers, self._count, self._ahead, self._timeout = workers, count, ahead, timeout
        self._welcome = welcome
        self._slots: list[_Slot] = []
        self._run = self._stillborn = 0
        self.waiting: deque[T] = deque()
        """Tasks of this run that no worker has; more may be added in between."""
        self.suspects: deque[T] = deque()
        """Those of them on which a worker may have died: done first, each with none behind it."""
        self.deaths: int = 0
        """Workers that were ready and died."""
        self.deaths_in_a_row: int = 0
        """Of any kind, without a task done in between."""
        self.close: Callable[[], object] = weakref.finalize(self, _close, self._slots, workers)
        """End all workers. Whoever forgets it ends them with the program."""

    def start_one(self) -> None:
        """Return when a worker has told what it holds."""
        self._start()
        while not any(slot.ready for slot in self._slots):
            self._listen()

    def run(self, tasks: Iterable[T], message: Callable[[T], Sequence[Any]]) -> Iterator[tuple[int, T, Any]]:
        """Number of the worker, task and outcome, as they come; the outcome is what the worker said, or a `Death`.

        `message` makes what is sent for a task. What is left of an earlier run that nobody reads any more is dropped.
        """
        self._run = run = self._run + 1
        self.waiting, self.suspects = waiting, suspects = deque(tasks), deque[T]()
        while waiting or suspects or any(of == run for slot in self._slots for of, _ in slot.tasks):
            self._feed(message)
            for number, of, task, outcome in self._listen():
                if of == run:
                    yield number, task, outcome

    def renew(self, number: int) -> None:
        """Replace a worker between two tasks."""
        self._replace(next(slot for slot in self._slots if slot.number == number), self.waiting)

    def _feed(self, message: Callable[[T], Sequence[Any]]) -> None:
        """Give every worker something to do, and start more while there is more to do."""
        for filled in range(self._ahead):
            for slot in self._slots:
                if slot.ready and not slot.alone and len(slot.tasks) == filled:
                    slot.alone = bool(self.suspects) and not filled
                    queue = self.suspects if slot.alone else self.waiting
                    if queue:
                        self._give(slot, queue.popleft(), message)
        starting = sum(not slot.ready for slot in self._slots)
        while len(self._slots) < self._count and starting < len(self.waiting) + len(self.suspects):
            self._start()
            starting += 1

    def _give(self, slot: _Slot, task: T, message: Callable[[T], Sequence[Any]]) -> None:
        slot.since = slot.since if slot.tasks else time.monotonic()
        slot.tasks.append((self._run, task))
        slot.worker.send(message(task))

    def _listen(self) -> list[tuple[int, int, T, Any]]:
        """Worker, run, task and outcome of the tasks that came to an end."""
        self._workers.wait([slot.worker for slot in self._slots])
        came: list[tuple[int, int, T, Any]] = []
        for slot in list(self._slots):
            heard = slot.worker.hear() or self._silence(slot)
            if heard is None:
                continue
            what, content = heard
            if what == "ready":
                self._welcome(content)
                slot.ready, self._stillborn, slot.since = True, 0, time.monotonic()
            elif what == "unmade":
                raise Unmade(str(content))
            elif what == "done":
                came.append((slot.number, *slot.tasks.popleft(), content))
                slot.since, slot.alone, self.deaths_in_a_row = time.monotonic(), False, 0
            elif what == "lost":
                self._replace(slot, self.waiting)
            else:
                certain = self._workers.heard or what == "silent" or len(slot.tasks) == 1
                if slot.tasks and certain:
                    came.append((slot.number, *slot.tasks.popleft(), Death(content)))
                self._bury(slot, content, self.waiting if certain else self.suspects)
        return came

    def _silence(self, slot: _Slot) -> tuple[str, str] | None:
        limit = self._timeout if slot.ready else max(self._timeout, START_SECONDS)
        if (slot.tasks or not slot.ready) and time.monotonic() - slot.since > limit:
            return "silent", f"it said nothing for {limit:g} s"
        return None

    def _bury(self, slot: _Slot, how: str, queue: deque[T]) -> None:
        self.deaths += slot.ready
        self.deaths_in_a_row += 1
        self._stillborn = 0 if slot.ready else self._stillborn + 1
        if self._stillborn >= STILLBORN:
            raise Stillborn(how)
        self._replace(slot, queue)

    def _replace(self, slot: _Slot, queue: deque[T]) -> None:
        """queue: where the tasks go that it has left."""
        queue.extendleft(task for of, task in reversed(slot.tasks) if of == self._run)
        slot.worker.stop()
        self._slots[self._slots.index(slot)] = _Slot(slot.number, self._workers.start(slot.number))

    def _start(self) -> None:
        number = len(self._slots)
        self._slots.append(_Slot(number, self._workers.start(number)))


def _close(slots: list[_Slot], workers: Workers) -> None:
    while slots:
        slots.pop().worker.stop()
    workers.close()
