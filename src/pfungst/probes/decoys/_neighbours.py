"""The most similar questions, exactly, block by block.

Averaged word vectors all point into one narrow cone (the 50th neighbour of a COCO-QA question has a cosine of 0.96), so
that pruning by clusters saves nothing: with 1,024 clusters 82% of the vectors must still be looked at. A matrix
product of blocks and a scan that keeps the few largest is faster than anything clever.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]

QUERIES = 256
CANDIDATES = 4096
"""A block of similarities is 4 MiB: it stays in the cache between the product and the scan."""
_DEEP_BYTES = 64 << 20
"""Bound on the buffers of a block of deep searches."""


def unit_rows(vectors: npt.NDArray[np.float32]) -> Floats:
    """Rows of length 1, contiguous float32; rows of zeros stay."""
    rows = np.array(vectors, np.float32, order="C")
    for start in range(0, len(rows), 1 << 16):
        part = rows[start : start + (1 << 16)]
        length = np.linalg.norm(part, axis=1, keepdims=True)
        np.divide(part, length, out=part, where=length > 0)
    return rows


def nearest(vectors: Floats, queries: npt.NDArray[np.int64], count: int) -> tuple[Ints, Floats]:
    """The `count` rows of `vectors` with the largest cosine to each query row, itself included.

    vectors: (n, dim), rows of length 1. queries: numbers of rows. Returns (queries, count) numbers, most similar first,
    and their cosines; -1 and NaN where there are fewer. A row of zeros (no known word) has only itself as neighbour.
    """
    from pfungst.probes.decoys import _kernels

    count = min(count, len(vectors))
    found = np.full((len(queries), count), -1, np.int32)
    cosines = np.full((len(queries), count), np.nan, np.float32)
    room = max(4 * count, count + 64) if count <= 1024 else 2 * count
    block = max(8, min(QUERIES, _DEEP_BYTES // (8 * room)))
    similarities = np.empty((block, CANDIDATES), np.float32)
    with ThreadPoolExecutor(_threads()) as pool:
        for start in range(0, len(queries), block):
            rows = np.ascontiguousarray(vectors[queries[start : start + block]])
            size = len(rows)
            kept = (
                np.full(size, -np.inf, np.float32),
                np.zeros(size, np.int64),
                np.empty((size, room), np.float32),
                np.empty((size, room), np.int32),
            )
            for offset in range(0, len(vectors), CANDIDATES):
                part = vectors[offset : offset + CANDIDATES]
                here = np.matmul(rows, part.T, out=similarities[:size, : len(part)])
                _spread(pool, size, lambda a, b, s=here, o=offset, k=kept: _kernels.scan(s, o, count, k, a, b))
            there, near = found[start : start + size], cosines[start : start + size]
            _spread(
                pool, size, lambda a, b, r=rows, k=kept, f=there, n=near: _kernels.rank(vectors, r, count, k, f, n, a, b)
            )
    unknown = ~vectors[queries].any(1)
    found[unknown, :], cosines[unknown, :] = -1, np.nan
    found[unknown, 0], cosines[unknown, 0] = queries[unknown], 1.0
    return found, cosines


def _threads() -> int:
    # Follows the setting that matrix products obey, so that one variable says how many cores are used.
    limit = os.environ.get("OMP_NUM_THREADS", "")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, int(limit)) if limit.isdecimal() and int(limit) > 0 else cores


def _spread(pool: ThreadPoolExecutor, rows: int, work: Callable[[int, int], None]) -> None:
    """Rows in equal pieces over the threads; the kernels let go of the interpreter."""
    pieces = pool._max_workers
    if pieces == 1 or rows < 2 * pieces:
        work(0, rows)
        return
    edges = np.linspace(0, rows, pieces + 1).astype(int)
    for done in [pool.submit(work, int(a), int(b)) for a, b in zip(edges, edges[1:], strict=False)]:
        done.result()
