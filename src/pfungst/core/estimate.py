"""What a run was estimated to take, kept in its folder and held against what it took."""

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

from pfungst.core.files import read_json, write_json
from pfungst.core.store import AnswerStore

FILE = "plan.json"


@dataclass(frozen=True)
class Taken:
    """What a run takes, or took. None: unknown."""

    queries: int
    seconds: float | None = None
    memory: int | None = None
    """Bytes of this process at its peak, the player in it included."""
    disk: int | None = None
    """Bytes of the run folder."""


def keep(run: Path, estimate: Taken) -> None:
    """Note an estimate for what is still to be done in a run folder."""
    write_json(run / FILE, {"estimate": asdict(estimate)})


@contextmanager
def compared(run: Path) -> Iterator[Callable[[], tuple[str, ...]]]:
    """Around the work of a run: gives a function that notes what it took and says it in a sentence; none where nobody
    made an estimate."""
    plan = run / FILE
    if not plan.exists():
        yield lambda: ()
        return
    told = read_json(plan)
    before, started = _answers(run), perf_counter()

    def finish() -> tuple[str, ...]:
        truth = Taken(_answers(run) - before, perf_counter() - started, peak_memory(), folder_size(run))
        if truth.queries == 0:  # a finished run that only wrote its report again says nothing about the estimate
            return ()
        write_json(plan, {**told, "truth": asdict(truth)})
        return (_sentence(Taken(**told["estimate"]), truth),)

    yield finish


def peak_memory() -> int:
    """Bytes of this process at its largest."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def folder_size(folder: Path) -> int:
    """Bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


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


def _answers(run: Path) -> int:
    path = run / "answers.sqlite"
    if not path.exists():
        return 0
    with AnswerStore(path) as store:
        return len(store)


def _sentence(estimate: Taken, truth: Taken) -> str:
    parts = [f"{truth.queries:,} queries ({estimate.queries:,} planned)"]
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
