"""Called by Alembic, with the connection that `database.migrate` opened."""

from __future__ import annotations

from alembic import context

from pfungst.study.schema import METADATA

context.configure(
    connection=context.config.attributes["connection"], target_metadata=METADATA, render_as_batch=True,
    transactional_ddl=True,
)  # fmt: skip
with context.begin_transaction():
    context.run_migrations()
