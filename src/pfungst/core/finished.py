"""Whether a run is finished: then the same exam need not be done again, for it would come to the same.

`finished.json` names what the run was made of (configuration, code of probes, metric and matcher, version of the
package) and what came out (digests of findings and trials, how many answers). Where any of it is not as it was, or
cannot be known, the exam is done; what the store holds is not asked again.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import FunctionType
from typing import Any

from pfungst.core.errors import PfungstError
from pfungst.core.files import exists, file_digest, jsonable, read_json, write_json
from pfungst.core.settings import restored
from pfungst.core.store import count_answers
from pfungst.core.types import Finding, Findings

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
    trials = {probe: file_digest(run / "trials" / f"{probe}.parquet") for probe in probes}
    write_json(
        run / FILE, Finished(name, file_digest(run / "findings.json"), trials, count_answers(run), unread, total, most)
    )


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
        whole = known.findings == file_digest(run / "findings.json") and count_answers(run) >= known.answers
        if not whole or any(file_digest(run / "trials" / f"{p}.parquet") != was for p, was in known.trials.items()):
            return None
        return known, tuple(findings_of(one) for one in read_json(run / "findings.json")["findings"])
    except (OSError, PfungstError, KeyError, TypeError):
        return None


def _read(run: Path) -> Finished | None:
    try:
        told = read_json(run / FILE)
        return Finished(**{**told, "notes": tuple(told["notes"])})
    except (OSError, PfungstError, TypeError, KeyError):
        return None


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
    return [module, file_digest(Path(source))]


_FINDING = {field.name for field in fields(Finding)}


def findings_of(told: Mapping[str, Any]) -> Findings:
    """A section of findings.json as findings again."""

    def cell(value: Any) -> Any:
        return restored(value, Finding) if isinstance(value, dict) and value.keys() == _FINDING else value

    found: Findings = restored(told, Findings)
    tables = (replace(table, rows=tuple(tuple(map(cell, row)) for row in table.rows)) for table in found.tables)
    return replace(found, tables=tuple(tables))
