"""Work in processes of this machine.

Each worker has a pipe of its own and one shard at a time, so a worker that dies (killed, out of memory, a crash in
native code) costs exactly one try of exactly one known shard. Workers are spawned, not forked: a fork copies locks
that threads of numerical libraries hold.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
from collections import deque
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import TYPE_CHECKING

from pfungst.compute.local import attempt
from pfungst.compute.shards import ComputeError, Shard, ShardFailure, Work, available_cores

if TYPE_CHECKING:
    from pfungst.compute.runner import Job, Outcomes

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
"""Parallelism comes from the processes; and the order of a threaded sum would depend on the number of threads."""


STILLBORN = (
    "The worker processes end before they can begin; their own error stands above. If the work is started from a "
    'script, the script needs `if __name__ == "__main__":`, and the work must be importable by name.'
)


@dataclass(eq=False)
class _Worker:
    process: SpawnProcess
    pipe: Connection
    ready: bool = False
    shard: Shard | None = None
    path: Path | None = None


def run_processes(job: Job) -> Outcomes:
    try:
        ForkingPickler.dumps(job.work)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ComputeError(
            f"The work cannot be sent to another process ({error}). Use a function at the top of a module."
        ) from error
    queue = deque(job.shards)
    tries: dict[str, int] = {}
    open_shards = len(queue)
    stillborn = 0
    workers = [_start(job.work) for _ in range(min(job.workers or available_cores(), open_shards))]
    try:
        while open_shards:
            for pipe in wait([worker.pipe for worker in workers]):
                worker = next(one for one in workers if one.pipe is pipe)
                try:
                    message = worker.pipe.recv()
                except (EOFError, OSError):
                    shard = worker.shard
                    _stop(worker)
                    stillborn = 0 if worker.ready else stillborn + 1
                    if stillborn > job.retries:
                        raise ComputeError(STILLBORN) from None
                    workers[workers.index(worker)] = _start(job.work)
                    if shard is not None:
                        tries[shard.name] = tries.get(shard.name, 0) + 1
                        if tries[shard.name] <= job.retries:
                            queue.appendleft(shard)
                        else:
                            open_shards -= 1
                            yield shard, _death(shard, worker, tries[shard.name])
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


def _start(work: Work) -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(work, theirs), daemon=True)
    # The arithmetic libraries read these when they are loaded, before any code of ours can tell them.
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    try:
        process.start()
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    theirs.close()
    return _Worker(process, ours)


def _stop(worker: _Worker) -> None:
    worker.pipe.close()
    worker.process.kill()
    worker.process.join()


def _death(shard: Shard, worker: _Worker, tries: int) -> ShardFailure:
    code = worker.process.exitcode
    how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
    hint = " Out of memory is the usual reason: use fewer workers." if code == -signal.SIGKILL else ""
    return ShardFailure(shard.name, f"its worker process died {tries} times ({how}).{hint}")


def _serve(work: Work, pipe: Connection) -> None:
    """The life of a worker process."""
    # Ctrl-C reaches every process of the terminal; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    with contextlib.suppress(EOFError, OSError):
        pipe.send(None)
        while True:
            shard, path = pipe.recv()
            pipe.send(attempt(work, shard, path))


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
