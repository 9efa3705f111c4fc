"""Copies of a player in processes of this machine, each with a pipe, a session and, where it needs one, a GPU."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import tempfile
import threading
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from pfungst.compute.packing import pack
from pfungst.compute.processes import ONE_THREAD, leave_with_parent, told
from pfungst.compute.shards import ComputeError
from pfungst.core import PlayerError, Query
from pfungst.players.replica_host import Host, Made, carried

LOOK_SECONDS = 1.0
"""How often copies are looked after that say nothing: one that a forked process outlives leaves an open pipe."""


class ProcessCopy:
    """One copy."""

    def __init__(self, make: bytes, environment: Mapping[str, str]) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process: SpawnProcess = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._make = make
        with told(environment):
            self._process.start()
        theirs.close()

    @property
    def pipe(self) -> Connection:
        return self._pipe

    def send(self, what: str, queries: Sequence[Query] = ()) -> None:
        # A copy that is dead is noticed when it is listened to.
        with contextlib.suppress(OSError):
            self._pipe.send((what, carried(queries, files=True)))

    def hear(self) -> tuple[str, Any] | None:
        """What it says: `ready`, `failed` or `done` with what belongs to it, `dead` with the reason; None: nothing."""
        try:
            if self._pipe.poll():
                what, content = self._pipe.recv()
                if what != "born":
                    return what, content
                self._pipe.send_bytes(self._make)
                return None
            if self._process.is_alive():
                return None
        except (EOFError, OSError):
            pass
        self._process.join(LOOK_SECONDS)
        return "dead", _how(self._process.exitcode)

    def stop(self) -> None:
        """End it, and whatever it has started."""
        self._pipe.close()
        with contextlib.suppress(OSError, TypeError, AttributeError):  # Windows has no groups
            os.killpg(self._process.pid, signal.SIGKILL)  # type: ignore[arg-type]
        self._process.kill()
        self._process.join()


class ProcessFleet:
    """Starts copies and waits for any of them."""

    def __init__(self, make: Made, threads: int, devices: Sequence[Mapping[str, str]]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="pfungst-replicas-")
        try:
            self._make = pack(make, Path(self._folder.name) / "arrays")
        except ComputeError as error:
            raise PlayerError(
                f"{make.spec} cannot be sent to another process: {error} Data that are given by name are read there."
            ) from error
        self._threads = dict.fromkeys(ONE_THREAD, str(threads))
        self._devices = devices

    def start(self, slot: int) -> ProcessCopy:
        return ProcessCopy(self._make, {**self._threads, **(self._devices[slot % len(self._devices)])})

    def wait(self, copies: Sequence[ProcessCopy]) -> None:
        """Until one of them may have something to say."""
        wait([copy.pipe for copy in copies], LOOK_SECONDS)

    def close(self) -> None:
        self._folder.cleanup()


def _how(code: int | None) -> str:
    if code is None:
        return "it closed its pipe"
    if code == -signal.SIGKILL:
        return "signal 9; out of memory is the usual reason"
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _serve(pipe: Connection) -> None:
    """The life of a copy."""
    # A session of its own: Ctrl-C at the terminal is for the parent, and what the player starts ends with it.
    with contextlib.suppress(OSError, AttributeError):
        os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=leave_with_parent, args=(True,), daemon=True).start()
    here = os.getpid()
    with contextlib.suppress(EOFError, OSError):
        pipe.send(("born", None))
        host, about = Host.begin(pipe.recv())
        pipe.send(about)
        if host is None:
            return
        # Read by a thread, so that whoever sends the next batch need not wait until this one is answered.
        inbox: SimpleQueue[Any] = SimpleQueue()
        threading.Thread(target=_receive, args=(pipe, inbox), daemon=True).start()
        while (received := inbox.get()) is not None:
            said = host.do(*received)
            if os.getpid() != here:
                os._exit(0)  # the player forked, and this is the copy of the copy: it has no business here
            pipe.send(said)


def _receive(pipe: Connection, inbox: SimpleQueue[Any]) -> None:
    with contextlib.suppress(EOFError, OSError):
        while True:
            inbox.put(pipe.recv())
    inbox.put(None)
