"""Workers, items, turns."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "worker",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("code", sa.String(200), nullable=False),
        sa.Column("joined", sa.Double, nullable=False),
        sa.Column("consented", sa.Double),
        sa.Column("finished", sa.Double),
        sa.PrimaryKeyConstraint("id", name="pk_worker"),
        sa.UniqueConstraint("code", name="uq_worker_code"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "item",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("stage", sa.Integer, nullable=False),
        sa.Column("condition", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("about", sa.Text, nullable=False),
        sa.Column("gold", sa.Text, nullable=False),
        sa.Column("wanted", sa.Integer, nullable=False),
        sa.Column("answered", sa.Integer, nullable=False),
        sa.Column("author", sa.Integer),
        sa.Column("shuffle", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_item"),
        sa.UniqueConstraint("name", name="uq_item_name"),
        sa.ForeignKeyConstraint(["author"], ["worker.id"], name="fk_item_author"),
    )
    op.create_index("ix_item_role_stage_answered_shuffle", "item", ["role", "stage", "answered", "shuffle"])
    op.create_table(
        "turn",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("item_id", sa.Integer, nullable=False),
        sa.Column("worker_id", sa.Integer, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("given", sa.Double, nullable=False),
        sa.Column("leased_until", sa.Double, nullable=False),
        sa.Column("answered", sa.Double),
        sa.Column("value", sa.Text),
        sa.Column("right", sa.Integer),
        sa.Column("seconds", sa.Double),
        sa.Column("active", sa.Double),
        sa.PrimaryKeyConstraint("id", name="pk_turn"),
        sa.UniqueConstraint("worker_id", "source", name="uq_turn_worker_id_source"),
        sa.ForeignKeyConstraint(["item_id"], ["item.id"], name="fk_turn_item_id"),
        sa.ForeignKeyConstraint(["worker_id"], ["worker.id"], name="fk_turn_worker_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_turn_item_id", "turn", ["item_id"])
    op.create_index("ix_turn_answered_leased_until", "turn", ["answered", "leased_until"])


def downgrade() -> None:
    for table in ("turn", "item", "worker"):
        op.drop_table(table)
