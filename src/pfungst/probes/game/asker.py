"""Asking the player: nothing twice, nothing lost, and no crash when it fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from pfungst.core import Answer, PfungstError, Player, PlayerError, Query
from pfungst.core.asking import ask_all
from pfungst.core.store import AnswerStore

PATIENCE = 5
"""Failures in a row after which a player is taken for dead."""


class PlayerDied(PlayerError):
    """A player that fails on every question. What it said before is kept."""


class Asking(Protocol):
    """What a mini-game needs to put questions; `Asker` is the usual one."""

    reads_scenes: bool
    fingerprint: str
    """Of the player; empty where it is not known."""
    asked: int
    recalled: int
    failed: int
    last_error: str

    def ask(self, queries: Sequence[Query]) -> list[Answer | None]: ...


class Asker:
    """Puts queries to a player through an answer store.

    A query whose answer is in the store is not asked. Where a batch fails its queries are asked one by one; one that
    fails alone gets no answer (None) and is counted, and after `patience` of these in a row PlayerDied is raised.
    """

    def __init__(
        self,
        player: Player,
        store: AnswerStore | None = None,
        *,
        patience: int = PATIENCE,
        on_asked: Callable[[int], None] | None = None,
    ) -> None:
        self.player = player
        self.reads_scenes = bool(getattr(player, "reads_scenes", False))
        self.fingerprint = str(player.fingerprint)
        self.asked = 0
        """Answers the player gave."""
        self.recalled = 0
        """Answers that came from the store."""
        self.failed = 0
        """Queries the player had no answer to."""
        self.last_error = ""
        self._store = store
        self._patience = patience
        self._failures_in_a_row = 0
        self._on_asked = on_asked

    def still_alive(self) -> None:
        """Raise PlayerDied where the last thing the player did was to fail."""
        if self._failures_in_a_row:
            raise self._death()

    def ask(self, queries: Sequence[Query]) -> list[Answer | None]:
        """One answer a query, in order; None where the player failed."""
        if self._store is None:
            # Without a store the queries need no names, and naming is what costs most for a quick player.
            keys = [str(number) for number in range(len(queries))]
            known: dict[str, Answer] = {}
        else:
            keys = [query.key(self.player.fingerprint) for query in queries]
            known = self._store.known(keys)
            self.recalled += len(known)
        open_queries = {key: query for key, query in zip(keys, queries, strict=True) if key not in known}
        self._put(list(open_queries.items()), known)
        return [known.get(key) for key in keys]

    def _put(self, items: list[tuple[str, Query]], known: dict[str, Answer]) -> None:
        try:
            for batch in ask_all(self.player, items):
                if self._store is not None:
                    self._store.add(self.player.fingerprint, batch)
                known.update((key, answer) for key, _, answer in batch)
                self.asked += len(batch)
                self._failures_in_a_row = 0
                if self._on_asked is not None:
                    self._on_asked(len(batch))
        except PfungstError as error:
            self.last_error = str(error)
            if len(items) == 1:
                self._give_up()
                return
            for item in items:
                if item[0] not in known:
                    self._put([item], known)

    def _give_up(self) -> None:
        self.failed += 1
        self._failures_in_a_row += 1
        if self._failures_in_a_row >= self._patience:
            raise self._death()

    def _death(self) -> PlayerDied:
        times = self._failures_in_a_row
        return PlayerDied(
            f"{self.player.name} failed on the last {times} question{'s' * (times > 1)} and is taken for dead "
            f"({self.last_error}) What it answered before is kept; run the same command again to go on."
        )
