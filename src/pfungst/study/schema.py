"""The tables of a study, and the statements of its book, built once: to build one takes longer than to run it.

A change of the tables is another SCHEMA: an older database is then refused with a sentence. Times are seconds since
1970. `turn` is one item given to one worker: first without an answer and with a lease, then with its answer. A unique
constraint on it is what a study rests on: nobody gets two items of one source.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    BindParameter,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from pfungst.study.items import CHECK, ITEM, TRAINING

METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

WORKER = Table(
    "worker", METADATA,
    Column("id", Integer, primary_key=True),
    Column("code", String(200), nullable=False, unique=True),
    Column("joined", Double, nullable=False),
    Column("consented", Double),
    Column("finished", Double),
    sqlite_autoincrement=True,  # a number is never given twice: links of forgotten workers stay dead
)  # fmt: skip

ITEMS = Table(
    "item", METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("role", String(20), nullable=False),
    Column("stage", Integer, nullable=False),
    Column("condition", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("about", Text, nullable=False),
    Column("gold", Text, nullable=False),
    Column("wanted", Integer, nullable=False),
    Column("answered", Integer, nullable=False),
    Column("author", Integer, ForeignKey("worker.id")),
    Column("shuffle", BigInteger, nullable=False),
    Index(None, "role", "stage", "answered", "shuffle"),
)  # fmt: skip
"""`answered` counts the turns with an answer, so that the next item is found without counting all of them.
`shuffle` is a random number: items are looked through in its order."""

TURN = Table(
    "turn", METADATA,
    Column("id", Integer, primary_key=True),
    Column("item_id", Integer, ForeignKey("item.id"), nullable=False),
    Column("worker_id", Integer, ForeignKey("worker.id"), nullable=False),
    Column("source", Text, nullable=False),
    Column("given", Double, nullable=False),
    Column("leased_until", Double, nullable=False),
    Column("answered", Double),
    Column("value", Text),
    Column("right", Integer),
    Column("seconds", Double),
    Column("active", Double),
    UniqueConstraint("worker_id", "source"),
    Index(None, "item_id"),
    Index(None, "answered", "leased_until"),
    sqlite_autoincrement=True,  # a late answer to a forgotten turn must not become the answer to another
)  # fmt: skip
"""`seconds` from shown to answered, `active` those of them in which the page was in front, as the browser says."""

SCHEMA = "0001"
VERSION = Table("alembic_version", METADATA, Column("version_num", String(32), primary_key=True))
"""One row, SCHEMA. The table has the name that it has in the databases of earlier versions."""


REMOVED = "removed"
"""Role of an item whose author was forgotten: nobody sees it and it counts nowhere, but to judge it was work."""
SHUFFLED = 1_000_000
"""Items have a random number below this."""
WINDOW = 40
"""Items that are compared before one is given."""

_worker: BindParameter[Any] = bindparam("worker")
_now: BindParameter[Any] = bindparam("now")
_seen = TURN.alias("seen")
_unseen = ~exists().where(_seen.c.worker_id == _worker, _seen.c.source == ITEMS.c.source)
_turn_columns = (
    TURN.c.id, TURN.c.item_id, ITEMS.c.role, ITEMS.c.content, TURN.c.answered, TURN.c.value, TURN.c.right,
    TURN.c.given, TURN.c.leased_until, ITEMS.c.gold,
)  # fmt: skip
_turns = select(*_turn_columns).join_from(TURN, ITEMS)

JOIN = insert(WORKER)
WORKER_OF_ID = select(WORKER).where(WORKER.c.id == _worker)
WORKER_OF_CODE = select(WORKER).where(WORKER.c.code == bindparam("code"))
ALL_WORKERS = select(WORKER).order_by(WORKER.c.id)
CONSENT = update(WORKER).where(WORKER.c.id == _worker, WORKER.c.consented.is_(None)).values(consented=_now)
FINISH = update(WORKER).where(WORKER.c.id == _worker, WORKER.c.finished.is_(None)).values(finished=_now)

TURN_OF = _turns.where(TURN.c.id == bindparam("turn"), TURN.c.worker_id == _worker)
BEGUN = (
    _turns.where(TURN.c.worker_id == _worker, TURN.c.answered.is_(None), ITEMS.c.role != REMOVED)
    # An item that others have completed since is let go.
    .where(or_(ITEMS.c.role != ITEM, TURN.c.leased_until > _now, ITEMS.c.answered < ITEMS.c.wanted))
    .order_by(TURN.c.id)
    .limit(1)
)
GIVE = insert(TURN)
LEASE = update(TURN).where(TURN.c.id == bindparam("turn")).values(leased_until=bindparam("until"))
RESUME = LEASE.values(given=_now)
"""After a break the time on the item begins anew."""
REST = update(TURN).where(TURN.c.worker_id == _worker, TURN.c.answered.is_(None)).values(leased_until=0.0)
ANSWER = update(TURN).where(TURN.c.id == bindparam("turn")).values(
    answered=_now, value=bindparam("said"), right=bindparam("is_right"), seconds=bindparam("took"),
    active=bindparam("in_front"),
)  # fmt: skip
COUNT_ANSWER = update(ITEMS).where(ITEMS.c.id == bindparam("item")).values(answered=ITEMS.c.answered + 1)
COUNTS = (
    select(ITEMS.c.role, func.count())
    .join_from(TURN, ITEMS)
    .where(TURN.c.worker_id == _worker, TURN.c.answered.is_not(None))
    .group_by(ITEMS.c.role)
)
"""Answered turns of a worker by role."""
SIZES = select(ITEMS.c.role, func.count(func.distinct(ITEMS.c.source))).group_by(ITEMS.c.role)

_pick = select(ITEMS.c.id, ITEMS.c.source)
NEXT_TRAINING = _pick.where(ITEMS.c.role == TRAINING, _unseen).order_by(ITEMS.c.id).limit(1)
NEXT_CHECK = _pick.where(ITEMS.c.role == CHECK, _unseen).order_by(ITEMS.c.id).limit(1)
LEASED = (
    select(TURN.c.item_id, func.count())
    .where(TURN.c.answered.is_(None), TURN.c.leased_until > _now)
    .group_by(TURN.c.item_id)
)
"""Items that somebody has and has not answered yet, and how many have them."""
CONDITIONS_HAD = (
    select(ITEMS.c.condition, func.count())
    .join_from(TURN, ITEMS)
    .where(TURN.c.worker_id == _worker)
    .group_by(ITEMS.c.condition)
)
_wanted = and_(ITEMS.c.role == ITEM, ITEMS.c.answered < ITEMS.c.wanted)
LEVELS = (
    select(ITEMS.c.stage, ITEMS.c.answered)
    .where(_wanted)
    .group_by(ITEMS.c.stage, ITEMS.c.answered)
    .order_by(ITEMS.c.stage.desc(), ITEMS.c.answered)
)
"""Later stages first, so that what was begun is finished; then where least is known."""
_at_level = (
    select(ITEMS.c.id, ITEMS.c.source, ITEMS.c.condition, ITEMS.c.wanted)
    .where(_wanted, ITEMS.c.stage == bindparam("stage"), ITEMS.c.answered == bindparam("level"))
    .where(or_(ITEMS.c.author.is_(None), ITEMS.c.author != _worker), _unseen)
    .order_by(ITEMS.c.shuffle)
    .limit(WINDOW)
)
_from: BindParameter[Any] = bindparam("start")
CANDIDATES = (_at_level.where(ITEMS.c.shuffle >= _from), _at_level.where(ITEMS.c.shuffle < _from))
"""Items of a level that a worker may get, from somewhere in their random order on, and from its beginning."""

ADD = insert(ITEMS)
LAST_ITEM = select(func.max(ITEMS.c.id))
ITEM_OF = select(ITEMS).where(ITEMS.c.id == bindparam("item"))
SAID_ABOUT = (
    select(TURN.c.value).where(TURN.c.item_id == bindparam("item"), TURN.c.answered.is_not(None)).order_by(TURN.c.id)
)
ALL_ITEMS = select(ITEMS).where(ITEMS.c.role == ITEM).order_by(ITEMS.c.id)
ALL_ANSWERS = (
    select(
        TURN.c.id, ITEMS.c.id.label("item_id"), ITEMS.c.name.label("item"), ITEMS.c.role, ITEMS.c.stage,
        ITEMS.c.condition, ITEMS.c.source, ITEMS.c.about, ITEMS.c.author, WORKER.c.code.label("worker"),
        TURN.c.value, TURN.c.right, TURN.c.seconds, TURN.c.active, TURN.c.answered.label("at"),
    )
    .join_from(TURN, ITEMS).join(WORKER, WORKER.c.id == TURN.c.worker_id)
    .where(TURN.c.answered.is_not(None)).order_by(TURN.c.id)
)  # fmt: skip

_answered_by = select(TURN.c.item_id).where(TURN.c.worker_id == _worker, TURN.c.answered.is_not(None))
COUNT_OF = select(func.count()).select_from(_answered_by.subquery())
FORGET: tuple[Any, ...] = (
    update(ITEMS).where(ITEMS.c.id.in_(_answered_by)).values(
        answered=case((ITEMS.c.answered > 0, ITEMS.c.answered - 1), else_=0)
    ),
    update(ITEMS).where(ITEMS.c.author == _worker).values(
        content=bindparam("blank"), about="{}", gold="{}", author=None, role=REMOVED
    ),
    delete(TURN).where(TURN.c.worker_id == _worker),
    delete(WORKER).where(WORKER.c.id == _worker),
)  # fmt: skip


def names_among(names: list[str]) -> Any:
    """Which of these names items have."""
    return select(ITEMS.c.name).where(ITEMS.c.name.in_(names))
