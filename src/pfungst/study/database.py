"""SQLite (WAL) or PostgreSQL, through SQLAlchemy. There is one writer at a time; readers wait for nobody."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, insert, inspect, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, OperationalError

from pfungst.core import MissingExtra, PfungstError
from pfungst.core.files import write_ahead
from pfungst.study.schema import METADATA, SCHEMA, VERSION

FILE = "study.sqlite"
_READS = "pfungst_reads"
_ONE_WRITER = select(VERSION).with_for_update()
"""In PostgreSQL every transaction that writes begins with a lock on this row: other processes wait, readers do not."""

T = TypeVar("T")


class Database:
    """Where a study keeps its workers, items and turns. One database holds one study."""

    def __init__(self, url: str | URL) -> None:
        self.url = _address(url)
        self.is_sqlite: bool = self.url.get_backend_name() == "sqlite"
        self._turn = threading.Lock()
        more: dict[str, Any] = {"connect_args": {"check_same_thread": False, "timeout": 30}} if self.is_sqlite else {}
        try:
            self.engine = create_engine(
                self.url, pool_size=20, max_overflow=30, pool_pre_ping=not self.is_sqlite, **more
            )
        except (ModuleNotFoundError, NoSuchModuleError):
            raise MissingExtra(f"A database of {self.url.get_backend_name()}", "postgres") from None
        if self.is_sqlite:
            _prepare_sqlite(self.engine)

    @classmethod
    def of(cls, folder: Path, url: str = "") -> Database:
        """The database at `url`, or that in the folder."""
        return cls(url or URL.create("sqlite", database=str(folder / FILE)))

    def write(self, work: Callable[[Connection], T]) -> T:
        """What `work` returns, once what it wrote is on the disk. If it raises, nothing that it wrote is kept."""
        with self._turn, self._begun(reads=False) as connection:
            if not self.is_sqlite:  # which has locked the file when the transaction began
                connection.execute(_ONE_WRITER)
            return work(connection)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one state throughout, while others write."""
        with self._begun(reads=True) as connection:
            yield connection

    @contextmanager
    def _begun(self, reads: bool) -> Iterator[Connection]:
        try:
            connection = self.engine.connect()
        except OperationalError as error:
            raise PfungstError(f"The database {self.name} cannot be reached: {str(error.orig).strip()}") from None
        with connection:
            options: dict[str, Any] = {_READS: reads}
            if reads and not self.is_sqlite:
                options["isolation_level"] = "REPEATABLE READ"
            with connection.execution_options(**options).begin():
                yield connection

    @property
    def name(self) -> str:
        """For messages; without the password."""
        return self.url.render_as_string(hide_password=True)

    def prepare(self) -> None:
        """Make the tables where there are none; PfungstError where those that are there are not ours."""
        with self._turn, self._begun(reads=False) as connection:
            there = set(inspect(connection).get_table_names())
            version = connection.execute(select(VERSION.c.version_num)).scalar() if VERSION.name in there else None
            if version not in (None, SCHEMA):
                raise PfungstError(
                    f"The database {self.name} was written by a newer version of Pfungst ({version}): update Pfungst."
                )
            others = {table.name for table in METADATA.sorted_tables} & there - {VERSION.name}
            if version is None and others:
                raise PfungstError(
                    f"The database {self.name} has a table {min(others)} that does not belong to a study. A study "
                    "needs its own database."
                )
            METADATA.create_all(connection)
            if version is None:
                connection.execute(insert(VERSION), {"version_num": SCHEMA})

    def checkpoint(self) -> None:
        """Empty the log beside an SQLite file: what was deleted is still in it."""
        if not self.is_sqlite:
            return
        raw = self.engine.raw_connection()
        try:
            raw.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            raw.close()

    def close(self) -> None:
        self.engine.dispose()


def _address(url: str | URL) -> URL:
    try:
        made = make_url(url)
    except ArgumentError:
        raise PfungstError(
            "The address of the database cannot be read. It looks like postgresql://USER:PASSWORD@HOST/NAME."
        ) from None
    if made.drivername in ("postgresql", "postgres"):
        made = made.set(drivername="postgresql+psycopg")
    if made.get_backend_name() not in ("sqlite", "postgresql"):
        raise PfungstError(f"Studies are kept in SQLite or PostgreSQL, not in {made.get_backend_name()}.")
    return made


def _prepare_sqlite(engine: Engine) -> None:
    """Readers do not wait for the writer; what is acknowledged is on the disk; what is deleted is overwritten."""

    @event.listens_for(engine, "connect")
    def _(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves
        write_ahead(connection)
        for pragma in ("synchronous=FULL", "foreign_keys=ON", "secure_delete=ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _(connection: Connection) -> None:
        reads = connection.get_execution_options().get(_READS, True)
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")
