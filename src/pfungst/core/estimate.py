"""What a command was estimated to take, kept beside its results and held against what it took."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from time import perf_counter
from typing import Any

from pfungst.core.errors import PfungstError
from pfungst.core.files import read_json, write_json
from pfungst.core.stored import count_answers

FILE = "plan.json"
FILES = (".parquet", ".json", ".jsonl")
"""Endings of results that are files, not folders."""


@dataclass(frozen=True)
class Taken:
    """What a command takes, or took. None: unknown."""

    queries: int | None = None
    """None for work that asks nobody."""
    seconds: float | None = None
    memory: int | None = None
    """Bytes of this process at its peak, the player in it included."""
    disk: int | None = None
    """Bytes of the run folder, or of the file that is written."""


def keep(result: Path, estimate: Taken) -> None:
    """Note an estimate for what is still to be done for a run folder, or a file."""
    write_json(_plan(result), {"estimate": asdict(estimate)})


@contextmanager
def compared(result: Path | None) -> Iterator[Callable[[], tuple[str, ...]]]:
    """Around the work for a run folder or a file: gives a function that notes what it took and says it in a sentence;
    none where nobody made an estimate."""
    if result is None or not _plan(result).exists():
        yield lambda: ()
        return
    plan = _plan(result)
    told = read_json(plan)
    try:
        estimate = Taken(**told["estimate"])
    except (KeyError, TypeError) as error:
        raise PfungstError(f"{plan} is not an estimate that `pfungst plan` wrote. Delete it.") from error
    before, started = count_answers(result), perf_counter()
    if estimate.queries is None and "truth" not in told:
        # What was stopped on the way cannot be told from the results, as stored answers tell it of an exam.
        told["begun"] = told.get("begun", 0) + 1
        write_json(plan, told)

    def finish() -> tuple[str, ...]:
        queries = None if estimate.queries is None else count_answers(result) - before
        if queries == 0 or (queries is None and "truth" in told):  # finished before: this says nothing of the estimate
            return ()
        truth = Taken(queries, perf_counter() - started, peak_memory(), size_of(result))
        write_json(plan, {**told, "truth": asdict(truth)})
        again = " It had been stopped before: this is what was left to do." if told.get("begun", 1) > 1 else ""
        return (_sentence(estimate, truth) + again,)

    yield finish


def _plan(result: Path) -> Path:
    """In a folder, or beside a file."""
    is_file = result.suffix in FILES and not result.is_dir()
    return result.with_name(f"{result.name}.{FILE}") if is_file else result / FILE


def peak_memory() -> int:
    """Bytes of this process at its largest."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def size_of(result: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    return sum(path.stat().st_size for path in (result, *result.rglob("*")) if path.is_file())


def shown_bytes(count: float | None) -> str:
    """`1.2 GB`; unknown where nobody knows."""
    if count is None:
        return "unknown"
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if count >= 100 or unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} TB"


def shown_seconds(seconds: float | None) -> str:
    """`0:02:10`; with tenths below ten seconds."""
    if seconds is None:
        return "unknown"
    return f"{seconds:.1f} s" if seconds < 10 else str(timedelta(seconds=round(seconds)))


def _sentence(estimate: Taken, truth: Taken) -> str:
    parts = [f"{truth.queries:,} queries ({estimate.queries:,} planned)"] if truth.queries is not None else []
    shown: tuple[tuple[str, Callable[[Any], str]], ...] = (
        ("seconds", shown_seconds),
        ("memory", shown_bytes),
        ("disk", shown_bytes),
    )
    for name, show in shown:
        planned, came = getattr(estimate, name), getattr(truth, name)
        if planned:
            parts.append(f"{show(came)}{'' if name == 'seconds' else f' of {name}'} ({show(planned)} planned)")
    return f"It took {', '.join(parts)}."
