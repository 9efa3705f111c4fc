"""Who gets which item, and what they said. Everything that changes a study happens here, in one transaction each."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, and_, case, delete, exists, func, insert, literal, or_, select, update

from pfungst.core import PfungstError
from pfungst.core.files import storable
from pfungst.study.database import Database
from pfungst.study.items import CHECK, ITEM, TRAINING, Content, Item, is_right, read_value
from pfungst.study.schema import ITEM as ITEMS
from pfungst.study.schema import TURN, WORKER
from pfungst.study.settings import StudySettings

REMOVED = "removed"
"""Role of an item whose author was forgotten: nobody sees it and it counts nowhere, but to judge it was work."""
_PRIME = 1_000_003


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
    """Items that this worker could still get, at most."""
    training: int
    """Training items that are left."""
    checks: int
    passed: int


@dataclass(frozen=True)
class Book:
    """The study's book-keeping."""

    database: Database
    settings: StudySettings
    kind: Any
    clock: Callable[[], float] = time.time

    # Making a study

    def add(self, items: Iterable[Item]) -> int:
        with self.database.writing() as connection:
            return self._add(connection, items)

    def _add(self, connection: Connection, items: Iterable[Item]) -> int:
        rows = []
        first = (connection.execute(select(func.max(ITEMS.c.id))).scalar() or 0) + 1
        draws = np.random.default_rng([self.settings.seed, first])
        for item in items:
            rows.append(
                {
                    "name": storable(item.name), "role": item.role, "stage": item.stage, "author": item.author,
                    "condition": storable(item.condition), "source": storable(item.source),
                    "content": item.content.to_json(), "about": storable(json.dumps(dict(item.about))),
                    "gold": storable(json.dumps(dict(item.gold))), "answered": 0,
                    "wanted": self.settings.wanted if item.wanted is None else item.wanted,
                    "shuffle": int(draws.integers(1, _PRIME)),
                }
            )  # fmt: skip
        if rows:
            connection.execute(insert(ITEMS), rows)
        return len(rows)

    # Workers

    def join(self, code: str) -> Worker:
        """A new worker of this code; PfungstError where there is one already."""
        code = storable(code.strip())
        if not code or len(code) > 200:
            raise PfungstError("A worker's code has 1 to 200 characters.")
        with self.database.writing() as connection:
            if connection.execute(select(WORKER.c.id).where(WORKER.c.code == code)).first():
                raise PfungstError(f"There is a worker {code} already.")
            connection.execute(insert(WORKER).values(code=code, joined=self.clock()))
            return _worker(connection, WORKER.c.code == code)

    def worker(self, id_: int) -> Worker | None:
        with self.database.reading() as connection:
            row = connection.execute(select(WORKER).where(WORKER.c.id == id_)).first()
        return None if row is None else Worker(*row)

    def workers(self) -> list[Worker]:
        with self.database.reading() as connection:
            return [Worker(*row) for row in connection.execute(select(WORKER).order_by(WORKER.c.id))]

    def consent(self, worker: Worker) -> None:
        with self.database.writing() as connection:
            connection.execute(
                update(WORKER)
                .where(WORKER.c.id == worker.id, WORKER.c.consented.is_(None))
                .values(consented=self.clock())
            )

    def standing(self, worker: Worker) -> Standing:
        with self.database.reading() as connection:
            counts = _counts(connection, worker)
            rights = select(func.count(), func.coalesce(func.sum(TURN.c.right), 0)).join_from(TURN, ITEMS)
            seen, passed = connection.execute(
                rights.where(TURN.c.worker_id == worker.id, TURN.c.answered.is_not(None), ITEMS.c.role == CHECK)
            ).one()
            free = select(func.count(func.distinct(ITEMS.c.source))).where(
                self._open(worker, literal(0)), *_not_seen(worker)
            )
            left = connection.execute(free).scalar_one()
            mine = select(func.count()).join_from(TURN, ITEMS).where(
                TURN.c.worker_id == worker.id, TURN.c.answered.is_(None), ITEMS.c.role == ITEM
            )  # fmt: skip
            left += connection.execute(mine).scalar_one()
            training = select(func.count()).where(ITEMS.c.role == TRAINING)
            trained = counts.get(TRAINING, 0)
            training_left = connection.execute(training).scalar_one() - trained
        done = counts.get(ITEM, 0)
        most = self.settings.per_worker
        return Standing(done, min(left, max(0, most - done)) if most else left, training_left, seen, int(passed))

    # Turns

    def next(self, worker: Worker) -> Turn | None:
        """The item that the worker answers now: the one begun, or a new one; None where there is nothing left."""
        now = self.clock()
        until = now + 60 * self.settings.lease_minutes
        with self.database.reading() as connection:
            begun = self._begun(connection, worker, now)
            if begun is not None and begun[1] - now > 30 * self.settings.lease_minutes:
                return begun[0]
        with self.database.writing() as connection:
            begun = self._begun(connection, worker, now)
            if begun is not None:
                connection.execute(update(TURN).where(TURN.c.id == begun[0].id).values(leased_until=until))
                return begun[0]
            found = self._choose(connection, worker, now)
            if found is None:
                self._finish(connection, worker, now)
                return None
            item_id, source = found
            connection.execute(
                insert(TURN).values(
                    item_id=item_id, worker_id=worker.id, source=source, given=now, leased_until=until
                )
            )  # fmt: skip
            begun = self._begun(connection, worker, now)
            assert begun is not None
            return begun[0]

    def _begun(self, connection: Connection, worker: Worker, now: float) -> tuple[Turn, float] | None:
        """The turn without an answer, and how long it is leased. An item that others have completed is let go."""
        row = connection.execute(
            _turns(TURN.c.leased_until)
            .where(TURN.c.worker_id == worker.id, TURN.c.answered.is_(None), ITEMS.c.role != REMOVED)
            .where(or_(ITEMS.c.role != ITEM, TURN.c.leased_until > now, ITEMS.c.answered < ITEMS.c.wanted))
            .order_by(TURN.c.id)
        ).first()
        return None if row is None else (_turn(row), float(row.leased_until))

    def _choose(self, connection: Connection, worker: Worker, now: float) -> tuple[int, str] | None:
        """Training first; then items, with an attention check now and then."""
        unseen = _not_seen(worker)
        pick = select(ITEMS.c.id, ITEMS.c.source)
        training = connection.execute(pick.where(ITEMS.c.role == TRAINING, *unseen).order_by(ITEMS.c.id)).first()
        if training is not None:
            return training[0], training[1]
        counts = _counts(connection, worker)
        done, every = counts.get(ITEM, 0), self.settings.check_every
        if every and done // every > counts.get(CHECK, 0):
            check = connection.execute(pick.where(ITEMS.c.role == CHECK, *unseen).order_by(ITEMS.c.id)).first()
            if check is not None:
                return check[0], check[1]
        if self.settings.per_worker and done >= self.settings.per_worker:
            return None
        leased = (
            select(TURN.c.item_id, func.count().label("held"))
            .where(TURN.c.answered.is_(None), TURN.c.leased_until > now)
            .group_by(TURN.c.item_id)
            .subquery()
        )
        mine = (
            select(ITEMS.c.condition, func.count().label("had"))
            .join_from(TURN, ITEMS)
            .where(TURN.c.worker_id == worker.id)
            .group_by(ITEMS.c.condition)
            .subquery()
        )
        held = func.coalesce(leased.c.held, 0)
        found = connection.execute(
            pick.select_from(
                ITEMS.outerjoin(leased, leased.c.item_id == ITEMS.c.id).outerjoin(
                    mine, mine.c.condition == ITEMS.c.condition
                )
            )
            .where(self._open(worker, held), *unseen)
            # Later stages first, so that what was begun is finished; then where least is known; then the condition that
            # this worker had least; then by chance, another order for every worker.
            .order_by(
                ITEMS.c.stage.desc(),
                ITEMS.c.answered + held,
                func.coalesce(mine.c.had, 0),
                (ITEMS.c.shuffle * (worker.id % 9973 + 1)) % _PRIME,
                ITEMS.c.id,
            )
            .limit(1)
        ).first()
        return None if found is None else (found[0], found[1])

    def _open(self, worker: Worker, held: Any) -> Any:
        return and_(
            ITEMS.c.role == ITEM,
            ITEMS.c.answered + held < ITEMS.c.wanted,
            or_(ITEMS.c.author.is_(None), ITEMS.c.author != worker.id),
        )

    def _finish(self, connection: Connection, worker: Worker, now: float) -> None:
        if worker.finished is None and _counts(connection, worker).get(ITEM, 0):
            connection.execute(
                update(WORKER).where(WORKER.c.id == worker.id, WORKER.c.finished.is_(None)).values(finished=now)
            )

    def submit(
        self, worker: Worker, turn_id: int, given: Mapping[str, Any], active: float | None = None
    ) -> Saved | None:
        """Save an answer, once: a turn that has one keeps it. None where the turn is not this worker's.

        A late answer, after the lease, is taken too: the work was done.
        """
        now = self.clock()
        with self.database.writing() as connection:
            row = connection.execute(
                _turns(TURN.c.given, ITEMS.c.gold).where(TURN.c.id == turn_id, TURN.c.worker_id == worker.id)
            ).first()
            if row is None:
                return None
            turn = _turn(row)
            if turn.answered is not None:
                return Saved(turn, now=False)
            value = read_value(turn.content, given)
            self.kind.accept(turn.content, value)
            right = is_right(json.loads(row.gold), value)
            seconds = max(0.0, now - row.given)
            connection.execute(
                update(TURN).where(TURN.c.id == turn.id).values(
                    answered=now, value=storable(json.dumps(value)), right=None if right is None else int(right),
                    seconds=seconds, active=None if active is None else min(max(0.0, active), seconds),
                )
            )  # fmt: skip
            connection.execute(update(ITEMS).where(ITEMS.c.id == turn.item).values(answered=ITEMS.c.answered + 1))
            if turn.role == ITEM:
                self._follow(connection, turn.item, worker)
            return Saved(Turn(turn.id, turn.item, turn.role, turn.content, now, value, right), now=True)

    def _follow(self, connection: Connection, item_id: int, worker: Worker) -> None:
        """What the kind wants to ask next, now that this item has another answer."""
        item = connection.execute(select(ITEMS).where(ITEMS.c.id == item_id)).one()
        said = connection.execute(
            select(TURN.c.value).where(TURN.c.item_id == item_id, TURN.c.answered.is_not(None)).order_by(TURN.c.id)
        ).scalars()
        more: Sequence[Item] = self.kind.follow(
            dict(item._mapping), [json.loads(value) for value in said], worker.id, self.settings
        )
        known = set(
            connection.execute(select(ITEMS.c.name).where(ITEMS.c.name.in_([one.name for one in more]))).scalars()
        ) if more else set()  # fmt: skip
        self._add(connection, [one for one in more if one.name not in known])

    def turn(self, worker: Worker, turn_id: int) -> Turn | None:
        """A turn of this worker; None for those of others."""
        with self.database.reading() as connection:
            row = connection.execute(_turns().where(TURN.c.id == turn_id, TURN.c.worker_id == worker.id)).first()
        return None if row is None else _turn(row)

    def rest(self, worker: Worker) -> None:
        """Let others have what this worker has not answered; who comes back first answers it."""
        with self.database.writing() as connection:
            connection.execute(
                update(TURN).where(TURN.c.worker_id == worker.id, TURN.c.answered.is_(None)).values(leased_until=0.0)
            )

    def forget(self, code: str) -> int:
        """Delete a worker and all that they answered or wrote; returns how many answers that were."""
        with self.database.writing() as connection:
            worker = _worker(connection, WORKER.c.code == code)
            mine = select(TURN.c.item_id).where(TURN.c.worker_id == worker.id, TURN.c.answered.is_not(None))
            count = connection.execute(select(func.count()).select_from(mine.subquery())).scalar_one()
            connection.execute(
                update(ITEMS).where(ITEMS.c.id.in_(mine)).values(
                    answered=case((ITEMS.c.answered > 0, ITEMS.c.answered - 1), else_=0)
                )
            )  # fmt: skip
            blank = Content(()).to_json()
            connection.execute(
                update(ITEMS).where(ITEMS.c.author == worker.id).values(
                    content=blank, about="{}", gold="{}", author=None, role=REMOVED
                )
            )  # fmt: skip
            connection.execute(delete(TURN).where(TURN.c.worker_id == worker.id))
            connection.execute(delete(WORKER).where(WORKER.c.id == worker.id))
        self.database.checkpoint()
        return int(count)

    def answers(self) -> list[dict[str, Any]]:
        """Every answer, with its item and worker; what the results are made from."""
        with self.database.reading() as connection:
            rows = connection.execute(
                select(
                    TURN.c.id, ITEMS.c.id.label("item_id"), ITEMS.c.name.label("item"), ITEMS.c.role, ITEMS.c.stage,
                    ITEMS.c.condition, ITEMS.c.source, ITEMS.c.about, ITEMS.c.author, WORKER.c.code.label("worker"),
                    TURN.c.value, TURN.c.right, TURN.c.seconds, TURN.c.active, TURN.c.answered.label("at"),
                )
                .join_from(TURN, ITEMS).join(WORKER, WORKER.c.id == TURN.c.worker_id)
                .where(TURN.c.answered.is_not(None)).order_by(TURN.c.id)
            ).mappings()  # fmt: skip
            return [
                {**row, "about": json.loads(row["about"]), "value": json.loads(row["value"])} for row in rows
            ]  # fmt: skip

    def items(self) -> list[dict[str, Any]]:
        """Every item that counts."""
        with self.database.reading() as connection:
            rows = connection.execute(select(ITEMS).where(ITEMS.c.role == ITEM).order_by(ITEMS.c.id)).mappings()
            return [{**row, "about": json.loads(row["about"])} for row in rows]


def _worker(connection: Connection, which: Any) -> Worker:
    row = connection.execute(select(WORKER).where(which)).first()
    if row is None:
        raise PfungstError("There is no such worker. `pfungst study workers` lists them.")
    return Worker(*row)


def _turns(*more: Any) -> Any:
    return select(
        TURN.c.id, TURN.c.item_id, ITEMS.c.role, ITEMS.c.content, TURN.c.answered, TURN.c.value, TURN.c.right, *more
    ).join_from(TURN, ITEMS)


def _turn(row: Any) -> Turn:
    value = None if row.value is None else json.loads(row.value)
    right = None if row.right is None else bool(row.right)
    return Turn(row.id, row.item_id, row.role, Content.of(row.content), row.answered, value, right)


def _counts(connection: Connection, worker: Worker) -> dict[str, int]:
    """Answered turns of a worker, by role."""
    rows = connection.execute(
        select(ITEMS.c.role, func.count())
        .join_from(TURN, ITEMS)
        .where(TURN.c.worker_id == worker.id, TURN.c.answered.is_not(None))
        .group_by(ITEMS.c.role)
    )
    return {row[0]: row[1] for row in rows}


def _not_seen(worker: Worker) -> tuple[Any]:
    seen = TURN.alias("seen")
    return (~exists().where(seen.c.worker_id == worker.id, seen.c.source == ITEMS.c.source),)
