"""Threads above the BLAS: work is cut by the data, so that what comes out has the same bits with any number of them."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped,unused-ignore]

In = TypeVar("In")
Out = TypeVar("Out")


class Workers:
    """A pool of threads; with one thread, plain loops."""

    def __init__(self, count: int = 1, pool: ThreadPoolExecutor | None = None) -> None:
        self.count: int = count if pool is not None else 1
        self._pool = pool

    def map(self, work: Callable[[In], Out], items: Sequence[In]) -> list[Out]:
        if self._pool is None or len(items) < 2:
            return [work(item) for item in items]
        return list(self._pool.map(work, items))

    @staticmethod
    def shares(items: Sequence[In], count: int) -> list[Sequence[In]]:
        """`items` in so many contiguous parts, or fewer."""
        count = max(1, min(count, len(items)))
        cuts = [len(items) * i // count for i in range(count + 1)]
        return [items[first:last] for first, last in itertools.pairwise(cuts)]


@contextlib.contextmanager
def threads(count: int | None) -> Iterator[Workers]:
    """`count` threads, one a core if None; every BLAS and OpenMP call keeps to the thread that makes it.

    A threaded BLAS sums in another order than one thread does. Many small products and factorisations gain nothing from
    it, and lose tenfold on a busy machine: so the work is divided above it.
    """
    count = count or cores()
    # scipy brings a BLAS of its own, which is loaded with the first factorisation: too late to be limited.
    from scipy.linalg import cython_lapack as _  # noqa: F401

    with _blas_limited(), _openmp_limited():
        if count == 1:
            yield Workers()
            return
        with ThreadPoolExecutor(count, initializer=threadpool_limits, initargs=(1, "openmp")) as pool:
            yield Workers(count, pool)


_lock = threading.Lock()
_solvers = 0
_keeper: tuple[ThreadPoolExecutor, Any] | None = None
"""The thread that holds the limit of the BLAS, and the limit."""


@contextlib.contextmanager
def _blas_limited() -> Iterator[None]:
    """One thread for every BLAS of the process, until the last of several solvers that run side by side is done.

    threadpoolctl lets only the thread that set the limit of a BLAS take it back: so one thread does both.
    """
    global _solvers, _keeper
    with _lock:
        if not _solvers:
            executor = ThreadPoolExecutor(1)
            _keeper = executor, executor.submit(lambda: threadpool_limits(1, user_api="blas").__enter__()).result()
        _solvers += 1
    try:
        yield
    finally:
        with _lock:
            _solvers -= 1
            if not _solvers and _keeper is not None:
                executor, limits = _keeper
                executor.submit(limits.__exit__, None, None, None).result()
                executor.shutdown()
                _keeper = None


@contextlib.contextmanager
def _openmp_limited() -> Iterator[None]:
    """One thread for every OpenMP pool, which count by the thread that calls them, and for torch if it is loaded."""
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch is not None else 1
    with threadpool_limits(1, user_api="openmp"):
        if torch is not None:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            if torch is not None:
                torch.set_num_threads(before)


def cores() -> int:
    """Cores this process may use: no more than OMP_NUM_THREADS, which one of several workers finds set to 1."""
    found = available_cores()
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return min(found, int(wanted)) if wanted.isdecimal() and int(wanted) else found


def machine_memory() -> int:
    """Bytes of memory this machine has; 0 where it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # Windows has no sysconf
        return 0


def available_cores() -> int:
    """Cores this process may use, which in a container can be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
