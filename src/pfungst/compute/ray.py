"""Workers as actors of a Ray cluster: what they hold goes through its object store, once to every node."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pfungst import __version__
from pfungst.compute.pool import LOOK_SECONDS, ComputeError, Held, begin
from pfungst.core import MissingExtra, Needs
from pfungst.core.threads import available_cores

KNOCK_SECONDS = 10.0
RETURN_SECONDS = 120.0
"""How long a cluster that was lost is waited for."""
LOSSES = 3
"""Times that a cluster may be lost one after the other without having finished anything."""


class RayWorkers:
    """Starts actors and waits for any of them. A cluster that is lost is waited for, and all begins anew there."""

    files = heard = False

    def __init__(self, make: Callable[[], Held], on: str, count: int | None, needs: Needs) -> None:
        self._make, self._on, self._count, self._needs = make, on, count, needs
        self.losses: int = 0
        """In a row, without anything done in between."""
        self.connections: int = 0
        self._connect()

    def room(self) -> int:
        """Workers that the cluster has room for now."""
        wanted = {"CPU": 1.0, "GPU": self._needs.gpus, "memory": (self._needs.memory or 0.0) * 2**30}
        nodes = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        return sum(
            int(min(node.get(name, 0.0) / amount for name, amount in wanted.items() if amount)) for node in nodes
        )

    def start(self, number: int) -> RayWorker:
        while True:
            try:
                return self._actor()
            except Exception as error:
                self.reconnect(error)

    def wait(self, workers: Sequence[RayWorker]) -> None:
        pending = [worker.pending[0] for worker in workers if worker.pending and not worker.lost]
        if not pending:
            time.sleep(0.01)
            return
        try:
            self.ray.wait(pending, num_returns=1, timeout=LOOK_SECONDS)
        except Exception as error:
            self.reconnect(error)

    def reconnect(self, error: Exception) -> None:
        """After an error that says that the cluster is gone; any other is raised again. What its workers were doing is
        done again once it is back."""
        while True:
            if not lost(self.ray, error):
                raise error
            self.losses += 1
            if self.losses > LOSSES:
                raise ComputeError(
                    f"The Ray cluster at {self._on} was lost {self.losses} times in a row before it had finished "
                    f"anything ({error}). What was finished before is kept."
                ) from error
            try:
                self._connect(patient=True)
                return
            except ComputeError:
                raise
            except Exception as again:
                error = again

    def _connect(self, patient: bool = False) -> None:
        self._connection = connected(self._on, self._count, patient)
        self.ray: Any = self._connection.__enter__()
        wanted: dict[str, Any] = {"num_cpus": 1, "num_gpus": self._needs.gpus, "max_restarts": 0}
        if self._needs.memory is not None:
            wanted["memory"] = int(self._needs.memory * 2**30)
        self._actors = self.ray.remote(**wanted)(Actor)
        self._reference = self.ray.put(self._make)
        self.connections += 1

    def _actor(self) -> RayWorker:
        return RayWorker(self, self._actors.remote(__version__, Path.cwd()), self._reference)

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._connection.__exit__(None, None, None)


class RayWorker:
    """One actor, seen from outside."""

    def __init__(self, home: RayWorkers, actor: Any, make: Any) -> None:
        self._home, self._actor, self._connection = home, actor, home.connections
        self.pending: deque[Any] = deque([actor.begin.remote(make)])

    @property
    def lost(self) -> bool:
        """It ran on a cluster that is gone."""
        return self._connection != self._home.connections

    def send(self, content: Sequence[Any]) -> None:
        if self.lost:
            return
        try:
            self.pending.append(self._actor.do.remote(*content))
        except Exception as error:
            self._home.reconnect(error)

    def hear(self) -> tuple[str, Any] | None:
        if self.lost:
            return "lost", None
        if not self.pending:
            return None
        ray = self._home.ray
        try:
            if not ray.wait([self.pending[0]], timeout=0)[0]:
                return None
            said: tuple[str, Any] = ray.get(self.pending[0])
        except Exception as error:
            if "ModuleNotFoundError" in str(error):
                return "unmade", f"A node of the Ray cluster cannot import the work ({error}). Install it there."
            if isinstance(error, ray.exceptions.RayError) and not lost(ray, error):
                lines = str(error).strip().splitlines() or [type(error).__name__]
                return "dead", lines[0]
            self._home.reconnect(error)
            return "lost", None
        self.pending.popleft()
        if said[0] == "done":
            self._home.losses = 0
        return said

    def stop(self) -> None:
        if not self.lost:
            with contextlib.suppress(Exception):  # the cluster may be gone
                self._home.ray.kill(self._actor)


class Actor:
    """What runs on a node."""

    def __init__(self, version: str, home: Path) -> None:
        # Work in the folder of the command where this node has it: names of files and modules are meant from there.
        with contextlib.suppress(OSError):
            os.chdir(home)
        self._version = version
        self._held: Held | None = None

    def begin(self, make: Callable[[], Held]) -> tuple[str, Any]:
        if self._version != __version__:
            return "unmade", (
                f"A node of the cluster has pfungst {__version__}, this machine {self._version}; install the same "
                "version on both."
            )
        self._held, said = begin(make)
        return said

    def do(self, *content: Any) -> tuple[str, Any]:
        assert self._held is not None
        return "done", self._held.do(*content)


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


def lost(ray: Any, error: Exception) -> bool:
    """Whether an error says that the cluster cannot be reached any more, rather than that a task failed."""
    kinds = ray.exceptions
    # A raylet or owner that died is the one that speaks for us there: Ray itself sees to those of other nodes.
    gone = (ConnectionError, kinds.RaySystemError, kinds.RpcError, kinds.LocalRayletDiedError, kinds.OwnerDiedError)
    if isinstance(error, gone):
        return True
    # Ray Client says it in words of its own, or lets an error of gRPC through.
    said = type(error).__module__.startswith("grpc") or "client is not connected" in str(error).lower()
    return said or not ray.is_initialized()


def _connect(ray: Any, on: str, workers: int | None) -> None:
    settings: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
    if on == "ray":
        # Ray would take 15 off the priority of its workers: where anything else runs they stand still.
        settings |= {
            "address": "local", "num_cpus": workers or available_cores(), "include_dashboard": False,
            "_system_config": {"worker_niceness": 0},
        }  # fmt: skip
    else:
        settings["address"] = on if on.startswith("ray://") else on.removeprefix("ray:")
    try:
        # Ray ends the whole process, or tries for minutes, where nobody listens: knock first.
        host, _, port = settings["address"].removeprefix("ray://").rpartition(":")
        if host:
            socket.create_connection((host.strip("[]"), int(port)), timeout=KNOCK_SECONDS).close()
        try:
            ray.init(**settings)
        except Exception as error:
            if not _too_slow(error):
                raise
            ray.shutdown()
            ray.init(**settings)
    except Exception as error:
        raise ComputeError(f"No Ray cluster could be reached with {on!r}: {error}") from error


def _too_slow(error: Exception) -> bool:
    """Ray gives a node that it starts, and a cluster its server for Ray Client, half a minute, which can be too short
    where all is busy. Of a node it says so by a plain exception."""
    return isinstance(error, ConnectionAbortedError) or "timed out" in str(error)
