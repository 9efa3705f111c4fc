"""Copies of a player as actors of a Ray cluster, wherever it has the GPUs and the memory that they need."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pfungst import __version__
from pfungst.compute import ComputeError
from pfungst.compute.ray import connected, go_home, lost
from pfungst.core import Needs, Query
from pfungst.players.replica_host import Described, Host, Made, Reply, carried

LOOK_SECONDS = 1.0


class Actor:
    """What runs on a node."""

    def __init__(self, version: str, home: Path) -> None:
        go_home(home)
        self._version = version
        self._host: Host | None = None

    def begin(self, make: Made) -> tuple[str, str | Described]:
        if self._version != __version__:
            return "failed", (
                f"A node of the cluster has pfungst {__version__}, this machine {self._version}; install the same "
                "version on both."
            )
        self._host, said = Host.begin(make)
        return said

    def do(self, what: str, queries: Sequence[Query]) -> tuple[str, Reply | dict[str, Any]]:
        assert self._host is not None
        return self._host.do(what, queries)


class RayCopy:
    """One copy."""

    def __init__(self, ray: Any, actor: Any, make: Any) -> None:
        self._ray, self._actor = ray, actor
        self.pending: deque[Any] = deque([actor.begin.remote(make)])

    def send(self, what: str, queries: Sequence[Query] = ()) -> None:
        self.pending.append(self._actor.do.remote(what, carried(queries, files=False)))

    def hear(self) -> tuple[str, Any] | None:
        if not self.pending:
            return None
        try:
            if not self._ray.wait([self.pending[0]], timeout=0)[0]:
                return None
            said: tuple[str, Any] = self._ray.get(self.pending[0])
            self.pending.popleft()
        except Exception as error:
            if not (isinstance(error, self._ray.exceptions.RayError) or lost(self._ray, error)):
                raise
            lines = str(error).strip().splitlines() or [type(error).__name__]
            return "dead", lines[0]
        return said

    def stop(self) -> None:
        with contextlib.suppress(Exception):  # the cluster may be gone
            self._ray.kill(self._actor)


class RayFleet:
    """Starts copies on the cluster and waits for any of them."""

    def __init__(self, make: Made, on: str, count: int | None, needs: Needs) -> None:
        self._on, self._make, self._needs = on, make, needs
        self._connection = connected(on, count)
        self._ray = self._connection.__enter__()
        self._begin()
        self.most: int = self._room()
        """Copies that the cluster has room for."""
        if not self.most:
            self.close()
            memory = f" and {needs.memory:g} GiB of memory" if needs.memory else ""
            raise ComputeError(
                f"A copy of the player needs {needs.gpus:g} GPUs{memory}, and no node of the cluster at {on} has that."
            )

    def _room(self) -> int:
        # A copy that no node can take would be waited for forever.
        wanted = {"CPU": 1.0, "GPU": self._needs.gpus, "memory": (self._needs.memory or 0.0) * 2**30}
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        return sum(
            int(min(node.get(name, 0.0) / amount for name, amount in wanted.items() if amount)) for node in nodes
        )

    def _begin(self) -> None:
        wanted: dict[str, Any] = {"num_cpus": 1, "num_gpus": self._needs.gpus, "max_restarts": 0}
        if self._needs.memory is not None:
            wanted["memory"] = int(self._needs.memory * 2**30)
        self._actors = self._ray.remote(**wanted)(Actor)
        # Through the object store, once a node: a data set in memory can be large.
        self._reference = self._ray.put(self._make)

    def start(self, slot: int) -> RayCopy:
        return RayCopy(self._ray, self._actors.remote(__version__, Path.cwd()), self._reference)

    def wait(self, copies: Sequence[RayCopy]) -> None:
        pending = [copy.pending[0] for copy in copies if copy.pending]
        if not pending:
            time.sleep(0.01)
            return
        try:
            self._ray.wait(pending, num_returns=1, timeout=LOOK_SECONDS)
        except Exception as error:
            if not lost(self._ray, error):
                raise
            self._reconnect()

    def _reconnect(self) -> None:
        """The cluster is gone: what it was doing is done again once it is back."""
        with contextlib.suppress(Exception):
            self._ray.shutdown()
        self._connection = connected(self._on, None, patient=True)
        self._ray = self._connection.__enter__()
        self._begin()

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._connection.__exit__(None, None, None)
