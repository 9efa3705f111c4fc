"""Work on a Ray cluster: outputs come back as bytes, and this process alone writes files.

Ray itself runs a task again on another node when its worker or node is lost.
"""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pfungst import __version__
from pfungst.compute.local import attempt
from pfungst.compute.shards import ComputeError, Shard, ShardFailure, Work, available_cores
from pfungst.core import MissingExtra

if TYPE_CHECKING:
    from pfungst.compute.runner import Job, Outcomes

READY_AHEAD = 2
"""Tasks handed to Ray for each of its cores: enough to keep it busy, few enough to bound memory."""

KNOCK_SECONDS = 10.0


def run_ray(job: Job, on: str) -> Outcomes:
    try:
        import ray
    except ImportError as error:
        raise MissingExtra("Running on Ray", "ray") from error
    ours = not ray.is_initialized()
    if ours:
        _connect(ray, on, job.workers)
    try:
        yield from _run(ray, job)
    finally:
        if ours:
            ray.shutdown()


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


def _run(ray: Any, job: Job) -> Outcomes:
    remote = ray.remote(num_cpus=1, max_retries=job.retries)(_task)
    work = ray.put(job.work)
    queue = iter(job.shards)
    running: dict[Any, Shard] = {}
    limit = job.workers or READY_AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
    try:
        while True:
            while len(running) < limit and (shard := next(queue, None)) is not None:
                running[remote.remote(work, shard, __version__)] = shard
            if not running:
                return
            for done in ray.wait(list(running), num_returns=1)[0]:
                shard = running.pop(done)
                yield shard, _collect(ray, job, shard, done)
    finally:
        for left in running:
            ray.cancel(left, force=True)


def _collect(ray: Any, job: Job, shard: Shard, done: Any) -> Path | ShardFailure:
    try:
        data, failure = ray.get(done)
    except ray.exceptions.RayError as error:
        if "ModuleNotFoundError" in str(error):
            raise ComputeError(
                f"A node of the Ray cluster cannot import the work ({error}). Install pfungst {__version__} there."
            ) from error
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return ShardFailure(shard.name, f"its Ray task was lost after {job.retries + 1} tries: {lines[0]}", str(error))
    if failure is not None:
        return ShardFailure(*failure)
    path = job.temporary(shard)
    path.write_bytes(data)
    return path


def _task(work: Work, shard: Shard, version: str) -> tuple[bytes, tuple[str, str, str] | None]:
    """What runs on a node."""
    if version != __version__:
        reason = f"the node has pfungst {__version__}, this machine {version}; install the same version on both"
        return b"", (shard.name, reason, "")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / shard.name
        failure = attempt(work, shard, path)
        if failure is not None:
            return b"", (failure.name, failure.reason, failure.details)
        return path.read_bytes(), None
