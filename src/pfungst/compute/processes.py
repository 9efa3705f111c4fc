"""Work in processes of this machine.

Each worker has a pipe of its own and one shard at a time, so a worker that dies (killed, out of memory, a crash in
native code) costs exactly one known shard. Workers are spawned, not forked: a fork copies locks
that threads of numerical libraries hold.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import TYPE_CHECKING

from pfungst.compute.devices import environment
from pfungst.compute.packing import pack
from pfungst.compute.shards import ComputeError, Shard, ShardFailure, Work, attempt
from pfungst.core.threads import available_cores

if TYPE_CHECKING:
    from pfungst.compute.runner import Job, Outcomes

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
"""Parallelism comes from the processes; and the order of a threaded sum would depend on the number of threads."""


LOOK_SECONDS = 2.0
"""How often workers are looked after that say nothing."""
STARTS = 2
"""Workers that may exit, one after the other, before they start."""
STILLBORN = (
    "The worker processes exit before they start; see their error above. If the work is started from a "
    'script, the script needs `if __name__ == "__main__":`, and the work must be importable by name.'
)


@dataclass(eq=False)
class _Worker:
    process: SpawnProcess
    pipe: Connection
    environment: Mapping[str, str]
    informed: bool = False
    """It was sent the work."""
    ready: bool = False
    shard: Shard | None = None
    path: Path | None = None


def run_processes(job: Job) -> Outcomes:
    arrays = job.temporary(Shard(0, "arrays"))
    work = pack(job.work, arrays)
    queue = deque(job.shards)
    open_shards = len(queue)
    stillborn = 0
    count = job.workers or len(job.devices) or available_cores()
    seen = [environment(job.devices[i % len(job.devices)]) if job.devices else {} for i in range(count)]
    workers = [_start(one) for one in seen[:open_shards]]
    try:
        while open_shards:
            heard = wait([worker.pipe for worker in workers], LOOK_SECONDS)
            # A process that the work forked may hold the pipe of a worker that is dead.
            for worker in [one for one in workers if one.pipe in heard or not one.process.is_alive()]:
                try:
                    if not worker.pipe.poll():
                        raise EOFError
                    message = worker.pipe.recv()
                except (EOFError, OSError):
                    shard = worker.shard
                    _stop(worker)
                    stillborn = 0 if worker.ready else stillborn + 1
                    if stillborn > STARTS:
                        raise ComputeError(STILLBORN) from None
                    workers[workers.index(worker)] = _start(worker.environment)
                    if shard is not None:
                        open_shards -= 1
                        yield shard, _death(shard, worker)
                    continue
                if not worker.informed:
                    worker.informed = True
                    with contextlib.suppress(OSError):
                        worker.pipe.send_bytes(work)
                    continue
                if worker.ready and worker.shard is not None and worker.path is not None:
                    open_shards -= 1
                    finished, path = worker.shard, worker.path
                    worker.shard = None
                    yield finished, message or path
                worker.ready = True
            for worker in workers:
                if queue and worker.ready and worker.shard is None:
                    worker.shard = queue.popleft()
                    worker.path = job.temporary(worker.shard)
                    # A worker that died since is noticed by its closed pipe in the next round.
                    with contextlib.suppress(OSError):
                        worker.pipe.send((worker.shard, worker.path))
    finally:
        for worker in workers:
            _stop(worker)
        arrays.unlink(missing_ok=True)


def _start(environment: Mapping[str, str]) -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    with told({**ONE_THREAD, **environment}):
        process.start()
    theirs.close()
    return _Worker(process, ours, environment)


@contextlib.contextmanager
def told(environment: Mapping[str, str]) -> Iterator[None]:
    """Processes started inside find this in their environment: arithmetic libraries read it when they are loaded,
    before any code of ours can tell them."""
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _stop(worker: _Worker) -> None:
    worker.pipe.close()
    worker.process.kill()
    worker.process.join()


def _death(shard: Shard, worker: _Worker) -> ShardFailure:
    code = worker.process.exitcode
    how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
    hint = " Out of memory is the usual reason: use fewer workers." if code == -signal.SIGKILL else ""
    return ShardFailure(shard.name, f"its worker process died ({how}).{hint}")


def _serve(pipe: Connection) -> None:
    """The life of a worker process."""
    # Ctrl-C reaches every process of the terminal; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=leave_with_parent, daemon=True).start()
    with contextlib.suppress(EOFError, OSError):
        pipe.send(None)
        work: Work = pipe.recv()
        pipe.send(None)
        while True:
            shard, path = pipe.recv()
            pipe.send(attempt(work, shard, path))


def leave_with_parent(group: bool = False) -> None:
    """Wait for the parent's end, and end too; group: with all that this process started."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        with contextlib.suppress(OSError, AttributeError):  # Windows has no groups
            if group:
                os.killpg(os.getpid(), signal.SIGKILL)
        os._exit(1)
