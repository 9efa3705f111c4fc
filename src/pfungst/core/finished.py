"""Whether a run is finished: then the same exam need not be done again, for it would come to the same.

`finished.json` names what the run was made of (configuration, code of probes, metric and matcher, version of the
package) and what came out (digests of findings and trials, how many answers). Where any of it is not as it was, or
cannot be known, the exam is done; what the store holds is not asked again.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import FunctionType
from typing import Any

from pfungst.core.errors import PfungstError
from pfungst.core.files import exists, jsonable, read_json, write_json
from pfungst.core.stored import opened
from pfungst.core.types import Failure, Figure, Finding, Findings, Series, Table

FILE = "finished.json"


@dataclass(frozen=True)
class Finished:
    """What a finished run says of itself."""

    made_of: str
    findings: str
    """Digest of findings.json."""
    trials: Mapping[str, str]
    """Digest of the trials of each probe."""
    answers: int
    """In the store, at least."""
    unread: int
    total: int
    most: int
    notes: tuple[str, ...] = ()
    """What the user was told about the numbers."""


class _Unknown(Exception):
    """Something whose behaviour no digest can tell."""


def made_of(config: Mapping[str, Any], parts: Sequence[object]) -> str:
    """Names an exam by its configuration and the code of its parts; empty where it cannot be told."""
    if not config["data"]["fingerprint"]:
        return ""
    try:
        named = [jsonable(config), _package(), [_named(part) for part in parts]]
    except _Unknown:
        return ""
    return hashlib.sha256(json.dumps(named, sort_keys=True, default=str).encode()).hexdigest()


def finish(run: Path, name: str, probes: Sequence[str], *, unread: int, total: int, most: int) -> None:
    """Note that a run is finished."""
    trials = {probe: _digest(run / "trials" / f"{probe}.parquet") for probe in probes}
    write_json(run / FILE, Finished(name, _digest(run / "findings.json"), trials, _answers(run), unread, total, most))


def note(run: Path, notes: Sequence[str]) -> None:
    """Keep what the user was told about a finished run."""
    known = _read(run)
    if known is not None and known.notes != tuple(notes):
        write_json(run / FILE, replace(known, notes=tuple(notes)))


def finished(run: Path, name: str) -> tuple[Finished, tuple[Findings, ...]] | None:
    """The finished run of that name and its findings; None where it is not there as it was."""
    known = _read(run) if name else None
    if known is None or known.made_of != name:
        return None
    try:
        whole = known.findings == _digest(run / "findings.json") and _answers(run) >= known.answers
        if not whole or any(_digest(run / "trials" / f"{p}.parquet") != was for p, was in known.trials.items()):
            return None
        return known, tuple(_findings(one) for one in read_json(run / "findings.json")["findings"])
    except (OSError, PfungstError, KeyError, TypeError):
        return None


def _read(run: Path) -> Finished | None:
    try:
        told = read_json(run / FILE)
        return Finished(**{**told, "notes": tuple(told["notes"])})
    except (OSError, PfungstError, TypeError, KeyError):
        return None


def _answers(run: Path) -> int:
    with opened(run) as db:
        if db is None:
            return 0
        try:
            return int(db.execute("SELECT coalesce(sum(length(heads)), 0) / 8 FROM batches").fetchone()[0])
        except sqlite3.Error:
            return 0


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@cache
def _package() -> str:
    """The package's own code, as far as sizes and times of its files tell."""
    root = Path(__file__).parents[1]
    files = sorted((str(path.relative_to(root)), path.stat()) for path in root.rglob("*.py"))
    return hashlib.sha256(repr([(name, at.st_size, at.st_mtime_ns) for name, at in files]).encode()).hexdigest()


def _named(part: object) -> Any:
    """What tells a part of an exam from another."""
    if part is None or isinstance(part, int | float | bool):
        return part
    if isinstance(part, str):
        return [part, _file(Path(part))] if exists(part) else part
    if isinstance(part, tuple | list | frozenset):
        return [_named(one) for one in (sorted(part) if isinstance(part, frozenset) else part)]
    if isinstance(part, Path):
        return [str(part), _file(part) if exists(part) else None]
    if isinstance(part, Mapping):
        return [[_named(key), _named(value)] for key, value in part.items()]
    if isinstance(part, partial):
        return ["partial", _named(part.func), _named(part.args), [[k, _named(v)] for k, v in part.keywords.items()]]
    if isinstance(part, FunctionType):
        cells = [cell.cell_contents for cell in part.__closure__ or ()]
        return [_code(part.__module__), part.__qualname__, _named(cells), _named(part.__defaults__ or ())]
    if is_dataclass(part) and not isinstance(part, type):
        kind = type(part)
        return [
            _code(kind.__module__),
            kind.__qualname__,
            [[f.name, _named(getattr(part, f.name))] for f in fields(part)],
        ]
    raise _Unknown


def _file(path: Path) -> list[int]:
    if not path.is_file():
        raise _Unknown  # a folder: nobody knows what in it matters
    at = path.stat()
    return [at.st_size, at.st_mtime_ns]


def _code(module: str) -> list[str]:
    """A module and its code; that of the package is known as a whole."""
    if module.partition(".")[0] == __name__.partition(".")[0]:
        return [module]
    source = getattr(sys.modules.get(module), "__file__", None)
    if source is None or module == "__main__":
        raise _Unknown
    return [module, _digest(Path(source))]


# --- findings.json as findings again: what is None there was NaN, where a number belongs ------------------------------


def _number(value: Any) -> Any:
    return float("nan") if value is None else value


def _finding(told: Mapping[str, Any]) -> Finding:
    numbers = {name: _number(told[name]) for name in ("value", "low", "high", "at_least", "at_most")}
    return Finding(**{**told, **numbers})


_FINDING = {field.name for field in fields(Finding)}


def _cell(value: Any) -> Any:
    return _finding(value) if isinstance(value, dict) and value.keys() == _FINDING else value


def _table(told: Mapping[str, Any]) -> Table:
    rows = tuple(tuple(map(_cell, row)) for row in told["rows"])
    return Table(**{**told, "columns": tuple(told["columns"]), "rows": rows})


def _figure(told: Mapping[str, Any]) -> Figure:
    lines = [(one["name"], *(one[axis] for axis in ("x", "y", "low", "high"))) for one in told["series"]]
    series = tuple(Series(name, tuple(x), *(tuple(map(_number, some)) for some in rest)) for name, x, *rest in lines)
    return Figure(**{**told, "series": series})


def _findings(told: Mapping[str, Any]) -> Findings:
    heads = {name: None if told[name] is None else _finding(told[name]) for name in ("clean", "disturbed", "drop")}
    return Findings(
        told["probe"],
        tuple(map(_finding, told["rows"])),
        told["verdict"],
        **heads,
        tables=tuple(map(_table, told["tables"])),
        figures=tuple(map(_figure, told["figures"])),
        failures=tuple(Failure(**{**one, "loss": _number(one["loss"])}) for one in told["failures"]),
    )
