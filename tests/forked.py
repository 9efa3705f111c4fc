"""Processes of their own, to be killed: each is forked from a server that has only imported what takes long to import.

A process costs milliseconds this way instead of the seconds that torch takes to import, and what other tests have left
in this one cannot change the last bit of a sum there.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from unittest import mock

PROCESSES = multiprocessing.get_context("forkserver")
# One server for all tests of a worker.
PROCESSES.set_forkserver_preload(
    ["torch", "torch._dynamo", "torch.distributed", "pandas", "tests.core.killed", "tests.training.tiny_data"]
)


def start(what: Callable[..., None], *arguments: object) -> ForkServerProcess:
    """`what` on one thread, in the environment of this process."""
    with mock.patch.dict(os.environ, OMP_NUM_THREADS="1"):
        process = PROCESSES.Process(target=_run, args=({**os.environ}, what, arguments))
        process.start()
    return process


def finish(process: ForkServerProcess) -> int | None:
    """Its exit code: the negative number of the signal that killed it."""
    process.join()
    return process.exitcode


def command(*words: str) -> None:
    """`pfungst WORDS`, as `python -m pfungst` does it."""
    from pfungst.cli import main

    sys.argv = ["pfungst", *words]
    main()


def _run(environment: dict[str, str], what: Callable[..., None], arguments: tuple[object, ...]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    what(*arguments)
