"""Alembic migrations of the database of a study."""
