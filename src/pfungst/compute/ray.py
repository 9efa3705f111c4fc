"""Work on a Ray cluster: outputs come back as bytes, and this process alone writes files."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pfungst import __version__
from pfungst.compute.devices import kind
from pfungst.compute.shards import ComputeError, Shard, ShardFailure, Work, attempt
from pfungst.core import MissingExtra
from pfungst.core.threads import available_cores

if TYPE_CHECKING:
    from pfungst.compute.runner import Job, Outcomes

READY_AHEAD = 2
"""Tasks handed to Ray for each of its cores: enough to keep it busy, few enough to bound memory."""

KNOCK_SECONDS = 10.0
RETURN_SECONDS = 120.0
"""How long a cluster that was lost is waited for."""
LOSSES = 3
"""Times that a cluster may be lost one after the other without having finished anything."""


def run_ray(job: Job, on: str) -> Outcomes:
    queue = deque(job.shards)
    running: dict[Any, Shard] = {}
    patient, losses = False, 0
    while queue or running:
        with connected(on, job.workers, patient=patient) as ray:
            try:
                with contextlib.closing(_run(ray, job, queue, running)) as outcomes:
                    for outcome in outcomes:
                        losses = 0
                        yield outcome
            except Exception as error:
                if not lost(ray, error):
                    raise
                losses += 1
                if losses > LOSSES:
                    raise ComputeError(
                        f"The Ray cluster at {on} was lost {losses} times in a row before it had finished anything "
                        f"({error}). What was finished before is kept."
                    ) from error
                # The cluster is gone, and with it what it was doing. What is finished lies here.
                queue.extendleft(reversed(running.values()))
                running.clear()
                patient = True


@contextlib.contextmanager
def connected(on: str, workers: int | None, patient: bool = False) -> Iterator[Any]:
    """Ray, connected to the cluster; left again in the end, unless the program was connected before.

    patient: the cluster was there before, and is given time to come back.
    """
    try:
        import ray
    except ImportError as error:
        raise MissingExtra("Running on Ray", "ray") from error
    if patient:
        with contextlib.suppress(Exception):
            ray.shutdown()
    ours = not ray.is_initialized()
    until = time.monotonic() + (RETURN_SECONDS if patient else 0)
    while ours:
        try:
            _connect(ray, on, workers)
            break
        except ComputeError:
            if time.monotonic() >= until:
                raise
            time.sleep(1.0)
    try:
        yield ray
    finally:
        if ours:
            ray.shutdown()


def go_home(folder: Path) -> None:
    """Work in the folder of the command where this node has it: names of files and modules are meant from there."""
    with contextlib.suppress(OSError):
        os.chdir(folder)


def lost(ray: Any, error: Exception) -> bool:
    """Whether an error says that the cluster cannot be reached any more, rather than that a task failed."""
    kinds = ray.exceptions
    # A raylet or owner that died is the one that speaks for us there: Ray itself sees to those of other nodes.
    gone = (ConnectionError, kinds.RaySystemError, kinds.RpcError, kinds.LocalRayletDiedError, kinds.OwnerDiedError)
    if isinstance(error, gone):
        return True
    # Ray Client says it in words of its own, or lets an error of gRPC through.
    told = type(error).__module__.startswith("grpc") or "client is not connected" in str(error).lower()
    return told or not ray.is_initialized()


def _connect(ray: Any, on: str, workers: int | None) -> None:
    quiet = {"logging_level": "ERROR", "log_to_driver": False}
    try:
        if on == "ray":
            ray.init(address="local", num_cpus=workers or available_cores(), include_dashboard=False, **quiet)
        else:
            address = on if on.startswith("ray://") else on.removeprefix("ray:")
            # Ray ends the whole process, or tries for minutes, where nobody listens: knock first.
            host, _, port = address.removeprefix("ray://").rpartition(":")
            if host:
                socket.create_connection((host.strip("[]"), int(port)), timeout=KNOCK_SECONDS).close()
            try:
                ray.init(address=address, **quiet)
            except ConnectionAbortedError:
                # A cluster gives its server for Ray Client half a minute to start, which can be too short where all is
                # busy: it is tried once more.
                ray.shutdown()
                ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError, ValueError, OSError, ImportError) as error:
        raise ComputeError(f"No Ray cluster could be reached with {on!r}: {error}") from error


def _run(ray: Any, job: Job, queue: deque[Shard], running: dict[Any, Shard]) -> Outcomes:
    gpus = 1 if any(kind(device) == "cuda" for device in job.devices) else 0
    remote = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=0)(_task)
    # Once into the object store: large arrays travel once to every node, and its workers share them.
    work = ray.put(job.work)
    limit = job.workers or READY_AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
    try:
        while queue or running:
            while len(running) < limit and queue:
                running[remote.remote(work, queue[0], __version__, Path.cwd())] = queue[0]
                queue.popleft()
            for done in ray.wait(list(running), num_returns=1)[0]:
                outcome = _collect(ray, job, running[done], done)
                yield running.pop(done), outcome
    except GeneratorExit:
        for left in running:
            ray.cancel(left, force=True)
        raise


def _collect(ray: Any, job: Job, shard: Shard, done: Any) -> Path | ShardFailure:
    try:
        data, failure = ray.get(done)
    except ray.exceptions.RayError as error:
        if lost(ray, error):
            raise
        if "ModuleNotFoundError" in str(error):
            raise ComputeError(
                f"A node of the Ray cluster cannot import the work ({error}). Install pfungst {__version__} there."
            ) from error
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return ShardFailure(shard.name, f"its Ray task was lost: {lines[0]}", str(error))
    if failure is not None:
        return ShardFailure(*failure)
    path = job.temporary(shard)
    path.write_bytes(data)
    return path


def _task(work: Work, shard: Shard, version: str, home: Path) -> tuple[bytes, tuple[str, str, str, bool] | None]:
    """What runs on a node."""
    go_home(home)
    if version != __version__:
        reason = f"the node has pfungst {__version__}, this machine {version}; install the same version on both"
        return b"", (shard.name, reason, "", True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / shard.name
        failure = attempt(work, shard, path)
        if failure is not None:
            return b"", (failure.name, failure.reason, failure.details, failure.final)
        return path.read_bytes(), None
