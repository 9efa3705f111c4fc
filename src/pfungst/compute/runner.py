"""`run_shards`: do what is not done yet, somewhere, and say how it went."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path

from pfungst.compute.processes import run_processes
from pfungst.compute.ray import run_ray
from pfungst.compute.shards import ComputeError, Shard, ShardFailure, ShardsFailed, Work, attempt, check_shards
from pfungst.compute.store import Store
from pfungst.core import Place
from pfungst.core.types import Progress, no_progress

DEFAULT_RETRIES = 2
"""How often a shard is tried again that failed, by new workers, after all others."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a backend gets: it yields, for every shard, the path of a complete output or a failure."""

    work: Work
    shards: Sequence[Shard]
    temporary: Callable[[Shard], Path]
    workers: int | None
    devices: tuple[str, ...] = ()


HERE = Place()
_PLACE: ContextVar[Place] = ContextVar("place", default=HERE)


@contextlib.contextmanager
def working(place: Place) -> Iterator[None]:
    """Shards inside are done there, unless they are told another place."""
    token = _PLACE.set(place)
    try:
        yield
    finally:
        _PLACE.reset(token)


def place_of_work() -> Place:
    """Where shards are done that are told nothing else."""
    return _PLACE.get()


def run_shards(
    work: Work,
    shards: Sequence[Shard],
    out_dir: str | os.PathLike[str],
    *,
    on: str | None = None,
    workers: int | None = None,
    progress: Progress = no_progress,
    what: str = "shards",
    version: str = "",
    retries: int = DEFAULT_RETRIES,
) -> list[Path]:
    """Map `work` over `shards` and return the output files, in the order of the shards.

    A shard whose output is already in `out_dir`, with the checksum it was written with and for the same payload, seed
    and `version`, is not done again; a damaged or foreign output is. So after a crash, a kill or Ctrl-C the same call
    goes on where it was.

    Parameters
    ----------
    work : `work(shard) -> bytes`, or `work(shard, path)` that writes the file `path`
    on : where it runs; by default where `working` says, and in this process outside of it
        - `"local"`: this process, one shard after the other (and whatever threads or GPU `work` uses)
        - `"processes"`: worker processes on this machine, one arithmetic thread each
        - `"ray"`: a Ray started for this call on this machine
        - `"ray://HOST:PORT"` (Ray Client), `"HOST:PORT"` or `"auto"`: a Ray cluster that is already there; its nodes
          need the same version of this package, and no file system in common
    workers : shards in work at once; by default as many as there are cores, on a cluster all its cores. Never changes
        the bytes.
    progress : called at the start and after every shard with `what`, the number of shards that are done, and of all
    what : what the shards are, for the progress
    version : anything else the outputs depend on (a model's fingerprint, a format version)
    retries : tries after the first for a shard whose worker died (killed, out of memory) or met an error, after all
        others; a sentence about bad input is not tried again

    Raises
    ------
    ShardsFailed : after all other shards are finished; names each shard that failed and why
    ComputeError : when the work cannot start there at all
    """
    check_shards(shards)
    if workers is not None and workers < 1:
        raise ComputeError(f"At least one worker is needed, not {workers}.")
    if retries < 0:
        raise ComputeError(f"The number of retries cannot be negative: {retries}.")
    place = _PLACE.get() if on is None else Place(on, workers)
    backend = _backend(place.on)
    store = Store(Path(out_dir), version)
    with store.exclusive():
        waiting = [shard for shard in shards if not store.finished(shard)]
        job = Job(work, waiting, store.temporary, workers or place.workers, place.devices)
        failures = _drive(store, job, backend, len(shards), progress, what, retries)
    if failures:
        raise ShardsFailed(failures, len(shards), store.folder)
    return [store.output(shard) for shard in shards]


Outcomes = Generator[tuple[Shard, Path | ShardFailure], None, None]
Backend = Callable[[Job], Outcomes]


def _backend(on: str) -> Backend:
    if on == "local":
        return _run_local
    if on == "processes":
        return run_processes
    host, _, port = on.rpartition(":")
    if on in ("ray", "auto") or on.startswith("ray:") or (host and port.isdecimal()):
        return lambda job: run_ray(job, on)
    raise ComputeError(f"Work cannot run on {on!r}. Choose local, processes, ray, or the address of a Ray cluster.")


def _run_local(job: Job) -> Outcomes:
    """In this process, one shard after the other."""
    for shard in job.shards:
        path = job.temporary(shard)
        yield shard, attempt(job.work, shard, path) or path


def _drive(
    store: Store, job: Job, backend: Backend, total: int, progress: Progress, what: str, retries: int
) -> list[ShardFailure]:
    reused = done = total - len(job.shards)
    failures: list[ShardFailure] = []
    again: list[Shard] = []

    def tell() -> None:
        counts = {"from before": reused, "to be tried again": len(again), "failed": len(failures)}
        notes = [f"{count} {word}" for word, count in counts.items() if count]
        progress(" · ".join([what, ", ".join(notes)]) if notes else what, done, total)

    tell()
    for tries in range(1, retries + 2):
        if not job.shards:
            break
        with contextlib.closing(backend(job)) as outcomes:
            for shard, outcome in outcomes:
                if isinstance(outcome, Path):
                    store.finish(shard, outcome)
                elif outcome.final or tries > retries:
                    times = f" (tried {tries} times)" if tries > 1 else ""
                    failures.append(replace(outcome, reason=outcome.reason + times))
                else:
                    again.append(shard)
                    tell()
                    continue
                done += 1
                tell()
        job, again = replace(job, shards=again), []
    return sorted(failures, key=lambda failure: failure.name)
