"""Compiled loops over layouts. Imported only where they run: loading numba takes a second.

A block of layouts goes through the operations one after the other, so that the switch is paid once a block and the
registers stay in the first-level cache. Within a block everything is stored object by object, so that the inner loops
run over layouts and become vector instructions. No fast-math: a dot product must be the same number as in the plain
engine.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from pfungst.world.lowering import AND, COUNT, EQUAL, EXIST, LESS, LOOKUP, OR, RELATE, UNIQUE

_BLOCK = 256
_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_M1 = np.uint64(0x5555555555555555)
_M2 = np.uint64(0x3333333333333333)
_M4 = np.uint64(0x0F0F0F0F0F0F0F0F)
_H = np.uint64(0x0101010101010101)


@numba.njit(inline="always")
def _bits(x):  # type: ignore[no-untyped-def]
    x = x - ((x >> _ONE) & _M1)
    x = (x & _M2) + ((x >> np.uint64(2)) & _M2)
    x = (x + (x >> np.uint64(4))) & _M4
    return (x * _H) >> np.uint64(56)


@numba.njit(cache=True, nogil=True)
def _apply(op, r, valid, size, tables):  # type: ignore[no-untyped-def]
    code, a, b, out, t = op[0], r[op[1]], r[op[2]], r[op[3]], op[4]
    if code == AND:
        for x in range(size):
            out[x] = a[x] & b[x]
    elif code == OR:
        for x in range(size):
            out[x] = a[x] | b[x]
    elif code == UNIQUE:
        for x in range(size):
            m = a[x]
            one = _ONE if m != _ZERO and (m & (m - _ONE)) == _ZERO else _ZERO
            valid[x] &= one
            # A failed set points at object 0, so that later look-ups stay inside their tables. No branch: which layouts
            # fail is as good as random, and a wrong guess costs more than the work.
            out[x] = _bits((m & (~m + _ONE)) - _ONE) & (_ZERO - one)
    elif code == LOOKUP:
        table = tables[t]
        for x in range(size):
            out[x] = table[a[x]]
    elif code == COUNT:
        for x in range(size):
            out[x] = _bits(a[x])
    elif code == EXIST:
        for x in range(size):
            out[x] = _ONE if a[x] != _ZERO else _ZERO
    elif code == EQUAL:
        for x in range(size):
            out[x] = _ONE if a[x] == b[x] else _ZERO
    elif code == LESS:
        for x in range(size):
            out[x] = _ONE if a[x] < b[x] else _ZERO


@numba.njit(cache=True, nogil=True)
def _relate_positions(source, out, size, needs, start, stop, xs, ys, mine, way, heights, threshold):  # type: ignore[no-untyped-def]
    dx, dy, dz = way[0], way[1], way[2]
    mine_x, mine_y = mine[0], mine[1]
    for x in range(size):
        mine_x[x] = xs[source[x], x]
        mine_y[x] = ys[source[x], x]
        out[x] = _ZERO
    for k in range(start, stop):
        j = needs[k]
        bit = _ONE << np.uint64(j)
        other_x, other_y = xs[j], ys[j]
        if dz == 0.0:
            for x in range(size):
                dot = (other_x[x] - mine_x[x]) * dx + (other_y[x] - mine_y[x]) * dy
                out[x] |= bit if dot > threshold else _ZERO
        else:
            for x in range(size):
                rise = (heights[j] - heights[source[x]]) * dz
                dot = (other_x[x] - mine_x[x]) * dx + (other_y[x] - mine_y[x]) * dy + rise
                out[x] |= bit if dot > threshold else _ZERO


@numba.njit(cache=True, nogil=True)
def _relate_cells(source, out, size, needs, start, stop, own, rows, sides, stride):  # type: ignore[no-untyped-def]
    n, cells = own.shape[0], len(sides) if stride == 0 else stride
    for x in range(size):
        out[x] = _ZERO
    if stride == 0:
        for x in range(size):
            rows[x] = sides[own[source[x], x]]
        for k in range(start, stop):
            j = np.uint64(needs[k])
            other = own[j]
            for x in range(size):
                out[x] |= ((rows[x] >> np.uint64(other[x])) & _ONE) << j
    else:
        for k in range(start, stop):
            j = np.uint64(needs[k])
            other = own[j]
            for x in range(size):
                row = sides[(source[x] * np.uint64(n) + j) * np.uint64(cells) + np.uint64(own[source[x], x])]
                out[x] |= ((row >> np.uint64(other[x])) & _ONE) << j


@numba.njit(cache=True, nogil=True)
def _store(value, valid, size, codes, masks, start):  # type: ignore[no-untyped-def]
    if len(masks) > 0:
        for x in range(size):
            masks[start + x] = value[x]
            codes[start + x] = np.int8(valid[x]) - np.int8(1)
    else:
        for x in range(size):
            codes[start + x] = np.int8(value[x] | (valid[x] - _ONE))


@numba.njit(cache=True, nogil=True)
def answer_positions(  # type: ignore[no-untyped-def]
    ops, needs, used, constants, tables, result, positions, ways, heights, threshold, codes, masks
):
    """Answers for positions (layouts, objects, 2), into `codes` (and `masks` where the answer is a set)."""
    r = np.empty((len(constants), _BLOCK + 8), np.uint64)
    for k in range(len(constants)):
        r[k, :] = constants[k]
    xs = np.zeros((positions.shape[1], _BLOCK + 8))
    ys = np.zeros((positions.shape[1], _BLOCK + 8))
    mine = np.empty((2, _BLOCK))
    valid = np.empty(_BLOCK, np.uint64)
    for start in range(0, len(positions), _BLOCK):
        size = min(_BLOCK, len(positions) - start)
        for x in range(size):
            for k in range(len(used)):
                j = used[k]
                xs[j, x] = positions[start + x, j, 0]
                ys[j, x] = positions[start + x, j, 1]
        valid[:] = _ONE
        for k in range(len(ops)):
            op = ops[k]
            if op[0] == RELATE:
                source, out, way = r[op[1]], r[op[3]], ways[op[4]]
                _relate_positions(source, out, size, needs, op[5], op[6], xs, ys, mine, way, heights, threshold)
            else:
                _apply(op, r, valid, size, tables)
        _store(r[result], valid, size, codes, masks, start)


@numba.njit(cache=True, nogil=True)
def answer_cells(  # type: ignore[no-untyped-def]
    ops, needs, used, constants, tables, result, cells, sides, stride, codes, masks
):
    """Answers for cell indices (layouts, objects).

    `sides[way]` is flat over (pair of objects,) cell: bit c is set where cell c lies on that side. `stride` is the
    number of cells where every pair has masks of its own, 0 where all share them.
    """
    r = np.empty((len(constants), _BLOCK + 8), np.uint64)
    for k in range(len(constants)):
        r[k, :] = constants[k]
    own = np.zeros((cells.shape[1], _BLOCK), np.uint8)
    rows = np.empty(_BLOCK, np.uint64)
    valid = np.empty(_BLOCK, np.uint64)
    for start in range(0, len(cells), _BLOCK):
        size = min(_BLOCK, len(cells) - start)
        for x in range(size):
            for k in range(len(used)):
                own[used[k], x] = cells[start + x, used[k]]
        valid[:] = _ONE
        for k in range(len(ops)):
            op = ops[k]
            if op[0] == RELATE:
                _relate_cells(r[op[1]], r[op[3]], size, needs, op[5], op[6], own, rows, sides[op[4]], stride)
            else:
                _apply(op, r, valid, size, tables)
        _store(r[result], valid, size, codes, masks, start)


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


@numba.njit(cache=True, nogil=True)
def legal_cells(cells, allowed, pair_stride, side, out):  # type: ignore[no-untyped-def]
    """As `legal_positions`, from a flat table over pair, cell, cell; a pair (i, i) tells whether a cell may be used."""
    n = cells.shape[1]
    for x in range(len(cells)):
        good = True
        for i in range(n):
            row = np.int64(cells[x, i]) * side
            for j in range(i + 1):
                if not allowed[(i * n + j) * pair_stride + row + np.int64(cells[x, j])]:
                    good = False
                    break
            if not good:
                break
        out[x] = good


@numba.njit(cache=True, nogil=True)
def free_cells(cells, mover, allowed, pair_stride, side, out):  # type: ignore[no-untyped-def]
    """(layouts, cells): where `mover` may go while all others stay."""
    n = cells.shape[1]
    for x in range(len(cells)):
        for c in range(side):
            good = allowed[(mover * n + mover) * pair_stride + c * side + c]
            for j in range(n):
                if j != mover:
                    good = good and allowed[(mover * n + j) * pair_stride + c * side + np.int64(cells[x, j])]
            out[x, c] = good
