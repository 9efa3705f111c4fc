"""Threads for what the BLAS does not divide well: blocks of columns, and one question after another."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

In = TypeVar("In")
Out = TypeVar("Out")


class Workers:
    """A pool of threads, each with a BLAS of its own; with one thread, plain loops."""

    def __init__(self, count: int = 1, pool: ThreadPoolExecutor | None = None) -> None:
        self.count = count if pool is not None else 1
        self._pool = pool

    def map(self, work: Callable[[In], Out], items: Sequence[In]) -> list[Out]:
        if self._pool is None or len(items) < 2:
            return [work(item) for item in items]
        return list(self._pool.map(work, items))

    def shares(self, items: Sequence[In]) -> list[Sequence[In]]:
        """`items` in as many contiguous parts as there are threads."""
        count = max(1, min(self.count, len(items)))
        cuts = [len(items) * i // count for i in range(count + 1)]
        return [items[first:last] for first, last in itertools.pairwise(cuts)]


@contextlib.contextmanager
def threads(count: int | None) -> Iterator[Workers]:
    """`count` threads, one a core if None; without threadpoolctl one thread, and the BLAS keeps its own.

    Many small factorisations gain nothing from a threaded BLAS, and lose tenfold on a busy machine; so every BLAS
    call keeps to the thread that makes it, and the work is divided above.
    """
    count = count or cores()
    if count == 1:
        yield Workers()
        return
    try:
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        yield Workers()
        return
    with threadpool_limits(limits=1, user_api="blas"), ThreadPoolExecutor(count) as pool:
        yield Workers(count, pool)


def cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
