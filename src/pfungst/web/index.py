"""All answers of all runs in one DuckDB file, so that a page of a million answers takes a moment.

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
from pfungst.web.reading import SCHEMA, SEARCHED, batches
from pfungst.web.runs import RunFolder
from pfungst.web.wanted import PAGE, Place, Wanted, condition

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
    wrong: int


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
        cursor = self._db.cursor()
        source, values, tables = self._source(runs, wanted, places)
        if not source:
            return Page([], 0, 0, None)
        start, columns = PAGE * (wanted.page - 1), ("part", "number", *wanted.sorted_by)
        total, known, mean, chosen = (self._searched if wanted.text else self._filtered)(
            cursor, source, values, columns, wanted.order, start
        )
        # First which rows, by their narrow columns; then these rows.
        rows = {}
        for part in {part for part, _ in chosen}:
            numbers = [number for one, number in chosen if one == part]
            marks = ",".join("?" * len(numbers))
            wide = cursor.execute(f"SELECT {_SHOWN} FROM {tables[part]} WHERE number IN ({marks})", numbers)
            rows.update({(part, row["number"]): row for row in _dicts(wide)})
        return Page([rows[one] for one in chosen if one in rows], int(total), int(known), mean)

    @staticmethod
    def _filtered(
        cursor: Any, source: str, values: list[Any], columns: Sequence[str], order: str, start: int
    ) -> tuple[int, int, float | None, list[tuple[int, int]]]:
        total, known, mean = cursor.execute(
            f"SELECT count(*), count(score), avg(score) FROM ({source.format(columns='score')})", values
        ).fetchone()
        chosen = cursor.execute(
            f"SELECT part, number FROM ({source.format(columns=', '.join(columns))}) {order} "
            f"LIMIT {PAGE} OFFSET {start}",
            values,
        ).fetchall()
        return total, known, mean, chosen

    @staticmethod
    def _searched(
        cursor: Any, source: str, values: list[Any], columns: Sequence[str], order: str, start: int
    ) -> tuple[int, int, float | None, list[tuple[int, int]]]:
        """The same where finding the rows is what takes time: once."""
        wide = ", ".join(dict.fromkeys((*columns, "score")))
        found = cursor.execute(
            f"SELECT part, number, score FROM ({source.format(columns=wide)}) {order}", values
        ).fetchnumpy()
        part = slice(start, start + PAGE)
        chosen = list(zip(found["part"][part].tolist(), found["number"][part].tolist(), strict=True))
        scores = np.ma.compressed(np.ma.masked_invalid(found["score"]))
        return len(found["number"]), len(scores), float(scores.mean()) if len(scores) else None, chosen

    def example(self, run: RunFolder, example_id: str) -> list[dict[str, Any]]:
        """Every answer of a run about an example, probe by probe, the clean one of each first."""
        table = self._table(run)
        cursor = self._db.cursor()
        found = cursor.execute(
            f"SELECT {_SHOWN} FROM {table.name} WHERE example_id = ? ORDER BY probe, trial, place LIMIT 2000",
            [example_id],
        )
        return list(_dicts(found))

    def row(self, run: RunFolder, place: Place) -> dict[str, Any] | None:
        """The answer at a place."""
        table = self._table(run)
        found = self._db.cursor().execute(
            f"SELECT {_SHOWN} FROM {table.name} WHERE example_id = ? AND probe = ? AND variant = ? LIMIT 1",
            [place.example_id, place.probe, place.variant],
        )
        return next(_dicts(found), None)

    def neighbours(
        self, run: RunFolder, wanted: Wanted, at: int
    ) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """The answers before and after number `at` of a run, among those wanted: to walk from failure to failure."""
        source, values, _ = self._source([run], wanted, None)
        if not source:
            return None, None
        found: list[dict[str, Any] | None] = []
        for sign, way in (("<", "DESC"), (">", "ASC")):
            cursor = self._db.cursor().execute(
                f"SELECT * FROM ({source.format(columns=_SHOWN)}) WHERE number {sign} ? ORDER BY number {way} LIMIT 1",
                [*values, at],
            )
            found.append(next(_dicts(cursor), None))
        return found[0], found[1]

    def _source(
        self, runs: Sequence[RunFolder], wanted: Wanted, places: Sequence[Place] | None
    ) -> tuple[str, list[Any], list[str]]:
        """A SELECT over the tables of the runs, with {columns} to be filled in, its values, and the tables: the column
        `part` says which of them a row is from."""
        where, values = condition(wanted)
        parts, all_values, tables = [], [], []
        for run in runs:
            table = self._table(run)
            if wanted.probe and not any(facet.probe == wanted.probe for facet in table.facets):
                continue
            extra, more = "", []
            if places is not None:
                mine = [place for place in places if place.run == run.id]
                if not mine:
                    continue
                extra = f" AND (probe, example_id, variant) IN ({','.join(['(?,?,?)'] * len(mine))})"
                more = [text for place in mine for text in (place.probe, place.example_id, place.variant)]
            own = where.replace("@", f"{table.name}_")
            whole = f"(SELECT {len(tables)}::INTEGER AS part, * FROM {table.name})"
            parts.append(f"SELECT {{columns}} FROM {whole} WHERE {own}{extra}")
            tables.append(table.name)
            all_values += [*values, *more]
        return " UNION ALL ".join(parts), all_values, tables

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
        # Many rows ask and say the same: a text is searched once, and found in the rows by its hash.
        kinds = {column: "UBIGINT" if column in SEARCHED else kind for column, kind in SCHEMA.items()}
        cursor.execute(f"CREATE TABLE {name} ({', '.join(f'{column} {kind}' for column, kind in kinds.items())})")
        hashed = ", ".join(f"hash({column})" if column in SEARCHED else column for column in SCHEMA)
        for column in SEARCHED:
            cursor.execute(f"CREATE TABLE {name}_all_{column} (hash UBIGINT, text VARCHAR)")
        problems, number = [], 0
        for file in files:
            try:
                for batch in batches(run, file, number):
                    number += batch.num_rows
                    cursor.register("incoming", batch)
                    cursor.execute(f"INSERT INTO {name} SELECT {hashed} FROM incoming")
                    for column in SEARCHED:
                        texts = f"SELECT DISTINCT hash({column}), {column} FROM incoming"
                        cursor.execute(f"INSERT INTO {name}_all_{column} {texts}")
                    cursor.unregister("incoming")
            except PfungstError as error:
                problems.append(str(error))
        for column in SEARCHED:
            cursor.execute(f"CREATE TABLE {name}_{column} AS SELECT DISTINCT * FROM {name}_all_{column}")
            cursor.execute(f"DROP TABLE {name}_all_{column}")
        # Rows of a page stand all over the table: this finds them without reading what is around them.
        cursor.execute(f"CREATE INDEX {name}_number ON {name} (number)")
        facets = [
            Facet(*row)
            for row in cursor.execute(
                "SELECT probe, variant, answer_type, question_type, flip, count(*), count(*) FILTER (score = 0) "
                f"FROM {name} GROUP BY ALL ORDER BY probe, min(place), min(number)"
            ).fetchall()
        ]
        table = _Table(name, signature, facets, " ".join(problems))
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


def _dicts(cursor: Any) -> Iterator[dict[str, Any]]:
    names = [column[0] for column in cursor.description]
    for row in cursor.fetchall():
        yield dict(zip(names, row, strict=True))
