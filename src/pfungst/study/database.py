"""SQLite (WAL, one writer) or PostgreSQL, through SQLAlchemy.

There is one writer at a time. What is written by many threads at the same moment is committed together: to wait for the
disk takes longer than all else, and is done once for all of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, OperationalError

from pfungst.core import MissingExtra, PfungstError
from pfungst.core.files import write_ahead
from pfungst.study.schema import TABLES

FILE = "study.sqlite"
MIGRATIONS = Path(__file__).parent / "migrations"
_LOCK = 0x5066756E
"""Number of the advisory lock in PostgreSQL that makes writers wait for each other."""
_READS = "pfungst_reads"
_TOGETHER = 64
"""Most pieces of work in one transaction."""

T = TypeVar("T")


@dataclass
class _Job:
    """A piece of work that waits for its turn."""

    work: Callable[[Connection], Any]
    result: Any = None
    error: BaseException | None = None
    done: bool = False


class Database:
    """Where a study keeps its workers, items and turns. One database holds one study."""

    def __init__(self, url: str | URL) -> None:
        self.url = _address(url)
        self.is_sqlite: bool = self.url.get_backend_name() == "sqlite"
        self._turn, self._queued = threading.Lock(), threading.Lock()
        self._queue: list[_Job] = []
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
        job = _Job(work)
        with self._queued:
            self._queue.append(job)
        with self._turn:
            # Whoever comes first writes for all that wait; the others find their work done.
            if not job.done:
                with self._queued:
                    jobs, self._queue = self._queue[:_TOGETHER], self._queue[_TOGETHER:]
                self._write(jobs)
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    def _write(self, jobs: list[_Job]) -> None:
        try:
            with self._begun(reads=False) as connection:
                self._lock(connection)
                for job in jobs:
                    try:
                        with connection.begin_nested():
                            job.result = job.work(connection)
                    except Exception as error:
                        job.error = error
        except BaseException as error:
            for job in jobs:
                job.error = job.error or error
        finally:
            for job in jobs:
                job.done = True

    def _lock(self, connection: Connection) -> None:
        """Keep other processes from writing; SQLite has done so when the transaction began."""
        if not self.is_sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(:n)"), {"n": _LOCK})

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction of its own that may write, for tables and backups."""
        with self._turn, self._begun(reads=False) as connection:
            self._lock(connection)
            yield connection

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

    def migrate(self) -> None:
        """Bring the tables up to date, or make them; all of it, or nothing where a step fails."""
        from alembic import command
        from alembic.config import Config
        from alembic.migration import MigrationContext
        from alembic.script import ScriptDirectory

        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
        script = ScriptDirectory.from_config(config)
        with self.writing() as connection:
            now = MigrationContext.configure(connection).get_current_revision()
            if now == script.get_current_head():
                return
            if now is not None and now not in {one.revision for one in script.walk_revisions()}:
                raise PfungstError(
                    f"The database {self.name} was written by a newer version of Pfungst ({now}): update Pfungst."
                )
            others = {table.name for table in TABLES} & set(inspect(connection).get_table_names())
            if now is None and others:
                raise PfungstError(
                    f"The database {self.name} has a table {min(others)} that does not belong to a study. A study "
                    "needs its own database."
                )
            config.attributes["connection"] = connection
            command.upgrade(config, "head")

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
