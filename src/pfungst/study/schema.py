"""The tables of a study, and the statements of its book, built once: to build one takes longer than to run it.

A change of the tables is another SCHEMA: an older database is then refused with a sentence. Times are seconds since
1970. `turn` is one item given to one worker: first without an answer and with a lease, then with its answer. A unique
constraint on it is what a study rests on: nobody gets two items of one source.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
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
    bindparam,
    insert,
    text,
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

JOIN, ADD, GIVE = insert(WORKER), insert(ITEMS), insert(TURN)
"""Another worker, items, and a turn."""

_workers = "SELECT id, code, joined, consented, finished FROM worker"
WORKER_OF_ID = text(f"{_workers} WHERE id = :worker")
WORKER_OF_CODE = text(f"{_workers} WHERE code = :code")
ALL_WORKERS = text(f"{_workers} ORDER BY id")
CONSENT = text("UPDATE worker SET consented = :now WHERE id = :worker AND consented IS NULL")
FINISH = text("UPDATE worker SET finished = :now WHERE id = :worker AND finished IS NULL")

_turns = """
    SELECT turn.id, item_id, role, content, turn.answered, value, "right", given, leased_until, gold
    FROM turn JOIN item ON item.id = item_id
"""
TURN_OF = text(f"{_turns} WHERE turn.id = :turn AND worker_id = :worker")
# An item that others have completed since is let go.
BEGUN = text(f"""
    {_turns} WHERE worker_id = :worker AND turn.answered IS NULL AND role != '{REMOVED}'
    AND (role != '{ITEM}' OR leased_until > :now OR item.answered < wanted) ORDER BY turn.id LIMIT 1
""")
LEASE = text("UPDATE turn SET leased_until = :until WHERE id = :turn")
RESUME = text("UPDATE turn SET leased_until = :until, given = :now WHERE id = :turn")
"""After a break the time on the item begins anew."""
REST = text("UPDATE turn SET leased_until = 0 WHERE worker_id = :worker AND answered IS NULL")
ANSWER = text("""
    UPDATE turn SET answered = :now, value = :said, "right" = :is_right, seconds = :took, active = :in_front
    WHERE id = :turn
""")
COUNT_ANSWER = text("UPDATE item SET answered = answered + 1 WHERE id = :item")
COUNTS = text("""
    SELECT role, count(*) FROM turn JOIN item ON item.id = item_id
    WHERE worker_id = :worker AND turn.answered IS NOT NULL GROUP BY role
""")
"""Answered turns of a worker by role."""
SIZES = text("SELECT role, count(DISTINCT source) FROM item GROUP BY role")

_unseen = "NOT EXISTS (SELECT * FROM turn WHERE worker_id = :worker AND turn.source = item.source)"
_next = "SELECT id, source FROM item WHERE role = '{}' AND {} ORDER BY id LIMIT 1"
NEXT_TRAINING, NEXT_CHECK = (text(_next.format(role, _unseen)) for role in (TRAINING, CHECK))
LEASED = text("""
    SELECT item_id, count(*) FROM turn WHERE answered IS NULL AND leased_until > :now GROUP BY item_id
""")
"""Items that somebody has and has not answered yet, and how many have them."""
CONDITIONS_HAD = text("""
    SELECT condition, count(*) FROM turn JOIN item ON item.id = item_id WHERE worker_id = :worker GROUP BY condition
""")
_wanted = f"role = '{ITEM}' AND answered < wanted"
LEVELS = text(
    f"SELECT stage, answered FROM item WHERE {_wanted} GROUP BY stage, answered ORDER BY stage DESC, answered"
)
"""Later stages first, so that what was begun is finished; then where least is known."""
_at_level = f"""
    SELECT id, source, condition, wanted FROM item
    WHERE {_wanted} AND stage = :stage AND answered = :level AND (author IS NULL OR author != :worker) AND {_unseen}
"""
CANDIDATES = tuple(
    text(f"{_at_level} AND shuffle {side} :start ORDER BY shuffle LIMIT {WINDOW}") for side in (">=", "<")
)
"""Items of a level that a worker may get, from somewhere in their random order on, and from its beginning."""

LAST_ITEM = text("SELECT max(id) FROM item")
ITEM_OF = text("SELECT * FROM item WHERE id = :item")
NAMES_AMONG = text("SELECT name FROM item WHERE name IN :names").bindparams(bindparam("names", expanding=True))
"""Which of these names items have."""
SAID_ABOUT = text("SELECT value FROM turn WHERE item_id = :item AND answered IS NOT NULL ORDER BY id")
ALL_ITEMS = text(f"SELECT * FROM item WHERE role = '{ITEM}' ORDER BY id")
ALL_ANSWERS = text("""
    SELECT turn.id, item_id, name AS item, role, stage, condition, item.source, about, author, code AS worker, value,
        "right", seconds, active, turn.answered AS at
    FROM turn JOIN item ON item.id = item_id JOIN worker ON worker.id = worker_id
    WHERE turn.answered IS NOT NULL ORDER BY turn.id
""")

_answered = "SELECT item_id FROM turn WHERE worker_id = :worker AND answered IS NOT NULL"
COUNT_OF = text(f"SELECT count(*) FROM ({_answered}) AS answered")
FORGET = (
    text(f"UPDATE item SET answered = answered - 1 WHERE answered > 0 AND id IN ({_answered})"),
    text(f"""
        UPDATE item SET content = :blank, about = '{{}}', gold = '{{}}', author = NULL, role = '{REMOVED}'
        WHERE author = :worker
    """),
    text("DELETE FROM turn WHERE worker_id = :worker"),
    text("DELETE FROM worker WHERE id = :worker"),
)
