"""From an almost optimal point to the optimum: solve the equations of the support that the point suggests.

With the support S and its signs s known, the optimum follows from one Cholesky factorisation,

    A_S'A_S x_S = A_S'b - lam s,        theta = (b - A_S x_S) / lam.

Where S was nearly right, what comes out says what to mend: columns whose coefficient has the wrong sign leave, columns
with |a_j'theta| > 1 enter (the primal-dual active set method). Nothing is assumed about its success: the gap decides.
"""

from __future__ import annotations

from typing import Any

from pfungst.lasso.arrays import Arrays
from pfungst.lasso.certificate import relative_gap
from pfungst.lasso.interior import Interior, _backward, _forward

EXACT = 1e-12
"""A gap below this is rounding."""
MENDINGS = 4


def polish(
    a: Arrays, columns: Any, b: Any, lam: float, rank: int, point: Interior, nonnegative: bool
) -> tuple[Any, Any, Any]:
    """The better of `point` and what its support gives: x (q, m), theta (q, d), gaps (q,) on the working set."""
    xp = a.xp
    # More columns than the rank of the dictionary are dependent, and no vertex needs them.
    size = min(columns.shape[1], rank)
    # A column is in the support where its multiplier, in units of the typical coefficient, outweighs its slack.
    unit = xp.clip(xp.abs(point.x).sum(axis=1) / size, 1e-300, None)[:, None, None]
    score = xp.amax(point.multipliers / unit - point.slacks, axis=1)
    sign = xp.sign(point.x)
    best = tuple(a.copy(part) for part in (point.x, point.theta, point.gaps))
    rest = a.array(range(b.shape[0]), "int64")
    for _ in range(MENDINGS):
        x, theta, values, gaps = _solve_on(a, columns, b, lam, score, sign, size, nonnegative)
        wins = gaps < best[2][rest]
        for old, new in zip(best, (x, theta, gaps), strict=True):
            old[rest[wins]] = new[wins]
        # Mending is worth its factorisation only near the end; further off, interior point steps do better.
        hopeful = (best[2][rest] > EXACT) & (gaps < 1e-2)
        if not bool(hopeful.any()):
            break
        if not bool(hopeful.all()):
            rest, columns, b, x, values, sign = (part[hopeful] for part in (rest, columns, b, x, values, sign))
        bound = values if nonnegative else xp.abs(values)
        over = bound - 1.0
        stays = (x * sign > 0) & (x != 0.0)
        score = xp.where(stays, 3.0, xp.where((over > 1e-11) & (x == 0.0), 1.0 + xp.clip(over, None, 1.0), -1.0))
        sign = xp.where(stays, sign, xp.sign(values))
    return best


def _solve_on(
    a: Arrays, columns: Any, b: Any, lam: float, score: Any, sign: Any, size: int, nonnegative: bool
) -> tuple[Any, Any, Any, Any]:
    """x, theta, A'theta and gaps (infinite if singular) for the support of the (at most `size`) positive scores."""
    xp = a.xp
    size = max(1, min(size, int((score > 0).sum(axis=1).max())))
    chosen = a.largest(score, size)
    inside = a.take(score, chosen) > 0
    member = a.cast(inside, "float64")
    sign = a.take(sign, chosen) * member
    part = columns[a.array(range(columns.shape[0]), "int64")[:, None], chosen]
    part = xp.where(inside[..., None], part, 0.0)
    matrix = a.copy(part @ part.swapaxes(1, 2))
    spots = range(size)
    matrix[:, spots, spots] += 1.0 - member
    factor, good = a.factor(matrix)
    x = a.solve(factor, _forward(part, b) - lam * sign)
    for _ in range(2):
        # The normal equations square the condition number; refinement takes the square out again.
        x = x + a.solve(factor, member * (_forward(part, b - _backward(part, x)) - lam * sign))
    theta = (b - _backward(part, x)) / lam
    for _ in range(2):
        theta = theta + _backward(part, a.solve(factor, sign - _forward(part, theta)))
    full = a.zeros((columns.shape[0], columns.shape[1]))
    a.put(full, chosen, x * member)
    values = _forward(columns, theta)
    bound = values if nonnegative else xp.abs(values)
    scale = xp.clip(xp.amax(bound, axis=1), 1.0, None)[:, None]
    usable = xp.clip(full, 0.0, None) if nonnegative else full
    gaps, _ = relative_gap(a, b, lam, usable, values / scale, _backward(columns, usable), theta / scale)
    return full, theta, values, xp.where(xp.isfinite(gaps) & good, gaps, float("inf"))
