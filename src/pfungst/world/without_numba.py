"""The world's compiled loops once more in numpy, for machines that have torch and numpy alone.

`install()` puts them in the place of `pfungst.world.kernels` where numba is missing: the same answers and the same
verdicts, several times slower. Only what a game needs is here.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pfungst.world.lowering import AND, COUNT, EQUAL, EXIST, LESS, LOOKUP, OR, RELATE, UNIQUE

Array: TypeAlias = npt.NDArray[Any]

KERNELS = "pfungst.world.kernels"
_ONE, _ZERO = np.uint64(1), np.uint64(0)


def install() -> bool:
    """Use this module where numba is missing; True where it is used."""
    if find_spec("numba") is not None:
        return False
    sys.modules[KERNELS] = sys.modules[__name__]
    return True


def _bits(x: Array) -> Array:
    x = x - ((x >> _ONE) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.asarray((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


def _apply(code: int, a: Array, b: Array, table: Array | None) -> tuple[Array, Array | None]:
    """The value of an operation, and for `unique` where it is valid."""
    if code == AND:
        return a & b, None
    if code == OR:
        return a | b, None
    if code == UNIQUE:
        one = (a != _ZERO) & ((a & (a - _ONE)) == _ZERO)
        # A failed set points at object 0, so that later look-ups stay inside their tables.
        return np.where(one, _bits((a & (~a + _ONE)) - _ONE), _ZERO), one
    if code == LOOKUP:
        assert table is not None
        return table[a.astype(np.int64)], None
    if code == COUNT:
        return _bits(a), None
    if code == EXIST:
        return (a != _ZERO).astype(np.uint64), None
    assert code in (EQUAL, LESS)
    return ((a == b) if code == EQUAL else (a < b)).astype(np.uint64), None


def answer_positions(
    ops: Array, needs: Array, used: Array, constants: Array, tables: Array, result: int, positions: Array, ways: Array,
    heights: Array, threshold: float, codes: Array, masks: Array,
) -> None:  # fmt: skip
    """Answers for positions (layouts, objects, 2), into `codes` (and `masks` where the answer is a set)."""
    count, every = len(positions), np.arange(len(positions))
    registers: list[Array] = [np.full(count, value, np.uint64) for value in constants]
    valid = np.ones(count, np.bool_)
    xs, ys = positions[:, :, 0], positions[:, :, 1]
    for code, first, second, target, argument, start, stop in ops.tolist():
        if code != RELATE:
            table = tables[argument] if code == LOOKUP else None
            registers[target], good = _apply(code, registers[first], registers[second], table)
            if good is not None:
                valid &= good
            continue
        source = registers[first].astype(np.int64)
        dx, dy, dz = ways[argument].tolist()
        mine_x, mine_y, out = xs[every, source], ys[every, source], np.zeros(count, np.uint64)
        for j in needs[start:stop].tolist():
            # The sums in the order of the plain engine: scenes come within 2e-6 of the threshold.
            along = (xs[:, j] - mine_x) * dx + (ys[:, j] - mine_y) * dy
            if dz != 0.0:
                along = along + (heights[j] - heights[source]) * dz
            out |= np.where(along > threshold, _ONE << np.uint64(j), _ZERO)
        registers[target] = out
    value = registers[result]
    if len(masks):
        masks[:] = value
        codes[:] = valid.astype(np.int8) - np.int8(1)
    else:
        codes[:] = np.where(valid, value.astype(np.int8), np.int8(-1))


def legal_positions(
    positions: Array, radii: Array, ways: Array, both_ways: bool, gap: float, margin: float, bound: float, out: Array
) -> None:
    """Whether each layout keeps the rules; `both_ways`: a direction and its opposite are looked at as one."""
    out[:] = (np.abs(positions) <= bound).all(axis=(1, 2))
    i, j = np.tril_indices(positions.shape[1], -1)
    if not len(i):
        return
    dx, dy = positions[:, i, 0] - positions[:, j, 0], positions[:, i, 1] - positions[:, j, 1]
    for x, y in ways.tolist():
        along = dx * x + dy * y
        if both_ways:
            along = np.abs(along)
        out &= ~((along > 0.0) & (along < margin)).any(axis=1)
    out &= (np.sqrt(dx * dx + dy * dy) - radii[i] - radii[j] >= gap).all(axis=1)


def legal_cells(cells: Array, allowed: Array, pair_stride: int, side: int, out: Array) -> None:
    """As `legal_positions`, from a flat table over pair, cell, cell; a pair (i, i) tells whether a cell may be used."""
    n = cells.shape[1]
    left, index = np.arange(len(cells)), cells.astype(np.int64)
    out[:] = False
    for i in range(n):
        for j in range(i + 1):
            good = allowed[(i * n + j) * pair_stride + index[:, i] * side + index[:, j]] != 0
            if not good.all():
                left, index = left[good], index[good]
            if not len(left):
                return
    out[left] = True
