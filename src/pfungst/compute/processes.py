"""Workers in processes of this machine. They are spawned, not forked: a fork copies locks that threads of numerical
libraries hold. Large arrays in what they hold lie in one file that all of them map."""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from pickle import PicklingError
from queue import SimpleQueue
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pfungst.compute.pool import LOOK_SECONDS, ComputeError, Held, begin

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Parallelism comes from the processes; and the order of a threaded sum would depend on the number of threads."""
LARGE = 1 << 16
"""Bytes from which on an array is shared instead of copied to every worker."""


class ProcessWorkers:
    """Starts processes and waits for any of them.

    folder : where large arrays lie; None: a temporary folder
    devices : environments of the workers, in turns
    """

    files = heard = True

    def __init__(
        self,
        make: Callable[[], Held],
        *,
        threads: int = 1,
        devices: Sequence[Mapping[str, str]] = (),
        folder: Path | None = None,
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="pfungst-workers-", dir=folder)
        self._make = pack(make, Path(self._folder.name) / "arrays")
        self._threads = dict.fromkeys(THREADS, str(threads))
        self._devices = devices or [{}]

    def start(self, number: int) -> ProcessWorker:
        return ProcessWorker(self._make, {**self._threads, **self._devices[number % len(self._devices)]})

    def wait(self, workers: Sequence[ProcessWorker]) -> None:
        # With a limit: a process that a worker forked may outlive it and hold its pipe open.
        wait([worker.pipe for worker in workers], LOOK_SECONDS)

    def close(self) -> None:
        self._folder.cleanup()


class ProcessWorker:
    """One process."""

    def __init__(self, make: bytes, environment: Mapping[str, str]) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe: Connection
        self.pipe, theirs = context.Pipe()
        self._process: SpawnProcess = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._make = make
        with in_environment(environment):
            self._process.start()
        theirs.close()

    def send(self, content: Sequence[Any]) -> None:
        # A worker that is dead is noticed when it is listened to.
        with contextlib.suppress(OSError):
            self.pipe.send(tuple(content))

    def hear(self) -> tuple[str, Any] | None:
        try:
            if self.pipe.poll():
                what, content = self.pipe.recv()
                if what != "born":
                    return what, content
                self.pipe.send_bytes(self._make)
                return None
            if self._process.is_alive():
                return None
        except (EOFError, OSError):
            pass
        self._process.join(LOOK_SECONDS)
        return "dead", _how(self._process.exitcode)

    def stop(self) -> None:
        """End it, and whatever it has started."""
        self.pipe.close()
        with contextlib.suppress(OSError, TypeError, AttributeError):  # Windows has no groups
            os.killpg(self._process.pid, signal.SIGKILL)  # type: ignore[arg-type]
        self._process.kill()
        self._process.join()


def _how(code: int | None) -> str:
    if code is None:
        return "it closed its pipe"
    if code == -signal.SIGKILL:
        return "signal 9; out of memory is the usual reason"
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _serve(pipe: Connection) -> None:
    """The life of a worker."""
    # A group of its own: Ctrl-C at the terminal is for the parent, and what the work starts ends with the worker.
    with contextlib.suppress(OSError, AttributeError):
        os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=leave_with_parent, daemon=True).start()
    here = os.getpid()
    with contextlib.suppress(EOFError, OSError):
        pipe.send(("born", None))
        held, said = begin(pipe.recv())
        pipe.send(said)
        if held is None:
            return
        # Read by a thread, so that whoever sends the next task need not wait until this one is done.
        inbox: SimpleQueue[Any] = SimpleQueue()
        threading.Thread(target=_receive, args=(pipe, inbox), daemon=True).start()
        while (content := inbox.get()) is not None:
            outcome = held.do(*content)
            if os.getpid() != here:
                os._exit(0)  # the work forked, and this is the copy of the worker: it has no business here
            pipe.send(("done", outcome))


def _receive(pipe: Connection, inbox: SimpleQueue[Any]) -> None:
    try:
        with contextlib.suppress(EOFError, OSError):
            while True:
                inbox.put(pipe.recv())
    finally:
        inbox.put(None)


def leave_with_parent() -> None:
    """Wait for the parent's end, and end too, with all that this process started."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        with contextlib.suppress(OSError, AttributeError):  # Windows has no groups
            os.killpg(os.getpid(), signal.SIGKILL)
        os._exit(1)


@contextlib.contextmanager
def in_environment(environment: Mapping[str, str]) -> Iterator[None]:
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


class _Packer(ForkingPickler):
    def __init__(self, buffer: io.BytesIO, path: Path) -> None:
        super().__init__(buffer)
        self._path = path
        self._end = 0

    def reducer_override(self, thing: Any) -> Any:
        if type(thing) is not np.ndarray or thing.dtype.hasobject or thing.nbytes < LARGE:
            return NotImplemented
        order: Literal["C", "F"] = "F" if thing.flags.f_contiguous and not thing.flags.c_contiguous else "C"
        with open(self._path, "ab") as file:
            begin = -(-self._end // 64) * 64  # where vector instructions like it
            file.write(bytes(begin - self._end))
            file.write(thing.tobytes(order))
            self._end = file.tell()
        return _mapped, (self._path, begin, thing.dtype.str, thing.shape, order)


def pack(work: Any, path: Path) -> bytes:
    """What a worker's pipe carries; `path` is a new file for the arrays, written only where there are large ones."""
    buffer = io.BytesIO()
    try:
        _Packer(buffer, path).dump(work)
    except (PicklingError, AttributeError, TypeError) as error:
        raise ComputeError(
            f"The work cannot be sent to another process ({error}). Use a function at the top of a module."
        ) from error
    return buffer.getvalue()


def _mapped(path: Path, begin: int, dtype: str, shape: tuple[int, ...], order: Any) -> npt.NDArray[Any]:
    """The array in a worker. Its pages are shared until somebody writes on one."""
    return np.asarray(np.memmap(path, dtype=dtype, mode="c", offset=begin, shape=shape, order=order))
