"""The most similar questions, exactly, block by block.

Averaged word vectors all point into one narrow cone (the 50th neighbour of a COCO-QA question has a cosine of 0.96), so
that pruning by clusters saves nothing: with 1,024 clusters 82% of the vectors must still be looked at. A matrix
product of blocks and a scan that keeps the few largest is faster than anything clever.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pfungst.core.threads import threads
from pfungst.probes.decoys.split import Ints

Floats = npt.NDArray[np.float32]

QUERIES = 384
CANDIDATES = 768
"""A block of similarities is 1.1 MiB: it stays in a core's own cache between the product and the scan."""
STRIDE = 64
"""Candidates whose maximum is compared with what is already known before they are looked at one by one."""
_DEEP_BYTES = 64 << 20
"""Bound on the buffers of a block of deep searches."""


def nearest(vectors: Floats, queries: npt.NDArray[np.int64], count: int) -> tuple[Ints, Floats]:
    """The `count` rows of `vectors` with the largest cosine to each query row, itself included.

    vectors: (n, dim), rows of length 1. queries: numbers of rows. Returns (queries, count) numbers, most similar first,
    and their cosines; -1 and NaN where there are fewer. A row of zeros (no known word) has only itself as neighbour.
    """
    count = min(count, len(vectors))
    found = np.full((len(queries), count), -1, np.int32)
    cosines = np.full((len(queries), count), np.nan, np.float32)
    room = max(4 * count, count + 64) if count <= 1024 else 2 * count
    block = max(8, min(QUERIES, _DEEP_BYTES // (8 * room)))

    def work(start: int) -> None:
        rows = queries[start : start + block]
        _search(vectors, rows, room, found[start : start + block], cosines[start : start + block])

    with threads(None) as workers:
        workers.map(work, range(0, len(queries), block))
    unknown = ~vectors[queries].any(1)
    found[unknown, :], cosines[unknown, :] = -1, np.nan
    found[unknown, 0], cosines[unknown, 0] = queries[unknown], 1.0
    return found, cosines


def _search(vectors: Floats, queries: npt.NDArray[np.int64], room: int, found: Ints, cosines: Floats) -> None:
    """One block of queries against everything; `found` and `cosines` (queries, count) are filled."""
    from pfungst.probes.decoys import kernels

    rows = np.ascontiguousarray(vectors[queries])
    size, count = found.shape
    kept = (
        np.full(size, -np.inf, np.float32),
        np.zeros(size, np.int64),
        np.empty((size, room), np.float32),
        np.empty((size, room), np.int32),
    )
    similarities = np.empty((CANDIDATES, size), np.float32)
    highest = np.empty((CANDIDATES // STRIDE, size), np.float32)
    for offset in range(0, len(vectors), CANDIDATES):
        part = vectors[offset : offset + CANDIDATES]
        np.matmul(part, rows.T, out=similarities[: len(part)])
        similarities[len(part) :] = -np.inf
        similarities.reshape(-1, STRIDE, size).max(axis=1, out=highest)
        kernels.scan(similarities, highest, offset, count, kept)
    kernels.finish(vectors, rows, count, kept, found, cosines)
    # Most similar first, of equal ones the first in the data.
    order = np.lexsort((found, -cosines), axis=1)
    found[:] = np.take_along_axis(found, order, axis=1)
    cosines[:] = np.take_along_axis(cosines, order, axis=1)
