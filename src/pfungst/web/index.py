"""All answers of all runs in one DuckDB file and, what is narrow, in memory: a page of a million takes a moment.

The trials of a run are read when somebody first asks for them, and again when its files change: a reader sees the
earlier ones until then. The database is a temporary file; everything in it can be read anew from the runs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pfungst.core import MissingExtra, PfungstError
from pfungst.web.narrow import Gathering, Narrow, Rows, first
from pfungst.web.reading import SCHEMA, SEARCHED, batches
from pfungst.web.runs import RunFolder
from pfungst.web.wanted import PAGE, Place, Wanted

_SHOWN = ", ".join(column for column in SCHEMA if column not in SEARCHED)
_MOST_OF_ONE = 2000
"""Answers about one example that are shown."""
_LOOK_SECONDS = 0.5
"""How long a table is believed to be that of its files."""
_KEPT_SECONDS = 60.0
"""How long a table is kept after it was replaced."""
Signature = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Facet:
    """How many answers have these properties."""

    probe: str
    variant: str
    answer_type: str
    question_type: str
    flip: str
    count: int


@dataclass(frozen=True)
class Page:
    """A page of answers, and what holds for all that were wanted."""

    rows: list[dict[str, Any]]
    total: int
    known: int
    """Answers with a known score."""
    mean: float | None
    """Mean score of these."""

    @property
    def pages(self) -> int:
        return max(1, -(-self.total // PAGE))


@dataclass
class _Table:
    name: str
    signature: Signature
    facets: list[Facet]
    narrow: Narrow
    texts: dict[str, int]
    """How many distinct texts there are, by column of SEARCHED."""
    problem: str = ""
    looked_at: float = 0.0
    """When its files were last looked at."""


class Index:
    """The answers of runs. One for a server; safe to use from many threads."""

    def __init__(self, folder: Path) -> None:
        try:
            import duckdb
        except ImportError:
            raise MissingExtra("The explorer", "web") from None
        self._db = duckdb.connect(
            str(folder / "answers.duckdb"),
            config={
                "threads": "2",
                "memory_limit": "2GB",
                "enable_external_access": "false",
                "autoload_known_extensions": "false",
                "autoinstall_known_extensions": "false",
            },
        )
        self._lock = threading.Lock()
        self._importing: dict[str, threading.Lock] = {}
        self._tables: dict[str, _Table] = {}
        self._made = 0
        self._replaced: list[tuple[float, str]] = []

    def close(self) -> None:
        self._db.close()

    def facets(self, run: RunFolder) -> list[Facet]:
        return self._table(run).facets

    def versions(self, runs: Sequence[RunFolder]) -> tuple[str, ...]:
        """Names that change with what is known about these runs."""
        return tuple(self._table(run).name for run in runs)

    def problem(self, run: RunFolder) -> str:
        """Why (some of) the trials of a run cannot be shown; empty where they can."""
        return self._table(run).problem

    def page(self, runs: Sequence[RunFolder], wanted: Wanted, places: Sequence[Place] | None = None) -> Page:
        """A page of the wanted answers of these runs.

        places: only answers at these places, such as those with a tag; None for all.
        """
        tables = [self._table(run) for run in runs]
        rows = [self._rows(table, run, wanted, places) for table, run in zip(tables, runs, strict=True)]
        # Answers of all runs in a row: number among these -> run and number there.
        ends = np.cumsum([len(some) for some in rows])
        total, start = int(ends[-1]) if len(ends) else 0, PAGE * (wanted.page - 1)
        if wanted.sort:
            key = [table.narrow.key(wanted.sort, some) for table, some in zip(tables, rows, strict=True)]
            chosen = first(np.concatenate(key), start + PAGE)[start:] if total else np.zeros(0, np.int64)
        else:
            chosen = np.arange(start, min(start + PAGE, total))
        parts = np.searchsorted(ends, chosen, side="right")
        shown = [
            (int(part), int(rows[part][at - (ends[part - 1] if part else 0)]))
            for part, at in zip(parts, chosen, strict=True)
        ]
        wide: dict[tuple[int, int], dict[str, Any]] = {}
        for part in set(parts.tolist()):
            numbers = [number for one, number in shown if one == part]
            wide.update({(part, row["number"]): row for row in self._wide(tables[part], numbers)})
        told = [table.narrow.known(some) for table, some in zip(tables, rows, strict=True)]
        known = sum(count for count, _ in told)
        mean = sum(score for _, score in told) / known if known else None
        return Page([wide[one] for one in shown if one in wide], total, known, mean)

    def _wide(self, table: _Table, numbers: Sequence[int]) -> Iterator[dict[str, Any]]:
        return self._select(table, f"number IN ({','.join('?' * len(numbers))})", list(numbers))

    def _select(self, table: _Table, where: str, values: Sequence[Any]) -> Iterator[dict[str, Any]]:
        found = self._db.cursor().execute(f"SELECT {_SHOWN} FROM {table.name} WHERE {where}", values)
        names = [column[0] for column in found.description]
        return (dict(zip(names, row, strict=True)) for row in found.fetchall())

    def _rows(self, table: _Table, run: RunFolder, wanted: Wanted, places: Sequence[Place] | None) -> Rows:
        """Numbers of the wanted answers of a run. Nothing that a visitor writes becomes SQL."""
        cursor, among = self._db.cursor(), None
        if places is not None:
            mine = [place for place in places if place.run == run.id]
            if not mine:
                return np.zeros(0, np.int64)
            marks = ",".join(["(?,?,?)"] * len(mine))
            among = cursor.execute(
                f"SELECT number FROM {table.name} WHERE (probe, example_id, variant) IN ({marks})",
                [text for place in mine for text in (place.probe, place.example_id, place.variant)],
            ).fetchnumpy()["number"]
        found = []
        for word in wanted.words:
            masks = {}
            for column in SEARCHED:
                masks[column] = np.zeros(table.texts[column], np.bool_)
                ids = cursor.execute(f"SELECT id FROM {table.name}_{column} WHERE contains(text, ?)", [word])
                masks[column][ids.fetchnumpy()["id"]] = True
            found.append(masks)
        return table.narrow.rows(wanted, found, among)

    def example(self, run: RunFolder, example_id: str) -> list[dict[str, Any]]:
        """Every answer of a run about an example, probe by probe, the clean one of each first."""
        where = f"example_id = ? ORDER BY probe, trial, place LIMIT {_MOST_OF_ONE}"
        return list(self._select(self._table(run), where, [example_id]))

    def row(self, run: RunFolder, place: Place) -> dict[str, Any] | None:
        """The answer at a place."""
        values = [place.example_id, place.probe, place.variant]
        return next(
            self._select(self._table(run), "example_id = ? AND probe = ? AND variant = ? LIMIT 1", values), None
        )

    def neighbours(
        self, run: RunFolder, wanted: Wanted, at: int
    ) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """The answers before and after number `at` of a run, among those wanted: to walk from failure to failure."""
        table = self._table(run)
        rows = self._rows(table, run, wanted, None)
        near = (rows[rows < at][-1:], rows[rows > at][:1])
        before, after = (next(self._wide(table, some.tolist()), None) if len(some) else None for some in near)
        return before, after

    def _table(self, run: RunFolder) -> _Table:
        """The table of a run; read where it was not, and brought up to date behind the reader's back."""
        with self._lock:
            known = self._tables.get(run.id)
            lock = self._importing.setdefault(run.id, threading.Lock())
            if known is not None and time.monotonic() - known.looked_at < _LOOK_SECONDS:
                return known
            if known is not None:
                known.looked_at = time.monotonic()
        files = run.trials()
        signature = _signature(files)
        if known is None:
            with lock:
                known = self._tables.get(run.id)
                return known if known is not None else self._import(run, files, signature)
        if known.signature != signature and lock.acquire(blocking=False):

            def renew() -> None:
                try:
                    self._import(run, files, signature)
                finally:
                    lock.release()

            threading.Thread(target=renew, daemon=True).start()
        return known

    def _import(self, run: RunFolder, files: Sequence[Path], signature: Signature) -> _Table:
        with self._lock:
            self._made += 1
            name = f"run_{self._made}"
        cursor = self._db.cursor()
        # Many rows ask and say the same: a text is searched once, and a row knows the number of its text.
        columns = ", ".join(f"{column} {kind}" for column, kind in SCHEMA.items() if column not in SEARCHED)
        cursor.execute(f"CREATE TABLE {name} ({columns})")
        for column in SEARCHED:
            cursor.execute(f"CREATE TABLE {name}_all_{column} (hash UBIGINT, text VARCHAR)")
        hashed = ", ".join(f"hash({column}) AS {column}" for column in SEARCHED)
        gathering = Gathering()
        problems, number = [], 0
        for file in files:
            try:
                for batch in batches(run, file, number):
                    number += batch.num_rows
                    cursor.register("incoming", batch)
                    cursor.execute(f"INSERT INTO {name} SELECT {_SHOWN} FROM incoming")
                    gathering.add(batch, cursor.execute(f"SELECT {hashed} FROM incoming").fetchnumpy())
                    for column in SEARCHED:
                        texts = f"SELECT DISTINCT hash({column}), {column} FROM incoming"
                        cursor.execute(f"INSERT INTO {name}_all_{column} {texts}")
                    cursor.unregister("incoming")
            except PfungstError as error:
                problems.append(str(error))
        known = {}
        for column in SEARCHED:
            every = f"{name}_all_{column}"
            known[column] = cursor.execute(f"SELECT DISTINCT hash FROM {every} ORDER BY hash").fetchnumpy()["hash"]
            cursor.execute(
                f"CREATE TABLE {name}_{column} AS SELECT dense_rank() OVER (ORDER BY hash) - 1 AS id, text "
                f"FROM (SELECT DISTINCT * FROM {every})"
            )
            cursor.execute(f"DROP TABLE {every}")
        narrow = gathering.done(known)
        # Rows of a page stand all over the table: this finds them without reading what is around them.
        cursor.execute(f"CREATE INDEX {name}_number ON {name} (number)")
        facets = [
            Facet(*row)
            for row in cursor.execute(
                "SELECT probe, variant, answer_type, question_type, flip, count(*) "
                f"FROM {name} GROUP BY ALL ORDER BY probe, min(place), min(number)"
            ).fetchall()
        ]
        counts = {column: len(hashes) for column, hashes in known.items()}
        table = _Table(name, signature, facets, narrow, counts, " ".join(problems))
        with self._lock:
            before = self._tables.get(run.id)
            self._tables[run.id] = table
            if before is not None:
                self._replaced.append((time.monotonic(), before.name))
        self._forget()
        return table

    def _forget(self) -> None:
        """Drop tables that have been replaced, once nobody can still be reading them."""
        with self._lock:
            gone = [name for since, name in self._replaced if time.monotonic() - since > _KEPT_SECONDS]
            self._replaced = [one for one in self._replaced if one[1] not in gone]
        for name in gone:
            for table in (name, *(f"{name}_{column}" for column in SEARCHED)):
                self._db.cursor().execute(f"DROP TABLE IF EXISTS {table}")


def _signature(files: Sequence[Path]) -> Signature:
    found = []
    for file in files:
        try:
            status = file.stat()
        except OSError:
            continue
        found.append((file.name, status.st_size, status.st_mtime_ns))
    return tuple(found)
