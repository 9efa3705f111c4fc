"""The compiled check of legality. Imported only where it runs: loading numba takes a second.

No fast-math: a distance must be the same number as in `legal.why_illegal`.
"""

from __future__ import annotations

import math

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def legal_positions(positions, radii, ways, both_ways, gap, margin, bound, out):  # type: ignore[no-untyped-def]
    """Whether each layout keeps the rules; leaves a layout at the first pair that does not.

    With `both_ways` only `ways[0]` and `ways[1]` count, each in both senses.
    """
    n = positions.shape[1]
    near = np.empty((n, n))
    far = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            square = max(gap + radii[i] + radii[j], 0.0) ** 2
            # A root costs more than the rest: take it only where rounding could decide.
            near[i, j], far[i, j] = square * (1.0 - 1e-9), square * (1.0 + 1e-9)
    for x in range(len(positions)):
        good = True
        for i in range(n):
            px, py = positions[x, i, 0], positions[x, i, 1]
            good = abs(px) <= bound and abs(py) <= bound
            for j in range(i):
                dx, dy = px - positions[x, j, 0], py - positions[x, j, 1]
                if both_ways:
                    one = abs(dx * ways[0, 0] + dy * ways[0, 1])
                    two = abs(dx * ways[1, 0] + dy * ways[1, 1])
                    good &= not ((one > 0.0) & (one < margin) | (two > 0.0) & (two < margin))
                else:
                    for k in range(len(ways)):
                        along = dx * ways[k, 0] + dy * ways[k, 1]
                        good &= not (0.0 < along < margin)
                square = dx * dx + dy * dy
                if square <= far[i, j]:
                    good &= square >= near[i, j] and math.sqrt(square) - radii[i] - radii[j] >= gap
                if not good:
                    break
            if not good:
                break
        out[x] = good
