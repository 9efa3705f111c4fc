"""How the kernels are compiled, and the vectors they compute with.

The kernels are written in a small part of Python (numbers, tuples, flat arrays, loops) that numba compiles for the CPU
and `cuda_source` translates for GPUs.

Strict IEEE arithmetic in float64: hit or miss must not depend on the machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

from numba import njit

from pfungst.world.renderers.raycast import Floats

Function = TypeVar("Function", bound=Callable[..., Any])

Vec: TypeAlias = tuple[float, float, float]
"""A point, a direction or a colour."""


def _stamp() -> str:
    """Changes with any file the kernels are made of."""
    folder = Path(__file__).parent
    parts = sorted([*folder.glob("*.py"), folder.parent / "constants.py"])
    return repr([(one.name, one.stat().st_mtime_ns, one.stat().st_size) for one in parts])


_STAMP = _stamp()


def inlined(function: Function) -> Function:
    """`jit` for a function that becomes a part of its callers: to pass arrays costs as much as a few lines."""
    return jit(function, within=True)


def jit(function: Function, within: bool = False) -> Function:
    """Compile on first use, and keep the result on disk. What is compiled lets other threads run beside it."""
    # Without numba's runtime: kernels allocate nothing, and counting who refers to an array would cost them an atomic
    # operation at every call, on a line of memory that all threads share.
    options = {"cache": True, "error_model": "numpy", "nogil": True, "_nrt": False, "forceinline": within}
    dispatcher = njit(**options)(function)
    # Numba keeps machine code for as long as the function's own file is unchanged. Ours also holds constants and
    # functions of other files; after a change in one of those it would go on drawing the old image.
    file: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if hasattr(file, "_source_stamp"):
        file._source_stamp = _STAMP
    return cast(Function, dispatcher)


def threads() -> int:
    """How many threads to draw with: all cores, or as many as the environment variable NUMBA_NUM_THREADS says."""
    from numba import config

    return int(config.NUMBA_NUM_THREADS)


def spread(parts: int, work: Callable[[int], None]) -> None:
    """Do part 0 to parts - 1 of some compiled work in as many threads as there may be; a free one takes the next part.

    Numba's own threads outlive the call and do not survive a fork, which is how many programs start their workers.
    """
    workers = min(parts, threads())
    if workers == 1:
        for part in range(parts):
            work(part)
        return
    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(work, range(parts)):
            pass


@jit
def dot(a: Vec, b: Vec) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@jit
def sub(a: Vec, b: Vec) -> Vec:
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@jit
def along(a: Vec, t: float, b: Vec) -> Vec:
    """a + t b"""
    return a[0] + t * b[0], a[1] + t * b[1], a[2] + t * b[2]


@jit
def mix(a: float, x: Vec, b: float, y: Vec, c: float, z: Vec) -> Vec:
    """a x + b y + c z"""
    return (
        a * x[0] + b * y[0] + c * z[0],
        a * x[1] + b * y[1] + c * z[1],
        a * x[2] + b * y[2] + c * z[2],
    )


@jit
def times(a: Vec, b: Vec) -> Vec:
    return a[0] * b[0], a[1] * b[1], a[2] * b[2]


@jit
def scaled(t: float, a: Vec) -> Vec:
    return t * a[0], t * a[1], t * a[2]


@jit
def cross(a: Vec, b: Vec) -> Vec:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@jit
def unit(a: Vec) -> Vec:
    return scaled(1.0 / math.sqrt(dot(a, a)), a)


@jit
def vec(w: Floats, at: int) -> Vec:
    """Three numbers of a flat array."""
    return w[at], w[at + 1], w[at + 2]
