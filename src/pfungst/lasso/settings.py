"""What is asked of the solver, and what a batch answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pfungst.core.threads import Workers
from pfungst.lasso.problem import Dictionary, Questions

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


def zeros(dictionary: Dictionary, asked: Questions, lam: float) -> Answers:
    """The answer zero, which is optimal with theta = b / lam where lam is at least max |A'b|."""
    b = dictionary.arrays.host(asked.b)
    none = np.zeros(0)
    return Answers(
        [none.astype(np.int64)] * asked.count,
        [none] * asked.count,
        np.zeros(asked.count),
        (b * b).sum(axis=1) / (2 * lam),
        b / lam,
        np.zeros(asked.count, dtype=np.int64),
    )


def merge(count: int, parts: list[tuple[Array, Answers]]) -> Answers:
    """One batch from answers to some of its questions each, with their positions."""
    first = parts[0][1]
    whole = Answers(
        [np.zeros(0, np.int64)] * count,
        [np.zeros(0)] * count,
        np.zeros(count),
        np.zeros(count),
        np.zeros((count, first.theta.shape[1])),
        np.zeros(count, np.int64),
    )
    for where, part in parts:
        for i, columns, values in zip(where, part.columns, part.values, strict=True):
            whole.columns[i], whole.values[i] = columns, values
        for name in ("gaps", "objectives", "theta", "iterations"):
            getattr(whole, name)[where] = getattr(part, name)
    return whole
