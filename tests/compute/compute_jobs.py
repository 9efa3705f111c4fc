"""Work for the tests, importable by name from worker processes and Ray nodes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from pfungst.compute import Shard


def draw(shard: Shard) -> bytes:
    """Bytes that depend on everything a shard carries."""
    return f"{shard.index} {shard.name} {shard.payload} {shard.rng().integers(0, 2**62)}\n".encode() * 50


def draw_to_file(shard: Shard, path: Path) -> None:
    path.write_bytes(draw(shard))


def draw_unhindered(shard: Shard) -> bytes:
    """`draw`, with the priority that the payload names."""
    if (nice := os.nice(0)) != shard.payload:
        raise ValueError(f"This worker has the niceness {nice}, the command {shard.payload}.")
    return draw(shard)


def log_and_draw(shard: Shard) -> bytes:
    """Says in a file that it worked, so that a test can count how often."""
    with open(shard.payload["log"], "a") as log:
        log.write(f"{shard.name}\n")
    time.sleep(shard.payload.get("sleep", 0.0))
    return draw(shard)


def fail_on_three(shard: Shard) -> bytes:
    if shard.index == 3:
        raise ValueError("three is a bad number")
    return draw(shard)


def fail_some_times(shard: Shard) -> bytes:
    """Raise as long as fewer marks stand in the folder than the payload demands."""
    marks = Path(shard.payload["marks"])
    if len(list(marks.glob(f"{shard.index}-*"))) < shard.payload["errors"]:
        (marks / f"{shard.index}-{time.monotonic_ns()}").touch()
        raise OSError("database is locked")
    return draw(shard)


def die_some_times(shard: Shard) -> bytes:
    """Kill the own process as long as fewer marks stand in the folder than the payload demands."""
    marks, deaths = Path(shard.payload["marks"]), shard.payload["deaths"]
    if len(list(marks.glob(f"{shard.index}-*"))) < deaths:
        (marks / f"{shard.index}-{time.monotonic_ns()}").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return b"alive"


def where(shard: Shard) -> bytes:
    """The Ray node a shard ran on, once another has begun elsewhere."""
    import ray

    node, seen = str(ray.get_runtime_context().get_node_id()), Path(shard.payload)
    (seen / str(shard.index)).touch()
    while len(list(seen.iterdir())) < 2:
        time.sleep(0.05)
    return node.encode()


def thread_settings(shard: Shard) -> bytes:
    return os.environ.get("OMP_NUM_THREADS", "").encode()


def slow_draw(shard: Shard) -> bytes:
    time.sleep(1.0)
    return draw(shard)


def fork_and_die(shard: Shard) -> bytes:
    """The first try leaves a child behind that holds the worker's pipe, and dies."""
    marks = Path(shard.payload["marks"])
    if not list(marks.iterdir()):
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        (marks / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return b"alive"


class Deadly:
    """What a worker holds that dies of every fourth number."""

    def about(self) -> None:
        pass

    def do(self, number: int) -> int:
        if number % 4 == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return number


def fill_memory(shard: Shard) -> bytes:
    """Takes as much memory as the payload says."""
    return str(len(bytearray(shard.payload))).encode()
