"""The database of a study: its tables, several servers at once, and what a crash leaves."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy

from pfungst.core import DataError, PfungstError
from pfungst.study import open_study
from pfungst.study.database import Database
from tests.study.conftest import copied, work

Make = Callable[..., Any]


def test_what_was_acknowledged_is_on_the_disk(make: Make, tmp_path: Path) -> None:
    study = make("withheld:training=0,conditions=IQA", limit=5, wanted=1, check_every=0)
    done = work(study, "w", most=3)
    crashed = open_study(copied(study, tmp_path / "crashed"))
    assert [row["id"] for row in crashed.book.answers()] == [turn.id for turn in done]
    crashed.close()


def test_a_new_database_has_every_table_and_is_opened_again(tmp_path: Path, address: str) -> None:
    database = Database.of(tmp_path, address)
    for _ in range(2):
        database.prepare()
    with database.reading() as connection:
        assert {"worker", "item", "turn"} <= set(sqlalchemy.inspect(connection).get_table_names())
        if database.is_sqlite:
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
    database.close()


EARLIER = """
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO alembic_version VALUES ('0001');
CREATE TABLE worker (
    id {number}, code VARCHAR(200) NOT NULL, joined {double} NOT NULL, consented {double}, finished {double},
    CONSTRAINT uq_worker_code UNIQUE (code)
);
CREATE TABLE item (
    id {number}, name TEXT NOT NULL, role VARCHAR(20) NOT NULL, stage INTEGER NOT NULL, condition TEXT NOT NULL,
    source TEXT NOT NULL, content TEXT NOT NULL, about TEXT NOT NULL, gold TEXT NOT NULL, wanted INTEGER NOT NULL,
    answered INTEGER NOT NULL, author INTEGER, shuffle BIGINT NOT NULL, CONSTRAINT uq_item_name UNIQUE (name),
    CONSTRAINT fk_item_author FOREIGN KEY(author) REFERENCES worker (id)
);
CREATE INDEX ix_item_role_stage_answered_shuffle ON item (role, stage, answered, shuffle);
CREATE TABLE turn (
    id {number}, item_id INTEGER NOT NULL, worker_id INTEGER NOT NULL, source TEXT NOT NULL, given {double} NOT NULL,
    leased_until {double} NOT NULL, answered {double}, value TEXT, "right" INTEGER, seconds {double}, active {double},
    CONSTRAINT uq_turn_worker_id_source UNIQUE (worker_id, source),
    CONSTRAINT fk_turn_item_id FOREIGN KEY(item_id) REFERENCES item (id),
    CONSTRAINT fk_turn_worker_id FOREIGN KEY(worker_id) REFERENCES worker (id)
);
CREATE INDEX ix_turn_item_id ON turn (item_id);
CREATE INDEX ix_turn_answered_leased_until ON turn (answered, leased_until);
"""
"""The tables as versions before made them, by a tool for migrations."""


def test_a_study_of_an_earlier_version_opens_and_goes_on(make: Make, tmp_path: Path, address: str) -> None:
    database = Database.of(tmp_path, address)
    kinds = (
        {"number": "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT", "double": "DOUBLE"}
        if database.is_sqlite
        else {"number": "SERIAL PRIMARY KEY", "double": "DOUBLE PRECISION"}
    )
    with database.engine.begin() as connection:
        for statement in EARLIER.format(**kinds).split(";")[:-1]:
            connection.exec_driver_sql(statement)
    database.close()
    study = make("rephrase", address or f"sqlite:///{tmp_path / 'study.sqlite'}", limit=1, wanted=1, check_every=0)
    done = work(study, "first", most=4)
    again = open_study(study.folder, address or f"sqlite:///{tmp_path / 'study.sqlite'}")
    assert [row["id"] for row in again.book.answers()] == [turn.id for turn in done]
    again.close()


def test_servers_that_share_a_database_give_nobody_too_much(make: Make, address: str) -> None:
    study = make("withheld:training=0,conditions=IQA", address, limit=6, wanted=2, check_every=0)

    def serve(number: int) -> None:
        mine = open_study(study.folder, address)
        for turn in range(3):
            work(mine, f"worker {number} {turn}")
        mine.close()

    threads = [threading.Thread(target=serve, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    answers = study.book.answers()
    assert len(answers) == sum(item["wanted"] for item in study.book.items()) == 12
    assert all(item["answered"] == 2 for item in study.book.items())
    assert len({(row["worker"], row["source"]) for row in answers}) == 12


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
    study.database.write(
        lambda connection: connection.execute(sqlalchemy.text("UPDATE alembic_version SET version_num = '9999'"))
    )
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
