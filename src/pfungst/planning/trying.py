"""Trial queries: a few of those that an exam would ask, asked now, to measure what one takes."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from pfungst.core import Answer, Asker, PfungstError, Player, Query
from pfungst.core.estimate import size_of
from pfungst.core.lock import locked
from pfungst.core.store import AnswerStore

TRIAL = 20
"""Queries that `pfungst plan` asks."""
WARM_UP = 4
"""Of these, not measured: the first queries of a model load and compile what the others use."""
SAMPLE = 400
"""Queries whose size in the answer store is measured."""

_WANTED: ContextVar[int] = ContextVar("trial_queries", default=0)


@contextmanager
def trying(queries: int = TRIAL) -> Iterator[None]:
    """Inside it, plans ask so many trial queries; outside they ask nobody."""
    token = _WANTED.set(queries)
    try:
        yield
    finally:
        _WANTED.reset(token)


def trials_wanted() -> int:
    """How many trial queries plans may ask here."""
    return _WANTED.get()


class Sample:
    """Some of the queries that go by, each as likely as any other, always the same ones."""

    def __init__(self, size: int = SAMPLE) -> None:
        self._size = size
        self._rng = random.Random(0)
        self._seen = 0
        self.queries: dict[str, Query] = {}

    def add(self, key: str, query: Query) -> None:
        self._seen += 1
        if len(self.queries) < self._size:
            self.queries[key] = query
        elif (place := self._rng.randrange(self._seen)) < self._size:
            del self.queries[list(self.queries)[place]]
            self.queries[key] = query


@dataclass(frozen=True)
class Trial:
    """What trial queries took."""

    asked: int
    """Answers that are stored now."""
    seconds: float | None
    """A query, with as many at once as the exam would ask; None where nothing could be measured."""
    problem: str = ""
    """Why the player did not answer."""


def ask_some(player: Player, run: Path, sample: Sample, count: int, blind: bool) -> Trial:
    """Ask so many queries of the sample, through the run's own store: the exam does not ask them again."""
    chosen = list(sample.queries.items())
    random.Random(1).shuffle(chosen)
    chosen = chosen[:count]
    if not chosen:
        return Trial(0, None)
    run.mkdir(parents=True, exist_ok=True)
    with locked(run), AnswerStore(run / "answers.sqlite") as store:
        asker = Asker(player, store)
        asker.blind = blind
        try:
            first = min(WARM_UP, len(chosen) - 1)
            asker.fill(dict(chosen[:first]))
            started = perf_counter()
            asker.fill(dict(chosen[first:]))
            return Trial(asker.asked, (perf_counter() - started) / (len(chosen) - first))
        except PfungstError as error:
            return Trial(asker.asked, None, str(error))


def stored_bytes(player: Player, sample: Sample, answer: Answer) -> float:
    """Bytes of a query and its answer in the store: measured by writing the sample to one."""
    if not sample.queries:
        return 0.0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with AnswerStore(folder / "answers.sqlite") as store:
            store.add("", [])
        empty = size_of(folder)
        with AnswerStore(folder / "answers.sqlite") as store:
            store.add(str(player.fingerprint), [(key, query, answer) for key, query in sample.queries.items()])
        return max(0, size_of(folder) - empty) / len(sample.queries)
