"""Where visitors ask: the players they may choose, and what these said."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from pfungst.core import Answer, Asker, Dataset, Example, PfungstError, Player, Query
from pfungst.core.scoring import read_as
from pfungst.core.types import Matcher
from pfungst.data import load
from pfungst.players import resolve
from pfungst.scores.matchers import get_matcher
from pfungst.web.security import Refused
from pfungst.web.settings import WebSettings

_REMEMBERED = 5000


@dataclass
class Seat:
    """A player at the desk. Models are asked by one visitor at a time."""

    spec: str
    player: Player
    asker: Asker
    matcher: Matcher | None
    """Reads its replies; None where these are the answers."""
    lock: threading.Lock = field(default_factory=threading.Lock)


class Desk:
    """Players by their specs; each is made when it is first asked."""

    def __init__(self, settings: WebSettings) -> None:
        self.settings = settings
        self._lock = threading.Lock()
        self.probing = threading.Lock()
        """Held while a probe makes its variants: what it keeps in the cache is written by one at a time."""
        self._making: dict[tuple[str, str], threading.Lock] = {}
        self._seats: dict[tuple[str, str], Seat] = {}
        self._said: OrderedDict[str, Answer] = OrderedDict()
        self._data: Dataset | None = None

    @property
    def data(self) -> Dataset:
        """The data set of the game and of the questions."""
        with self._lock:
            if self._data is None:
                self._data = load(self.settings.data)
            return self._data

    def seat(self, spec: str, data: Dataset) -> Seat:
        """The player of this spec: one of those the server was started with, no other."""
        if spec not in self.settings.players:
            raise Refused(400, "This player is not offered here. Start the server with --player to add it.")
        key = (spec, data.fingerprint or data.name)
        with self._lock:
            lock = self._making.setdefault(key, threading.Lock())
        with lock:
            if key not in self._seats:
                player = resolve(spec, data=data.whole)
                reading = player.matcher
                matcher = get_matcher(reading) if reading else None
                self._seats[key] = Seat(spec, player, Asker(player), matcher)
            return self._seats[key]

    def answers(self, seat: Seat, queries: Sequence[Query], example_id: str = "") -> list[Answer]:
        """What the player says, read by its matcher; remembered, so that what is saved is what was seen."""
        seen = [seat.asker.visible(query, example_id) for query in queries]
        keys = [query.key(seat.asker.fingerprint) for query in seen]
        with self._lock:
            known = {key: self._said[key] for key in keys if key in self._said}
        missing = {key: query for key, query in zip(keys, seen, strict=True) if key not in known}
        if missing:
            with seat.lock:
                said = seat.asker.answers(list(missing.values()))
            known.update(zip(missing, said, strict=True))
            with self._lock:
                for key in missing:
                    self._said[key] = known[key]
                while len(self._said) > _REMEMBERED:
                    self._said.popitem(last=False)
        return [_read(seat, known[key], query) for key, query in zip(keys, queries, strict=True)]


def _read(seat: Seat, answer: Answer, query: Query) -> Answer:
    """The answer in a reply, as an exam reads it."""
    if seat.matcher is None or answer.scores is not None:
        return answer
    return read_as(answer, seat.matcher(answer.reply, query.choices, ""))


def find_example(data: Dataset, example_id: str) -> Example:
    """The example of this id."""
    for example in data:
        if example.id == example_id:
            return example
    raise PfungstError(f"The data set {data.name} has no example with this id.")
