"""Which keys a store has, in memory: 16 bytes a key, and a question about many keys is one pass over both."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Heads = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.int64]
SMALL = 1 << 16
"""Heads that are kept as they come before they are sorted in."""

AT_ONCE = 500
"""Rows in one SELECT."""


def heads_of(keys: Sequence[bytes]) -> Heads:
    """The first eight bytes of each key, as numbers."""
    return np.frombuffer(b"".join([key[:8] for key in keys]), dtype=">u8").astype(np.uint64)


class KeyIndex:
    """The heads (first eight bytes) of keys, and the row each stands in.

    Two keys may share a head, so what is found here must be compared with the whole key; what is not found is not
    there. Sorted runs are merged as they grow, each at most a quarter of the one before it.
    """

    def __init__(self) -> None:
        self._fresh: dict[int, list[int]] = {}
        """Head -> rows, of those not sorted yet."""
        self._sorted: list[tuple[Heads, Rows]] = []
        self.count: int = 0

    def add(self, heads: Heads, first_row: int) -> None:
        """Keys of consecutive rows."""
        self.count += len(heads)
        if len(heads) >= SMALL:
            self._sort_in(heads, np.arange(first_row, first_row + len(heads), dtype=np.int64))
            return
        for row, head in enumerate(heads.tolist(), first_row):
            self._fresh.setdefault(head, []).append(row)
        if len(self._fresh) >= SMALL:
            pairs = [(head, row) for head, rows in self._fresh.items() for row in rows]
            self._fresh = {}
            self._sort_in(np.array([head for head, _ in pairs], np.uint64), np.array([row for _, row in pairs]))

    def read(self, db: sqlite3.Connection, after: int) -> int:
        """Add what an answer store holds behind this row; returns its last row."""
        for last, heads in db.execute("SELECT last, heads FROM batches WHERE last > ? ORDER BY last", (after,)):
            numbers = np.frombuffer(heads, dtype=">u8").astype(np.uint64)
            self.add(numbers, last - len(numbers) + 1)
            after = last
        return after

    def find(self, heads: Heads) -> Rows:
        """The rows of all that may be among these keys, in no particular order."""
        wanted = np.sort(heads)
        rows = [np.array([row for head in heads.tolist() for row in self._fresh.get(head, ())], np.int64)]
        for known, where in self._sorted:
            low, high = (np.searchsorted(known, wanted, side) for side in ("left", "right"))
            some = high > low
            if some.any():
                rows.append(where[_spans(low[some], high[some])])
        return np.concatenate(rows)

    def _sort_in(self, heads: Heads, rows: Rows) -> None:
        self._sorted.append(_in_order(heads, rows))
        while len(self._sorted) > 1 and 4 * len(self._sorted[-1][0]) > len(self._sorted[-2][0]):
            last, before = self._sorted.pop(), self._sorted.pop()
            self._sorted.append(_in_order(*(np.concatenate(pair) for pair in zip(before, last, strict=True))))


def _in_order(heads: Heads, rows: Rows) -> tuple[Heads, Rows]:
    order = np.argsort(heads, kind="stable")
    return heads[order], rows[order]


def _spans(low: Rows, high: Rows) -> Rows:
    """The numbers from low to high of each pair, one after the other."""
    many = high - low
    numbers: Rows = np.arange(int(many.sum())) + np.repeat(low - np.cumsum(many) + many, many)
    return numbers


def rows_of(db: sqlite3.Connection, columns: str, numbers: Rows) -> Iterator[tuple[Any, ...]]:
    """These columns of the answers in these rows, in increasing order."""
    wanted: list[int] = np.unique(numbers).tolist()
    for start in range(0, len(wanted), AT_ONCE):
        part = wanted[start : start + AT_ONCE]
        if part[-1] - part[0] == len(part) - 1:  # as they were asked: one stretch of the table
            yield from db.execute(f"SELECT {columns} FROM answers WHERE id BETWEEN ? AND ?", (part[0], part[-1]))
        else:
            marks = ",".join("?" * len(part))
            yield from db.execute(f"SELECT {columns} FROM answers WHERE id IN ({marks}) ORDER BY id", part)
