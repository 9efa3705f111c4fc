"""What is asked of the solver, and what a batch answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pfungst.core.threads import Workers
from pfungst.lasso.certificate import Check
from pfungst.lasso.problem import Dictionary

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class SolverSettings:
    """The problem in the scaled units of the dictionary and the questions."""

    lam: float
    tol: float
    nonnegative: bool
    keep: int | None
    beta: float
    """Step of the splitting, the same for all batches of a call, because the whitening depends on it."""
    workers: Workers


@dataclass(frozen=True)
class Answers:
    """The answers to a batch, on the host."""

    columns: list[Array]
    """Per question the columns used, ascending."""
    values: list[Array]
    gaps: Array
    objectives: Array
    theta: Array
    """(q, d)."""
    iterations: Array

    @classmethod
    def zero(cls, gaps: Array, objectives: Array, theta: Array) -> Answers:
        """No coefficients."""
        count = len(gaps)
        columns, values = [np.zeros(0, np.int64)] * count, [np.zeros(0)] * count
        return cls(columns, values, gaps, objectives, theta, np.zeros(count, np.int64))

    @classmethod
    def none(cls, count: int, d: int) -> Answers:
        """No coefficients and no certificate yet."""
        return cls.zero(np.full(count, np.inf), np.zeros(count), np.zeros((count, d)))

    def put(self, where: Array, part: Answers) -> None:
        """Take over the answers to the questions at the positions `where`."""
        for i, columns, values in zip(where, part.columns, part.values, strict=True):
            self.columns[i], self.values[i] = columns, values
        for name in ("gaps", "objectives", "theta", "iterations"):
            getattr(self, name)[where] = getattr(part, name)


def certified(
    dictionary: Dictionary, found: Check, which: Array, where: Any, x: Any, keep: int | None, iterations: Array
) -> Answers:
    """The answers at the positions `which` of a batch: x (q, m) at the columns `where` (q, m; None for all)."""
    a = dictionary.arrays
    some = a.array(which, "int64")
    rows = sparse_rows(dictionary, None if where is None else where[some], x[some], keep)
    gaps, objectives, theta = (a.host(values[some]) for values in (found.gaps, found.objective, found.theta))
    return Answers(*rows, gaps, objectives, theta, iterations)


def sparse_rows(dictionary: Dictionary, where: Any, x: Any, keep: int | None) -> tuple[list[Array], list[Array]]:
    """Non-zero entries of x (q, m) at the columns `where` (q, m; None for all columns), ascending by column."""
    a = dictionary.arrays
    if keep is not None and keep < x.shape[1]:
        best = a.largest(x, keep)
        x = a.take(x, best)
        where = best if where is None else a.take(where, best)
    x = a.host(x)
    places = np.broadcast_to(np.arange(x.shape[1]), x.shape) if where is None else a.host(where)
    columns, values = [], []
    for place, row in zip(places, x, strict=True):
        used = np.flatnonzero(row)
        used = used[np.argsort(place[used], kind="stable")]
        columns.append(place[used].astype(np.int64))
        values.append(row[used].astype(np.float64))
    return columns, values
