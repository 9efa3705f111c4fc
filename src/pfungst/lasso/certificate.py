"""The duality gap of an answer, over all columns, in float64.

In units of lambda the problem is

    P(x) = 1/(2 lam) ||b - Ax||^2 + ||x||_1        D(theta) = b'theta - lam/2 ||theta||^2,  |A'theta| <= 1,

and with r = b - Ax their difference is a sum of terms that are never negative,

    P - D = 1/(2 lam) ||r - lam theta||^2 + sum_j (|x_j| - x_j a_j'theta),

so the gap is computed without cancellation. `theta` is divided by max(1, max_j |a_j'theta|) over all columns first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pfungst.lasso.arrays import Arrays
from pfungst.lasso.problem import Dictionary, Questions

ENTRIES_AT_ONCE = 1 << 28
"""Numbers gathered at a time (2 GiB of float64)."""


@dataclass(frozen=True)
class Check:
    """What one pass over all columns says about a batch of answers."""

    gaps: Any
    """(q,) relative gaps (P - D) / P; 0 where P is 0."""
    objective: Any
    """(q,) P."""
    theta: Any
    """(q, d) the feasible dual points."""
    correlation: Any
    """(q, n) |a_j'theta| (a_j'theta for non-negative problems) before theta was scaled, -1 where excluded."""


def constraints(dictionary: Dictionary, asked: Questions, values: Any, nonnegative: bool) -> Any:
    """(q, n) from A'theta: what the dual constraint bounds by one; -1 for excluded columns, which bind nothing."""
    bound = dictionary.arrays.copy(values) if nonnegative else dictionary.arrays.xp.abs(values)
    question, column = asked.excluded
    if len(question):
        bound[question, column] = -1.0
    return bound


def check(
    dictionary: Dictionary, asked: Questions, lam: float, where: Any, x: Any, theta: Any, nonnegative: bool
) -> Check:
    """Certify answers: `x` (q, m) at the columns `where` (q, m; None for all), with the dual points `theta` (q, d)."""
    a = dictionary.arrays
    values = theta @ dictionary.rows.T
    correlation = constraints(dictionary, asked, values, nonnegative)
    scale = a.xp.clip(a.xp.amax(correlation, axis=1), 1.0, None)[:, None]
    feasible = theta / scale
    fit = x @ dictionary.rows if where is None else combine(dictionary, where, x)
    signed = values if where is None else a.take(values, where)
    gap, objective = relative_gap(a, asked.b, lam, x, signed / scale, fit, feasible)
    return Check(gap, objective, feasible, correlation)


def combine(dictionary: Dictionary, where: Any, x: Any) -> Any:
    """Ax for sparse x: (q, d)."""
    if dictionary.arrays.is_numpy:
        fit = np.empty((x.shape[0], dictionary.d))
        for i in range(x.shape[0]):
            fit[i] = x[i] @ dictionary.rows[where[i]]
        return fit
    step = max(1, ENTRIES_AT_ONCE // (x.shape[1] * dictionary.d + 1))
    parts = [
        (x[i : i + step, None, :] @ dictionary.rows[where[i : i + step]])[:, 0] for i in range(0, x.shape[0], step)
    ]
    return dictionary.arrays.xp.concatenate(parts)


def relative_gap(a: Arrays, b: Any, lam: float, x: Any, signed: Any, fit: Any, theta: Any) -> tuple[Any, Any]:
    """Relative gap and P from x (q, m), `signed` = a_j'theta at the same columns, fit = Ax and a feasible theta."""
    xp = a.xp
    residual = b - fit
    off = residual - lam * theta
    slack = (xp.abs(x) - x * signed).sum(axis=1)
    gap = (off * off).sum(axis=1) / (2 * lam) + xp.clip(slack, 0.0, None)
    objective = (residual * residual).sum(axis=1) / (2 * lam) + xp.abs(x).sum(axis=1)
    return xp.where(objective > 0, gap / xp.where(objective > 0, objective, 1.0), 0.0), objective
