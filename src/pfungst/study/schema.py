"""The tables. A change here needs a migration in `migrations/versions`; a test holds the two against each other.

Times are seconds since 1970. `turn` is one item given to one worker: first without an answer and with a lease, then
with its answer. A unique constraint on it is what a study rests on: nobody gets two items of one source.
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
)

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

ITEM = Table(
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

TABLES = (WORKER, ITEM, TURN)
"""In the order in which they can be filled."""
