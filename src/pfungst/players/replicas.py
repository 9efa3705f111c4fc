"""One player in several copies, each in a process (or an actor of a Ray cluster) of its own.

    player = replicate("film", data, {}, ReplicaSettings(4))

A replicated player is simply a player: same name, same fingerprint, same answers. Its copies are fed from one queue.
A copy that dies, hangs or grows too large is replaced and its queries are tried again elsewhere; a query that costs
three copies their lives is given up, alone, with a sentence.
"""

from __future__ import annotations

import contextlib
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pfungst.core import Answer, PlayerDied, PlayerError, Query
from pfungst.core.errors import QueriesFailed
from pfungst.players.dispatch import by_image
from pfungst.players.replica_host import Described, Reply

AHEAD = 2
"""Batches that a copy holds: while one is answered and stored, the next is there already."""
UNTOUCHED = ""
"""How a batch fared whose copy died before it had begun with it."""
DEATHS = 3
"""Copies that a query may cost before it is given up."""
PATIENCE = 5 * DEATHS
"""Deaths in a row, without one answer in between, after which the player is considered down."""
START_SECONDS = 1800.0
"""How long a copy may take at least to load its model."""
STILLBORN = 3
"""Copies in a row that may die before they have told what they are."""


class Copy(Protocol):
    """One copy, somewhere."""

    def send(self, what: str, queries: Sequence[Query] = ()) -> None: ...
    def hear(self) -> tuple[str, Any] | None: ...
    def stop(self) -> None: ...


class Fleet(Protocol):
    """Where copies come from."""

    def start(self, slot: int) -> Any: ...
    def wait(self, copies: Sequence[Any]) -> None: ...
    def close(self) -> None: ...


@dataclass(eq=False)
class _Chunk:
    """Queries that are asked together."""

    call: object
    """Which call it belongs to: what comes of one that was given up is dropped."""
    places: list[int]
    deaths: int = 0
    what: str = "answer"


@dataclass(eq=False)
class _Slot:
    """A place for a copy: when one dies the next takes its place, and its GPU."""

    number: int
    copy: Copy
    ready: bool = False
    chunks: deque[_Chunk] = field(default_factory=deque)
    """What it has to do, in this order: it works on the first."""
    since: float = field(default_factory=time.monotonic)
    """When it began with the first."""


class ReplicatedPlayer:
    """Copies of one player that answer together."""

    def __new__(cls, *arguments: Any, **options: Any) -> ReplicatedPlayer:
        # A class of its own: which optional attributes there are is known only after a copy has told.
        return object.__new__(type(cls.__name__, (cls,), {}))

    def __init__(
        self,
        fleet: Fleet,
        count: int,
        *,
        timeout: float,
        memory: float | None = None,
    ) -> None:
        self._fleet, self._count, self._timeout = fleet, count, timeout
        self._memory = None if memory is None else memory * 2**30
        self._slots: list[_Slot] = []
        self._poison: set[str] = set()
        self._stillborn = self._deaths = self._in_a_row = self._renewed = 0
        self._told: dict[int, tuple[str, ...]] = {}
        self._end = weakref.finalize(self, _close, self._slots, fleet)
        self._described: Described | None = None
        self._start(0)
        self._wait_for_one()
        self.name: str = self._about.name
        self.fingerprint: str = self._about.fingerprint
        seen: dict[str, Any] = {name: property(_trait(name)) for name in self._about.traits}
        if self._about.looks:
            seen["look"] = _look
        for name, value in seen.items():
            setattr(type(self), name, value)

    @property
    def notes(self) -> Sequence[str]:
        """What the copies want to tell, and what became of them."""
        said = dict.fromkeys(note for _, notes in sorted(self._told.items()) for note in notes)
        if self._deaths:
            said[f"{self._deaths} copies of the player died and were replaced."] = None
        if self._renewed:
            said[f"{self._renewed} copies of the player grew too large and were replaced."] = None
        return tuple(said)

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        answers = dict(self.answer_iter(queries))
        return [answers[place] for place in range(len(queries))]

    def answer_iter(self, queries: Sequence[Query]) -> Iterator[tuple[int, Answer]]:
        for burst in self.answer_bursts(queries):
            yield from burst

    def answer_bursts(self, queries: Sequence[Query]) -> Iterator[list[tuple[int, Answer]]]:
        """Answers as they come; what failed is raised after the last of them."""
        problems: dict[int, str] = {}
        broken: set[str] = set()
        call = object()
        waiting = self._chunks(call, queries, problems)
        open_chunks = len(waiting)
        while open_chunks:
            self._feed(waiting, queries)
            for chunk, came in self._listen(call):
                open_chunks -= 1
                if isinstance(came, Reply):
                    broken |= came.broken
                    yield self._taken(chunk, came, problems)
                    continue
                again = self._after_death(chunk, came, queries, problems)
                waiting.extendleft(reversed(again))
                open_chunks += len(again)
        if problems:
            images = [place for place, sentence in problems.items() if sentence in broken]
            raise QueriesFailed(dict(sorted(problems.items())), images)

    def _chunks(self, call: object, queries: Sequence[Query], problems: dict[int, str]) -> deque[_Chunk]:
        """The queue. Queries about one image stand together, where the player does not care how they are batched."""
        # A batch decides the last bits of what a network computes: those that go in batches keep the batches that a
        # single copy would get.
        order = range(len(queries)) if self._about.in_order else by_image(queries, {})
        if self._poison:
            known = {place: queries[place].key(self.fingerprint) in self._poison for place in order}
            problems |= {place: _poisonous(self.name, queries[place]) for place in order if known[place]}
            order = [place for place in order if not known[place]]
        size = self._about.at_once
        return deque(_Chunk(call, list(order[start : start + size])) for start in range(0, len(order), size))

    def _feed(self, waiting: deque[_Chunk], queries: Sequence[Query]) -> None:
        """Give every copy something to do and something for after that, and start more while there is more to do."""
        for filled in range(AHEAD):
            for slot in self._slots:
                if waiting and slot.ready and len(slot.chunks) == filled:
                    chunk = waiting.popleft()
                    slot.since = slot.since if slot.chunks else time.monotonic()
                    slot.chunks.append(chunk)
                    slot.copy.send(chunk.what, [queries[place] for place in chunk.places])
        starting = sum(not slot.ready for slot in self._slots)
        while len(self._slots) < self._count and starting < len(waiting):
            self._start(len(self._slots))
            starting += 1

    def _listen(self, call: object) -> list[tuple[_Chunk, Any]]:
        """What came of the chunks under way: a reply or, where the copy died, how."""
        self._fleet.wait([slot.copy for slot in self._slots])
        came: list[tuple[_Chunk, Any]] = []
        for slot in list(self._slots):
            heard = slot.copy.hear()
            limit = self._timeout if slot.ready else max(self._timeout, START_SECONDS)
            if heard is None and (slot.chunks or not slot.ready) and time.monotonic() - slot.since > limit:
                heard = ("dead", f"it said nothing for {limit:g} s")
            if heard is None:
                continue
            what, content = heard
            if what == "ready":
                self._check_same(content)
                slot.ready, self._stillborn, self._described = True, 0, content
            elif what == "failed":
                raise PlayerError(str(content))
            elif what == "done":
                came.append((slot.chunks.popleft(), content))
                slot.since = time.monotonic()
                if isinstance(content, Reply):
                    self._told[slot.number] = content.notes
                    if self._memory is not None and content.memory > self._memory:
                        self._renewed += 1
                        self._replace(slot)
                        came += [(chunk, UNTOUCHED) for chunk in slot.chunks]
            else:
                self._bury(slot, str(content))
                came += [(chunk, UNTOUCHED if at else str(content)) for at, chunk in enumerate(slot.chunks)]
        return [(chunk, content) for chunk, content in came if chunk.call is call]

    def _check_same(self, about: Described) -> None:
        first = self._described
        if first is not None and first.fingerprint != about.fingerprint:
            raise PlayerError(
                f"The copies of {about.name} are not the same player: one has the fingerprint {first.fingerprint:.40}, "
                f"another {about.fingerprint:.40}. All machines need the same weights and versions."
            )

    def _taken(self, chunk: _Chunk, reply: Reply, problems: dict[int, str]) -> list[tuple[int, Answer]]:
        if reply.died:
            raise PlayerDied(reply.died)
        self._in_a_row = 0
        said = list(zip(chunk.places, reply.answers, strict=True))
        problems |= zip((place for place, answer in said if answer is None), reply.problems, strict=True)
        return [(place, answer) for place, answer in said if answer is not None]

    def _after_death(self, chunk: _Chunk, how: str, queries: Sequence[Query], problems: dict[int, str]) -> list[_Chunk]:
        """What is tried again: first all of it, in case it was not the queries; then each alone; then nothing."""
        if how == UNTOUCHED:
            return [chunk]
        chunk.deaths += 1
        if chunk.deaths == DEATHS - 1 and len(chunk.places) > 1:
            return [_Chunk(chunk.call, [place], chunk.deaths) for place in chunk.places]
        if chunk.deaths < DEATHS:
            return [chunk]
        (place,) = chunk.places
        self._poison.add(queries[place].key(self.fingerprint))
        problems[place] = _poisonous(self.name, queries[place], how)
        return []

    def _bury(self, slot: _Slot, how: str) -> None:
        self._deaths += slot.ready
        self._in_a_row += 1
        self._stillborn += not slot.ready
        name = getattr(self, "name", "The player")
        if self._stillborn >= STILLBORN:
            raise PlayerDied(f"{name} cannot be started: its copies die before they are ready ({how}).")
        if self._in_a_row > PATIENCE:
            raise PlayerDied(
                f"{name} is considered down: {self._in_a_row} of its copies died without an answer in between, the "
                f"last because: {how}. Its earlier answers are kept; run the same command again to resume."
            )
        self._replace(slot)

    def _replace(self, slot: _Slot) -> None:
        slot.copy.stop()
        self._slots[self._slots.index(slot)] = _Slot(slot.number, self._fleet.start(slot.number))

    def _start(self, number: int) -> None:
        self._slots.append(_Slot(number, self._fleet.start(number)))

    def _wait_for_one(self) -> None:
        while self._described is None:
            self._listen(self)

    @property
    def _about(self) -> Described:
        assert self._described is not None
        return self._described

    def close(self) -> None:
        """End all copies. Whoever forgets it ends them with the program."""
        self._end()


def _trait(name: str) -> Callable[[ReplicatedPlayer], Any]:
    return lambda player: player._about.traits[name]


def _look(player: ReplicatedPlayer, queries: Sequence[Query]) -> Mapping[str, Any]:
    """Where the player looks, as one of the copies says."""
    import torch

    call = object()
    waiting = deque([_Chunk(call, list(range(len(queries))), what="look")])
    while True:
        player._feed(waiting, queries)
        for _, came in player._listen(call):
            if isinstance(came, dict):
                return {name: torch.from_numpy(values) for name, values in came.items()}
            raise PlayerError(f"{player.name} could not say where it looks: {came}.")


def _poisonous(name: str, query: Query, how: str = "") -> str:
    because = f"; the last: {how}" if how else ""
    return (
        f"{name} was asked {query.question!r:.80}, and {DEATHS} of its copies died on it{because}. "
        "The question is given up."
    )


def _close(slots: list[_Slot], fleet: Fleet) -> None:
    while slots:
        slots.pop().copy.stop()
    fleet.close()


@contextlib.contextmanager
def closing(player: object) -> Iterator[None]:
    """End the copies of the player in the end, if it has any."""
    try:
        yield
    finally:
        if isinstance(player, ReplicatedPlayer):
            player.close()
