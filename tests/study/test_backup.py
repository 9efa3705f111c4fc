"""Backups, migrations, and what a crash leaves."""

from __future__ import annotations

import shutil
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy

from pfungst.core import DataError, PfungstError
from pfungst.study import back_up, open_study, restore
from pfungst.study.database import MIGRATIONS, Database
from pfungst.study.schema import METADATA
from tests.study.conftest import copied, fill, work

Make = Callable[..., Any]


def test_a_backup_is_restored_and_the_study_goes_on(make: Make, tmp_path: Path, address: str) -> None:
    study = make("rephrase", address, limit=2, wanted=1, check_every=0)
    work(study, "first", most=4)
    begun = study.book.next(study.book.workers()[0])
    counts = back_up(study, tmp_path / "study.zip")
    assert (counts["worker"], counts["turn"]) == (1, 5)
    work(study, "after the backup", most=3)
    again = restore(tmp_path / "study.zip", tmp_path / "again")
    assert [row["value"] for row in again.book.answers()] == [row["value"] for row in study.book.answers()[:4]]
    assert again.settings == study.settings
    assert again.keys == study.keys, "links stay valid"
    assert {file.name for file in (again.folder / "images").iterdir()} == {
        file.name for file in (study.folder / "images").iterdir()
    }
    worker = again.book.workers()[0]
    turn = again.book.next(worker)
    assert turn.id == begun.id
    assert again.book.submit(worker, turn.id, fill(turn)).now
    work(again, "new")
    again.close()


def test_a_study_moves_from_a_file_to_postgresql(make: Make, tmp_path: Path, postgres: Callable[[], str]) -> None:
    study = make("rephrase", limit=1, wanted=1, check_every=0)
    work(study, "first")
    back_up(study, tmp_path / "study.zip")
    url = postgres()
    moved = restore(tmp_path / "study.zip", tmp_path / "moved", url)
    assert [row["value"] for row in moved.book.answers()] == [row["value"] for row in study.book.answers()]
    work(moved, "second")
    assert len({row["id"] for row in moved.book.answers()}) > len(study.book.answers())
    moved.close()
    with pytest.raises(PfungstError, match="not empty"):
        restore(tmp_path / "study.zip", tmp_path / "third", url)
    with pytest.raises(PfungstError, match="has no database"):
        open_study(tmp_path / "moved")


def test_half_a_backup_is_refused_and_leaves_nothing(make: Make, tmp_path: Path) -> None:
    back_up(make("rephrase", limit=1), tmp_path / "study.zip")
    whole = (tmp_path / "study.zip").read_bytes()
    (tmp_path / "half.zip").write_bytes(whole[: len(whole) // 2])
    with zipfile.ZipFile(tmp_path / "study.zip") as archive, zipfile.ZipFile(tmp_path / "less.zip", "w") as less:
        for name in archive.namelist():
            if name != "turn.jsonl":
                less.writestr(name, archive.read(name))
    for name in ("half.zip", "less.zip"):
        with pytest.raises(DataError, match="not a whole backup"):
            restore(tmp_path / name, tmp_path / "out")
        assert not (tmp_path / "out").exists()


def test_what_was_acknowledged_is_on_the_disk(make: Make, tmp_path: Path) -> None:
    study = make("withheld:training=0,conditions=IQA", limit=5, wanted=1, check_every=0)
    done = work(study, "w", most=3)
    crashed = open_study(copied(study, tmp_path / "crashed"))
    assert [row["id"] for row in crashed.book.answers()] == [turn.id for turn in done]
    crashed.close()


def test_migrations_make_the_tables_of_the_schema(tmp_path: Path, address: str) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    database = Database.of(tmp_path, address)
    database.migrate()
    database.migrate()
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, METADATA) == []
        if database.is_sqlite:
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
    database.close()


STEP = """
import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "0002", "0001", None, None


def upgrade():
    with op.batch_alter_table("worker") as table:
        table.add_column(sa.Column("language", sa.String(20), nullable=False, server_default="en"))
    op.create_index("ix_item_condition", "item", ["condition"])
    op.execute("UPDATE worker SET language = 'de' WHERE code = 'first'")
    FAIL
"""
"""A migration that a later version might bring: a column, an index, and a change of rows."""


def later(monkeypatch: pytest.MonkeyPatch, folder: Path, fail: str = "pass") -> None:
    """As if this were a later version of Pfungst."""
    shutil.copytree(MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "versions" / "0002_later.py").write_text(STEP.replace("FAIL", fail))
    monkeypatch.setattr("pfungst.study.database.MIGRATIONS", folder)


def test_a_study_of_an_earlier_version_is_brought_up_to_date_and_goes_on(
    make: Make, tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = make("rephrase", address, limit=1, wanted=1, check_every=0)
    work(study, "first", most=4)
    before = study.book.answers()
    study.close()
    with monkeypatch.context() as patch:
        later(patch, tmp_path / "later")
        for _ in range(2):  # the second time there is nothing to do
            again = open_study(study.folder, address)
            with again.database.reading() as connection:
                rows = connection.execute(sqlalchemy.text("SELECT code, language FROM worker")).all()
                indexes = {one["name"] for one in sqlalchemy.inspect(connection).get_indexes("item")}
            assert rows == [("first", "de")]
            assert "ix_item_condition" in indexes
            assert again.book.answers() == before
            again.close()
        again = open_study(study.folder, address)
        work(again, "second")
        assert len(again.book.answers()) > len(before)
        again.close()
    with pytest.raises(PfungstError, match="written by a newer version of Pfungst \\(0002\\): update Pfungst"):
        open_study(study.folder, address)


def test_a_migration_that_fails_leaves_the_study_as_it_was(
    make: Make, tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = make("rephrase", address, limit=1, wanted=1, check_every=0)
    work(study, "first", most=4)
    before = study.book.answers()
    study.close()
    with monkeypatch.context() as patch:
        later(patch, tmp_path / "later", "op.execute('SELECT nothing FROM nowhere')")
        with pytest.raises(sqlalchemy.exc.DBAPIError):
            open_study(study.folder, address)
    again = open_study(study.folder, address)
    with again.database.reading() as connection:
        assert "language" not in {one["name"] for one in sqlalchemy.inspect(connection).get_columns("worker")}
        assert connection.execute(sqlalchemy.text("SELECT version_num FROM alembic_version")).all() == [("0001",)]
    assert again.book.answers() == before
    again.close()


def test_tables_can_be_taken_down_and_made_again(tmp_path: Path, address: str) -> None:
    from alembic import command
    from alembic.config import Config

    database = Database.of(tmp_path, address)
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    database.migrate()
    with database.writing() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "base")
        assert set(sqlalchemy.inspect(connection).get_table_names()) <= {"alembic_version", "sqlite_sequence"}
    database.migrate()
    with database.reading() as connection:
        assert {"worker", "item", "turn"} <= set(sqlalchemy.inspect(connection).get_table_names())
    database.close()


def test_a_database_of_something_else_is_left_alone(make: Make, tmp_path: Path, postgres: Callable[[], str]) -> None:
    for url in (f"sqlite:///{tmp_path / 'other.sqlite'}", postgres()):
        engine = sqlalchemy.create_engine(url)
        with engine.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE item (price INTEGER)")
        engine.dispose()
        with pytest.raises(PfungstError, match="a table item that does not belong to a study"):
            make("rephrase", url, limit=1)


def test_a_database_of_a_newer_version_is_left_alone(make: Make) -> None:
    study = make("rephrase", limit=1)
    with study.database.writing() as connection:
        connection.execute(sqlalchemy.text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(PfungstError, match="newer version"):
        open_study(study.folder)


def test_a_second_study_needs_a_second_database(make: Make, postgres: Callable[[], str], tmp_path: Path) -> None:
    url = postgres()
    make("rephrase", url, limit=1)
    with pytest.raises(PfungstError, match="holds a study already"):
        make("rephrase", url, limit=1)
    assert not (tmp_path / "study1").exists()


def test_addresses_that_lead_nowhere_are_sentences(make: Make, tmp_path: Path) -> None:
    for url, why in (
        ("postgresql://nobody:secret@127.0.0.1:1/x", "cannot be reached"),
        ("mysql://x/y", "SQLite or PostgreSQL"),
        ("what is this", "cannot be read"),
    ):
        with pytest.raises(PfungstError, match=why) as error:
            make("rephrase", url, limit=1)
        assert "secret" not in str(error.value)
    with pytest.raises(DataError, match="not a study"):
        open_study(tmp_path)


def test_keys_are_for_the_owner_alone(make: Make) -> None:
    study = make("rephrase", limit=1)
    assert (study.folder / "keys.json").stat().st_mode & 0o077 == 0
    with sqlite3.connect(study.folder / "study.sqlite") as raw:
        stored = "".join(str(row) for table in ("worker", "item") for row in raw.execute(f"SELECT * FROM {table}"))
    worker = study.book.join("w")
    assert study.keys.token(worker.id, worker.code) not in stored
