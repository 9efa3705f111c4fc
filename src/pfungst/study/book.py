"""Who gets which item, and what they said. Everything that changes a study happens here, in one transaction each."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import Connection

from pfungst.core import PfungstError
from pfungst.core.files import storable
from pfungst.study import schema
from pfungst.study.database import Database
from pfungst.study.items import CHECK, ITEM, TRAINING, Content, Item, is_right, read_value
from pfungst.study.settings import StudySettings

if TYPE_CHECKING:
    from pfungst.study.kinds import Kind

_SIZES_KEPT = 10.0
"""Seconds for which the number of items is remembered: only a progress bar needs it."""


@dataclass(frozen=True)
class Worker:
    """Somebody who takes part, known by a code alone."""

    id: int
    code: str
    joined: float
    consented: float | None
    finished: float | None


@dataclass(frozen=True)
class Turn:
    """An item given to a worker."""

    id: int
    item: int
    role: str
    content: Content
    answered: float | None
    value: Mapping[str, str] | None
    right: bool | None


@dataclass(frozen=True)
class Saved:
    """What became of a submission."""

    turn: Turn
    now: bool
    """False: the turn had an answer already, and that one stays."""


@dataclass(frozen=True)
class Standing:
    """How far a worker is."""

    answered: int
    left: int
    """Items that this worker could still get, at most: others may be quicker."""
    training: int
    """Training items that are left."""


@dataclass(frozen=True)
class Book:
    """The study's book-keeping."""

    database: Database
    settings: StudySettings
    kind: Kind
    clock: Callable[[], float] = time.time
    _sizes: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    # Making a study

    def add(self, items: Iterable[Item]) -> int:
        return self.database.write(lambda connection: self._add(connection, items))

    def _add(self, connection: Connection, items: Iterable[Item]) -> int:
        draws = np.random.default_rng([self.settings.seed, connection.execute(schema.LAST_ITEM).scalar() or 0])
        rows = [
            {
                "name": storable(item.name), "role": item.role, "stage": item.stage, "author": item.author,
                "condition": storable(item.condition), "source": storable(item.source),
                "content": item.content.to_json(), "about": storable(json.dumps(dict(item.about))),
                "gold": storable(json.dumps(dict(item.gold))), "answered": 0,
                "wanted": self.settings.wanted if item.wanted is None else item.wanted,
                "shuffle": int(draws.integers(schema.SHUFFLED)),
            }
            for item in items
        ]  # fmt: skip
        if rows:
            connection.execute(schema.ADD, rows)
        return len(rows)

    # Workers

    def join(self, code: str) -> Worker:
        """A new worker of this code; PfungstError where there is one already."""
        code = storable(code.strip())
        if not code or len(code) > 200 or "\0" in code:
            raise PfungstError("A worker's code has 1 to 200 characters.")

        def join(connection: Connection) -> Worker:
            if connection.execute(schema.WORKER_OF_CODE, {"code": code}).first():
                raise PfungstError(f"There is already a worker {code}.")
            connection.execute(schema.JOIN, {"code": code, "joined": self.clock()})
            return Worker(*connection.execute(schema.WORKER_OF_CODE, {"code": code}).one())

        return self.database.write(join)

    def worker(self, id_: int) -> Worker | None:
        with self.database.reading() as connection:
            row = connection.execute(schema.WORKER_OF_ID, {"worker": id_}).first()
        return None if row is None else Worker(*row)

    def workers(self) -> list[Worker]:
        with self.database.reading() as connection:
            return [Worker(*row) for row in connection.execute(schema.ALL_WORKERS)]

    def consent(self, worker: Worker) -> None:
        given = {"worker": worker.id, "now": self.clock()}
        self.database.write(lambda connection: connection.execute(schema.CONSENT, given))

    def standing(self, worker: Worker) -> Standing:
        with self.database.reading() as connection:
            counts, sizes = _counts(connection, worker), self._known_sizes(connection)
        done, most = counts.get(ITEM, 0), self.settings.per_worker
        items = min(most, sizes.get(ITEM, 0)) if most else sizes.get(ITEM, 0)
        return Standing(done, max(0, items - done), sizes.get(TRAINING, 0) - counts.get(TRAINING, 0))

    def _known_sizes(self, connection: Connection) -> dict[str, int]:
        known: tuple[float, dict[str, int]] = self._sizes.get("known", (0.0, {}))
        at, sizes = known
        if time.monotonic() - at > _SIZES_KEPT or not sizes:
            sizes = {row[0]: row[1] for row in connection.execute(schema.SIZES)}
            self._sizes["known"] = (time.monotonic(), sizes)
        return sizes

    # Turns

    def next(self, worker: Worker) -> Turn | None:
        """The item that the worker answers now: the one begun, or a new one; None where there is nothing left."""
        now, lease = self.clock(), 60 * self.settings.lease_minutes
        with self.database.reading() as connection:
            begun = _begun(connection, worker, now)
            if begun is not None and begun[1] - now > lease / 2:
                return begun[0]

        def give(connection: Connection) -> Turn | None:
            begun = _begun(connection, worker, now)
            if begun is not None:
                given = {"turn": begun[0].id, "until": now + lease}
                if begun[1] <= now:
                    connection.execute(schema.RESUME, {**given, "now": now})
                else:
                    connection.execute(schema.LEASE, given)
                return begun[0]
            found = self._choose(connection, worker, now)
            if found is None:
                if worker.finished is None and _counts(connection, worker).get(ITEM, 0):
                    connection.execute(schema.FINISH, {"worker": worker.id, "now": now})
                return None
            turn = {"item_id": found[0], "worker_id": worker.id, "source": found[1], "given": now}
            connection.execute(schema.GIVE, {**turn, "leased_until": now + lease})
            begun = _begun(connection, worker, now)
            assert begun is not None
            return begun[0]

        return self.database.write(give)

    def _choose(self, connection: Connection, worker: Worker, now: float) -> tuple[int, str] | None:
        """Training first; then items, with an attention check now and then."""
        who = {"worker": worker.id}
        training = connection.execute(schema.NEXT_TRAINING, who).first()
        if training is not None:
            # Nobody practises for nothing: where no item is left, the page says so at once.
            left = self._choose_item(connection, worker, now, 0) is not None
            return (training[0], training[1]) if left else None
        counts = _counts(connection, worker)
        done, every = counts.get(ITEM, 0), self.settings.check_every
        if every and done // every > counts.get(CHECK, 0):
            check = connection.execute(schema.NEXT_CHECK, who).first()
            if check is not None:
                return check[0], check[1]
        if self.settings.per_worker and done >= self.settings.per_worker:
            return None
        return self._choose_item(connection, worker, now, done)

    def _choose_item(self, connection: Connection, worker: Worker, now: float, done: int) -> tuple[int, str] | None:
        """An item of which least is known, counting those who have it before them; among such, of the condition that
        this worker had least; among such, by chance."""
        who = {"worker": worker.id}
        held = {row[0]: row[1] for row in connection.execute(schema.LEASED, {"now": now})}
        had = {row[0]: row[1] for row in connection.execute(schema.CONDITIONS_HAD, who)}
        # Another place to begin for every worker and turn, so that many workers do not meet at the same items.
        start = int(np.random.default_rng([self.settings.seed, worker.id, done]).integers(schema.SHUFFLED))
        best: tuple[tuple[int, int], tuple[int, str]] | None = None
        stage = None
        for level in connection.execute(schema.LEVELS).all():
            if best is not None and (level.stage != stage or best[0][0] <= level.answered):
                break
            stage = level.stage
            given = {**who, "stage": level.stage, "level": level.answered, "start": start}
            for query in schema.CANDIDATES:
                rows = connection.execute(query, given).all()
                for row in rows:
                    known = level.answered + held.get(row.id, 0)
                    rank = (known, had.get(row.condition, 0))
                    if known < row.wanted and (best is None or rank < best[0]):
                        best = (rank, (row.id, row.source))
                if len(rows) == schema.WINDOW and best is not None:
                    break
        return None if best is None else best[1]

    def submit(
        self, worker: Worker, turn_id: int, given: Mapping[str, Any], active: float | None = None
    ) -> Saved | None:
        """Save an answer, once: a turn that has one keeps it. None where the turn is not this worker's.

        A late answer, after the lease, is taken too: the work was done.
        """
        now = self.clock()

        def save(connection: Connection) -> Saved | None:
            row = connection.execute(schema.TURN_OF, {"turn": turn_id, "worker": worker.id}).first()
            if row is None or row.role == schema.REMOVED:
                return None
            turn = _turn(row)
            if turn.answered is not None:
                return Saved(turn, now=False)
            value = read_value(turn.content, given)
            self.kind.accept(turn.content, value)
            right = is_right(json.loads(row.gold), value)
            seconds = max(0.0, now - row.given)
            said = {
                "turn": turn.id, "now": now, "said": storable(json.dumps(value)), "took": seconds,
                "is_right": None if right is None else int(right),
                "in_front": None if active is None else min(max(0.0, active), seconds),
            }  # fmt: skip
            connection.execute(schema.ANSWER, said)
            connection.execute(schema.COUNT_ANSWER, {"item": turn.item})
            if turn.role == ITEM:
                self._follow(connection, turn.item, worker)
            return Saved(Turn(turn.id, turn.item, turn.role, turn.content, now, value, right), now=True)

        return self.database.write(save)

    def _follow(self, connection: Connection, item_id: int, worker: Worker) -> None:
        """What the kind wants to ask next, now that this item has another answer."""
        if not self.kind.follows:
            return
        item = connection.execute(schema.ITEM_OF, {"item": item_id}).one()
        said = [json.loads(value) for value in connection.execute(schema.SAID_ABOUT, {"item": item_id}).scalars()]
        more = self.kind.follow(dict(item._mapping), said, worker.id, self.settings)
        if more:
            known = set(connection.execute(schema.NAMES_AMONG, {"names": [one.name for one in more]}).scalars())
            self._add(connection, [one for one in more if one.name not in known])

    def turn(self, worker: Worker, turn_id: int) -> Turn | None:
        """A turn of this worker; None for those of others."""
        with self.database.reading() as connection:
            row = connection.execute(schema.TURN_OF, {"turn": turn_id, "worker": worker.id}).first()
        return None if row is None else _turn(row)

    def rest(self, worker: Worker) -> None:
        """Let others have what this worker has not answered; who comes back first answers it."""
        self.database.write(lambda connection: connection.execute(schema.REST, {"worker": worker.id}))

    def forget(self, code: str) -> int:
        """Delete a worker and all that they answered or wrote; returns how many answers that were."""

        def forget(connection: Connection) -> int:
            row = connection.execute(schema.WORKER_OF_CODE, {"code": code}).first()
            if row is None:
                raise PfungstError(f"There is no such worker, {code}. `pfungst study workers` lists them.")
            count = int(connection.execute(schema.COUNT_OF, {"worker": row.id}).scalar_one())
            for statement in schema.FORGET:
                connection.execute(statement, {"worker": row.id, "blank": Content(()).to_json()})
            return count

        count = self.database.write(forget)
        self.database.checkpoint()
        return count

    # Reading

    def answers(self) -> list[dict[str, Any]]:
        """Every answer, with its item and worker; what the results are made from."""
        with self.database.reading() as connection:
            rows = connection.execute(schema.ALL_ANSWERS).mappings()
            return [{**row, "about": json.loads(row["about"]), "value": json.loads(row["value"])} for row in rows]

    def items(self) -> list[dict[str, Any]]:
        """Every item that counts."""
        with self.database.reading() as connection:
            rows = connection.execute(schema.ALL_ITEMS).mappings()
            return [{**row, "about": json.loads(row["about"])} for row in rows]


def _begun(connection: Connection, worker: Worker, now: float) -> tuple[Turn, float] | None:
    """The turn without an answer, and how long it is leased."""
    row = connection.execute(schema.BEGUN, {"worker": worker.id, "now": now}).first()
    return None if row is None else (_turn(row), float(row.leased_until))


def _counts(connection: Connection, worker: Worker) -> dict[str, int]:
    """Answered turns of a worker, by role."""
    return {row[0]: row[1] for row in connection.execute(schema.COUNTS, {"worker": worker.id})}


def _turn(row: Any) -> Turn:
    value = None if row.value is None else json.loads(row.value)
    right = None if row.right is None else bool(row.right)
    return Turn(row.id, row.item_id, row.role, Content.of(row.content), row.answered, value, right)
