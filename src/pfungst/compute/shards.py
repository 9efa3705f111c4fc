"""`run_shards`: one function mapped over shards, somewhere, so that what is finished is never done again.

A shard is one piece of work with a name, a payload and a seed of its own. `NAME` is its output and `.done/NAME.json`
the record of the output's checksum. Each is written to a temporary file, flushed to the disk and renamed, the record
last, so a machine that stops at any instant leaves either a finished shard or an unfinished one.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import os
import secrets
import shutil
import tempfile
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pfungst.compute.devices import environment, kind
from pfungst.compute.pool import ComputeError, Death, Pool, Stillborn, Workers
from pfungst.compute.processes import ProcessWorkers
from pfungst.compute.ray import RayWorkers
from pfungst.core import Needs, PfungstError, Place
from pfungst.core.errors import StoreError
from pfungst.core.files import file_digest, is_plain_name, publish, write_atomic
from pfungst.core.threads import available_cores
from pfungst.core.types import Progress, no_progress

DEFAULT_RETRIES = 2
"""How often a shard is tried again that failed, by new workers, after all others."""

Work = Callable[["Shard"], bytes] | Callable[["Shard", Path], None]
"""What is done with a shard: `work(shard)` returns the output as bytes, or `work(shard, path)` writes it to `path`.

A pure function of the shard. For processes and Ray it must be importable by name (a function at the top of a module,
or a `functools.partial` of one).
"""


@dataclass(frozen=True, slots=True)
class ShardFailure:
    """One shard that could not be finished."""

    name: str
    reason: str
    """One line: what went wrong."""
    details: str = ""
    """The traceback, where there is one."""
    final: bool = False
    """It would fail again: the reason is a sentence about what it was given."""


class ShardsFailed(ComputeError):
    """Some shards failed. The others are finished and will not be done again."""

    def __init__(self, failures: Sequence[ShardFailure], total: int, out_dir: Path) -> None:
        self.failures = tuple(failures)
        shown = "".join(f"\n  {one.name}: {one.reason}" for one in self.failures[:10])
        more = f"\n  and {len(self.failures) - 10} more" if len(self.failures) > 10 else ""
        super().__init__(
            f"{len(self.failures)} of {total} shards failed; the others are kept in {out_dir}, and the same command "
            f"tries only the failed ones again.{shown}{more}"
        )


@dataclass(frozen=True, slots=True)
class Shard:
    """One piece of a long computation. Equal shards must give equal outputs."""

    index: int
    """Position among all shards, from 0; the outputs come back in this order."""
    name: str
    """The name of its output file, unique among the shards."""
    payload: Any = None
    """What to work on; anything JSON can hold. Keep it small: a range of a file, not its content."""
    seed: int = 0
    """The seed of the whole computation, the same in every shard."""

    def seed_sequence(self) -> np.random.SeedSequence:
        """Randomness of this shard alone: child number `index` of the seed, whoever else draws what."""
        return np.random.SeedSequence(self.seed, spawn_key=(self.index,))

    def rng(self) -> np.random.Generator:
        """A fresh generator from `seed_sequence()`."""
        return np.random.default_rng(self.seed_sequence())

    def key(self, version: str) -> str:
        """Names what the output depends on; a finished output is used again only under the same key."""
        try:
            text = json.dumps([version, self.index, self.name, self.payload, self.seed], sort_keys=True)
        except (TypeError, ValueError) as error:
            raise ComputeError(f"The payload of shard {self.name} cannot be written as JSON ({error}).") from error
        return hashlib.sha256(text.encode()).hexdigest()


def make_shards(payloads: Iterable[Any], *, name: str = "part-{index:05d}.bin", seed: int = 0) -> list[Shard]:
    """One shard a payload, named by the pattern `name`."""
    return [Shard(index, name.format(index=index), payload, seed) for index, payload in enumerate(payloads)]


def split_range(count: int, size: int) -> list[dict[str, int]]:
    """Payloads `{"start": i, "stop": j}` that cut `range(count)` into pieces of `size`.

    The cut depends on the amount of work and never on the number of workers, which is why results don't either.
    """
    if size < 1:
        raise ComputeError(f"A shard must hold at least one item, not {size}.")
    return [{"start": start, "stop": min(start + size, count)} for start in range(0, count, size)]


def check_shards(shards: Sequence[Shard]) -> None:
    """Refuse names that collide or leave the output folder."""
    seen: set[str] = set()
    for shard in shards:
        if not is_plain_name(shard.name):
            raise ComputeError(f"{shard.name!r} cannot be the name of a shard: it must be a plain file name.")
        if shard.name in seen:
            raise ComputeError(f"Two shards are named {shard.name}: names must be unique.")
        seen.add(shard.name)


def perform(work: Work, shard: Shard, path: Path) -> None:
    """Do one shard and leave its output, whole or not at all trusted yet, at `path`."""
    if _writes_itself(work):
        work(shard, path)  # type: ignore[call-arg]
        if not path.is_file():
            raise ComputeError(f"The work on {shard.name} ended without writing its output.")
        return
    data = work(shard)  # type: ignore[call-arg]
    if not isinstance(data, bytes | bytearray | memoryview):
        raise ComputeError(f"The work on {shard.name} must return bytes, not {type(data).__name__}.")
    path.write_bytes(data)


def attempt(work: Work, shard: Shard, path: Path) -> ShardFailure | None:
    """Do one shard; an exception becomes a failure that can be told and sent."""
    try:
        perform(work, shard, path)
    except Exception as error:
        path.unlink(missing_ok=True)
        said = str(error).strip()
        reason = f"{type(error).__name__}: {said}" if said else type(error).__name__
        final = isinstance(error, PfungstError) and not isinstance(error, StoreError)
        return ShardFailure(shard.name, reason, traceback.format_exc(), final)
    return None


def _writes_itself(work: Work) -> bool:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(work).parameters.values()
    return sum(one.kind in kinds and one.default is inspect.Parameter.empty for one in parameters) >= 2


class Store:
    """The outputs of one computation in one folder."""

    def __init__(self, folder: Path, version: str) -> None:
        self.folder = folder
        self.version = version
        self.records: Path = folder / ".done"
        self.scratch: Path = folder / ".tmp"
        self.records.mkdir(parents=True, exist_ok=True)
        self.scratch.mkdir(exist_ok=True)

    def output(self, shard: Shard) -> Path:
        return self.folder / shard.name

    def temporary(self, shard: Shard) -> Path:
        """A new path for an output in the making, on the same file system as its place."""
        return self.scratch / f"{secrets.token_hex(4)}-{shard.name}"

    def finished(self, shard: Shard) -> bool:
        """Whether the output is there, is of this very shard, and has the bytes it was written with."""
        try:
            record = json.loads(self._record(shard).read_bytes())
            return bool(
                record["key"] == shard.key(self.version)
                and record["bytes"] == self.output(shard).stat().st_size
                and record["sha256"] == file_digest(self.output(shard))
            )
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def finish(self, shard: Shard, temporary: Path) -> None:
        """Take over an output that is complete at `temporary`."""
        record = {
            "key": shard.key(self.version),
            "bytes": temporary.stat().st_size,
            "sha256": file_digest(temporary),
        }
        publish(temporary, self.output(shard))
        write_atomic(self._record(shard), json.dumps(record).encode())

    def _record(self, shard: Shard) -> Path:
        return self.records / f"{shard.name}.json"

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the folder against a second run of the same command, and sweep what a killed one left."""
        with open(self.folder / ".lock", "wb") as lock:
            try:
                import fcntl

                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except ImportError:  # Not a POSIX system; temporary names are unique, so two runs only waste time there.
                pass
            except BlockingIOError as error:
                raise ComputeError(
                    f"Another run is working in {self.folder}. Wait for it, or choose another folder."
                ) from error
            except OSError as error:
                raise ComputeError(
                    f"{self.folder} cannot be locked ({error.strerror}), as on some network drives. Choose a folder on "
                    "another disk."
                ) from error
            for left in [*self.scratch.iterdir(), *self.records.glob(".*.tmp")]:
                shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)
            yield


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
    _check_place(place.on)
    place = replace(place, workers=workers or place.workers)
    store = Store(Path(out_dir), version)
    with store.exclusive():
        waiting = [shard for shard in shards if not store.finished(shard)]
        do = partial(_outcomes, work, store, place)
        failures = _drive(store, do, waiting, len(shards), progress, what, retries)
    if failures:
        raise ShardsFailed(failures, len(shards), store.folder)
    return [store.output(shard) for shard in shards]


Outcomes = Generator[tuple[Shard, Path | ShardFailure], None, None]


def _drive(
    store: Store,
    do: Callable[[Sequence[Shard]], Outcomes],
    shards: Sequence[Shard],
    total: int,
    progress: Progress,
    what: str,
    retries: int,
) -> list[ShardFailure]:
    reused = done = total - len(shards)
    failures: list[ShardFailure] = []
    again: list[Shard] = []

    def tell() -> None:
        counts = {"from before": reused, "to be tried again": len(again), "failed": len(failures)}
        notes = [f"{count} {word}" for word, count in counts.items() if count]
        progress(" · ".join([what, ", ".join(notes)]) if notes else what, done, total)

    tell()
    for tries in range(1, retries + 2):
        if not shards:
            break
        with contextlib.closing(do(shards)) as outcomes:
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
        shards, again = again, []
    return sorted(failures, key=lambda failure: failure.name)


def _outcomes(work: Work, store: Store, place: Place, shards: Sequence[Shard]) -> Outcomes:
    """For every shard the path of a complete output, or a failure."""
    if place.on == "local":
        for shard in shards:
            path = store.temporary(shard)
            yield shard, attempt(work, shard, path) or path
        return
    workers, count = _workers(work, store, place)
    pool: Pool[Shard] = Pool(workers, count)
    paths: dict[str, Path] = {}

    def message(shard: Shard) -> tuple[Shard, Path | None]:
        path = paths[shard.name] = store.temporary(shard)
        return shard, path if workers.files else None

    try:
        for _, shard, outcome in pool.run(shards, message):
            path = paths[shard.name]
            if isinstance(outcome, Death):
                yield shard, ShardFailure(shard.name, f"its worker died ({outcome.how})")
            elif isinstance(outcome, ShardFailure):
                yield shard, outcome
            else:
                if outcome is not None:
                    path.write_bytes(outcome)
                yield shard, path
    except Stillborn as error:
        raise ComputeError(
            f"The workers die before they start ({error}); see their error above. If the work is started from a "
            'script, the script needs `if __name__ == "__main__":`, and the work must be importable by name.'
        ) from None
    finally:
        pool.close()


def _workers(work: Work, store: Store, place: Place) -> tuple[Workers, int]:
    """Where the workers come from, and how many there can be."""
    if place.on == "processes":
        devices = [environment(device) for device in place.devices]
        count = place.workers or len(devices) or available_cores()
        return ProcessWorkers(HeldWork(work), devices=devices, folder=store.scratch), count
    gpus = 1.0 if any(kind(device) == "cuda" for device in place.devices) else 0.0
    cluster = RayWorkers(HeldWork(work), place.on, place.workers, Needs(gpus))
    return cluster, place.workers or max(1, cluster.room())


def _check_place(on: str) -> None:
    host, _, port = on.rpartition(":")
    if on in ("local", "processes", "ray", "auto") or on.startswith("ray:") or (host and port.isdecimal()):
        return
    raise ComputeError(f"Work cannot run on {on!r}. Choose local, processes, ray, or the address of a Ray cluster.")


@dataclass(frozen=True)
class HeldWork:
    """What a worker holds to do shards."""

    work: Work

    def __call__(self) -> HeldWork:
        return self

    def about(self) -> None:
        """Nothing needs to be known."""

    def do(self, shard: Shard, path: Path | None) -> ShardFailure | bytes | None:
        """A failure, or else None where the output lies at `path`; without a path the output itself."""
        if path is not None:
            return attempt(self.work, shard, path)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / shard.name
            return attempt(self.work, shard, path) or path.read_bytes()
