"""All answers of all runs, asked for by SQL: DuckDB reads the tables of the runs, and keeps nothing of them.

`Wanted` is what the address of a page asks for. What is known about a run's tables (which of them can be read, what
they hold how often) is found out when somebody first asks, and again when its files change. Nothing that a visitor
writes becomes SQL.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from pfungst.core import MissingExtra, PfungstError, Run
from pfungst.core.trials import COLUMNS
from pfungst.web.runs import RunFolder

PAGE = 40
"""Answers on a page."""
DEEPEST = 5_000
"""Last page that can be asked for: beyond it a filter finds more than leafing does."""
OUTCOMES = {
    "wrong": "wrong",
    "right": "right",
    "partly": "partly right",
    "unread": "could not be read",
    "unknown": "no right answer known",
}
"""Name to words."""
SORTS = {
    "": "as asked",
    "sure": "most confident first",
    "unsure": "least confident first",
    "loss": "largest loss first",
    "long": "longest reply first",
}
"""Name to words."""


CODED = {"probe": "probe", "variant": "variant", "flip": "flip", "kind": "answer_type", "question": "question_type"}
"""Fields of `Wanted` that ask for one value, and their columns."""
_OUTCOMES = {
    "wrong": "score = 0", "right": "score > 0", "partly": "score > 0 AND score < 1", "unread": "unread",
    "unknown": "score IS NULL",
}  # fmt: skip
_SEARCHED = ("question", "reply", "answer", "target", "example_id")


@dataclass(frozen=True)
class Place:
    """Where an answer stands; an example has one answer there."""

    run: str
    probe: str
    example_id: str
    variant: str

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Place:
        return cls(row["run"], row["probe"], row["example_id"], row["variant"])


@dataclass(frozen=True)
class Wanted:
    """What the address of a page asks for; an empty field asks for all."""

    probe: str = ""
    variant: str = ""
    outcome: str = ""
    flip: str = ""
    kind: str = ""
    """Answer type."""
    question: str = ""
    """Question type."""
    text: str = ""
    """In the question, the reply, the right answer or the id, upper and lower case alike."""
    tag: str = ""
    sort: str = ""
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Wanted:
        """From the query of an address; what makes no sense asks for nothing."""
        words = {field.name: str(query.get(field.name, ""))[:500] for field in fields(cls) if field.name != "page"}
        number = query.get("page", "1")
        page = int(number) if number.isascii() and number.isdecimal() and len(number) < 9 else 1
        wanted = cls(**words, page=min(max(1, page), DEEPEST))
        return replace(
            wanted,
            outcome=wanted.outcome if wanted.outcome in OUTCOMES else "",
            sort=wanted.sort if wanted.sort in SORTS else "",
        )

    @property
    def words(self) -> list[str]:
        """What is looked for in texts, in small letters: the text as a whole, or the parts that quotes make of it."""
        text = self.text.lower()
        return [word.strip() for word in (text.split('"') if '"' in text else [text]) if word.strip()]

    @property
    def conditions(self) -> list[tuple[str, list[Any]]]:
        """SQL over the columns of a table of trials, and the values for its marks."""
        found: list[tuple[str, list[Any]]] = [
            (f"{column} = ?", [getattr(self, field)]) for field, column in CODED.items() if getattr(self, field)
        ]
        if self.outcome:
            found.append((_OUTCOMES[self.outcome], []))
        holds = " OR ".join(f"contains(lower({column}), ?)" for column in _SEARCHED)
        return found + [(holds, [word] * len(_SEARCHED)) for word in self.words]

    def query(self, **changes: Any) -> dict[str, str]:
        """The query of the address, with these changes; a change other than of the page leads to the first page."""
        changed = replace(self, **({"page": 1} | changes))
        return {
            name: str(value)
            for name, value in asdict(changed).items()
            if value not in ("", 1 if name == "page" else "")
        }


def is_right(score: float | None) -> bool | None:
    """Right means a score above 0, as in every count of flips; None where the truth is unknown."""
    return None if score is None or math.isnan(score) else score > 0


_MOST_OF_ONE = 2000
"""Answers about one example that are shown."""
_LOOK_SECONDS = 0.5
"""How long a table is believed to be that of its files."""
_ORDERS = {
    "": "turn, number",
    "sure": "confidence DESC NULLS LAST, turn, number",
    "unsure": "confidence NULLS LAST, turn, number",
    "loss": "score - clean_score NULLS LAST, turn, number",
    "long": "length DESC, turn, number",
}
Signature = tuple[tuple[str, int, int], ...]
Row = dict[str, Any]


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
class Share:
    """The wanted answers of one run under one condition."""

    run: str
    probe: str
    variant: str
    count: int
    known: int
    """Answers with a known score."""
    mean: float | None
    """Mean score of these."""


@dataclass(frozen=True)
class Page:
    """A page of answers, and what holds for all that were wanted."""

    rows: list[Row]
    shares: list[Share]

    @property
    def total(self) -> int:
        return sum(share.count for share in self.shares)

    @property
    def pages(self) -> int:
        return max(1, -(-self.total // PAGE))


@dataclass
class _Known:
    """What is known about the tables of a run."""

    signature: Signature
    source: str
    """SQL of all its answers; empty where there are none."""
    facets: list[Facet]
    problem: str = ""
    looked_at: float = 0.0
    """When its files were last looked at."""


class Index:
    """The answers of runs. One for a server; safe to use from many threads."""

    def __init__(self) -> None:
        try:
            import duckdb
        except ImportError:
            raise MissingExtra("The explorer", "web") from None
        self._db = duckdb.connect(
            ":memory:",
            config={
                "threads": "2",
                "memory_limit": "2GB",
                "autoload_known_extensions": "false",
                "autoinstall_known_extensions": "false",
            },
        )
        self._lock = threading.Lock()
        self._looking: dict[str, threading.Lock] = {}
        self._runs: dict[str, _Known] = {}

    def close(self) -> None:
        self._db.close()

    def facets(self, run: RunFolder) -> list[Facet]:
        return self._known(run).facets

    def versions(self, runs: Sequence[RunFolder]) -> tuple[Signature, ...]:
        """What changes with what is known about these runs."""
        return tuple(self._known(run).signature for run in runs)

    def problem(self, run: RunFolder) -> str:
        """Why (some of) the trials of a run cannot be shown; empty where they can."""
        return self._known(run).problem

    def page(self, runs: Sequence[RunFolder], wanted: Wanted, places: Sequence[Place] | None = None) -> Page:
        """A page of the wanted answers of these runs.

        places: only answers at these places, such as those with a tag; None for all.
        """
        sources = [(turn, source) for turn, run in enumerate(runs) if (source := self._known(run).source)]
        if not sources or places == []:
            return Page([], [])
        every = " UNION ALL ".join(f"SELECT {turn} AS turn, * FROM ({source})" for turn, source in sources)
        where, values = _where(wanted, places)
        cursor = self._db.cursor()
        found = (
            "SELECT turn, run, probe, variant, number, trial, score, clean_score, confidence, length(reply) AS length "
            f"FROM ({every}) WHERE {where}"
        )
        if wanted.words:  # a search takes long: once for the shares and for the page
            cursor.execute(f"CREATE TEMP TABLE found AS {found}", values)
            found, values = "FROM found", []
        shares = cursor.execute(
            f"SELECT run, probe, variant, count(*), count(score), avg(score) FROM ({found}) "
            "GROUP BY turn, run, probe, variant ORDER BY turn, min(number)",
            values,
        ).fetchall()
        start = PAGE * (wanted.page - 1)
        chosen = cursor.execute(
            f"SELECT turn, probe, trial, number FROM ({found}) ORDER BY {_ORDERS[wanted.sort]} "
            f"LIMIT {PAGE} OFFSET {start}",
            values,
        ).fetchall()
        rows: dict[tuple[int, int], Row] = {}
        for turn, source in sources:
            trials = {(probe, trial) for at, probe, trial, _ in chosen if at == turn}
            rows.update({(turn, row["number"]): row for row in self._trials(source, trials)})
        shown = [rows[turn, number] for turn, _, _, number in chosen if (turn, number) in rows]
        return Page(shown, [Share(*share) for share in shares])

    def example(self, run: RunFolder, example_id: str) -> list[Row]:
        """Every answer of a run about an example, probe by probe, the clean one of each first."""
        where = f"example_id = ? ORDER BY probe, trial, place LIMIT {_MOST_OF_ONE}"
        return _with_clean(self._select(self._known(run).source, where, [example_id]))

    def row(self, run: RunFolder, place: Place) -> Row | None:
        """The answer at a place."""
        where = "example_id = ? AND probe = ? AND variant = ? ORDER BY number LIMIT 1"
        source = self._known(run).source
        found = list(self._select(source, where, [place.example_id, place.probe, place.variant]))
        return self._at(source, found[0]["number"]) if found else None

    def neighbours(self, run: RunFolder, wanted: Wanted, at: int) -> tuple[Row | None, Row | None]:
        """The answers before and after number `at` of a run, among those wanted: to walk from failure to failure."""
        source = self._known(run).source
        if not source:
            return None, None
        where, values = _where(wanted, None)
        sides = f"max(number) FILTER (number < {at:d}), min(number) FILTER (number > {at:d})"
        found = self._db.cursor().execute(f"SELECT {sides} FROM ({source}) WHERE {where}", values).fetchone()
        before, after = (None if one is None else self._at(source, one) for one in found or (None, None))
        return before, after

    def _at(self, source: str, number: int) -> Row | None:
        found = next(self._select(source, "number = ?", [number]), None)
        if found is None:
            return None
        return next(row for row in self._trials(source, {(found["probe"], found["trial"])}) if row["number"] == number)

    def _trials(self, source: str, trials: set[tuple[str, int]]) -> list[Row]:
        """All answers of these trials."""
        if not trials:
            return []
        marks = ",".join(["(?,?)"] * len(trials))
        numbers = [trial for _, trial in trials]
        # The bounds let DuckDB pass over row groups, which a list of pairs does not.
        where = f"trial BETWEEN {min(numbers):d} AND {max(numbers):d} AND (probe, trial) IN ({marks})"
        return _with_clean(self._select(source, where, [part for one in sorted(trials) for part in one]))

    def _select(self, source: str, where: str, values: Sequence[Any]) -> Iterator[Row]:
        if not source:
            return iter(())
        found = self._db.cursor().execute(f"SELECT * FROM ({source}) WHERE {where}", values)
        names = [column[0] for column in found.description]
        return (dict(zip(names, row, strict=True)) for row in found.fetchall())

    def _known(self, run: RunFolder) -> _Known:
        """What is known about a run; found out where nothing is, and again where its files have changed."""
        with self._lock:
            looking = self._looking.setdefault(run.id, threading.Lock())
        with looking:  # whoever comes second finds it done
            known = self._runs.get(run.id)
            if known is not None and time.monotonic() - known.looked_at < _LOOK_SECONDS:
                return known
            files = run.trials()
            signature = _signature(files)
            if known is None or known.signature != signature:
                known = self._runs[run.id] = self._look(run, files, signature)
            known.looked_at = time.monotonic()
            return known

    def _look(self, run: RunFolder, files: Sequence[Path], signature: Signature) -> _Known:
        """Read the tables of a run once, with their checksums."""
        read = Run(run.path, run.label)
        parts, problems, facets, first = [], [], [], 0
        for file in files:
            try:
                count = read.check(file.stem)
                part = _source(run.id, file, first)
                found = self._db.cursor().execute(
                    "SELECT probe, variant, answer_type, question_type, coalesce(flip, ''), count(*) "
                    f"FROM ({part}) GROUP BY ALL ORDER BY min(place), min(number)"
                )
                facets += [Facet(*row) for row in found.fetchall()]
            except (PfungstError, self._errors()) as error:
                problems.append(f"{file.stem}: {error}")
                continue
            parts.append(part)
            first += count
        return _Known(signature, " UNION ALL ".join(parts), facets, " ".join(problems))

    @staticmethod
    def _errors() -> type[Exception]:
        import duckdb

        errors: type[Exception] = duckdb.Error
        return errors


def _source(run: str, file: Path, first: int) -> str:
    """SQL of the answers in a file. first: number of its first row."""
    columns = ", ".join(f'"{name}"' for name in COLUMNS)
    return (
        f"SELECT {columns}, {_text(run)} AS run, {_text(file.stem)} AS probe, file_row_number + {first:d} AS number "
        f"FROM read_parquet({_text(str(file.absolute()))}, file_row_number = true)"
    )


def _text(value: str) -> str:
    """Text of ours as SQL: names of runs and files, never what a visitor writes."""
    return "'" + value.replace("'", "''") + "'"


def _where(wanted: Wanted, places: Sequence[Place] | None) -> tuple[str, list[Any]]:
    """SQL of what is wanted, with the values for its marks."""
    conditions = wanted.conditions
    if places is not None:
        marks = ",".join(["(?,?,?,?)"] * len(places))
        named = [text for one in places for text in (one.run, one.probe, one.example_id, one.variant)]
        conditions.append((f"(run, probe, example_id, variant) IN ({marks})", named))
    where = " AND ".join(["true", *(f"({sql})" for sql, _ in conditions)])
    return where, [value for _, values in conditions for value in values]


def _with_clean(rows: Iterator[Row]) -> list[Row]:
    """The answers of whole trials, each with what the clean question got."""
    found = list(rows)
    clean: Mapping[tuple[str, int], Row] = {(row["probe"], row["trial"]): row for row in found if not row["place"]}
    for row in found:
        first = clean.get((row["probe"], row["trial"]), row)
        row["clean_answer"], row["other_image"] = first["answer"], row["image"] != first["image"]
    return found


def _signature(files: Sequence[Path]) -> Signature:
    found = []
    for file in files:
        try:
            status = file.stat()
        except OSError:
            continue
        found.append((file.name, status.st_size, status.st_mtime_ns))
    return tuple(found)
