"""Mehrotra's interior point method for the dual problem on a working set, many questions at once.

    max_theta b'theta - lam/2 ||theta||^2   subject to   sigma a_j'theta <= 1   for the signs sigma = +1 and -1
    (only +1 where the coefficients must not be negative).

The multipliers of the two families of constraints are the positive and the negative part of x. Eliminating them and
the slacks leaves one positive definite system a question and step,

    (lam I + C' W C) dtheta = right-hand side,      C the working set (m, d), W = sum over signs of multiplier / slack,

factorised once and used twice (predictor and corrector). Where lam is not tiny and the working set not larger than
the dimension, the equivalent system lam W^-1 + CC' of m equations is used: CC' never changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pfungst.lasso.arrays import Arrays
from pfungst.lasso.certificate import relative_gap

MAX_STEPS = 60
BOUNDARY = 0.995
"""Share of the way to the boundary that a step may go."""
START_INSIDE = 0.97
"""The starting point is scaled to have no constraint above this."""
START_COMPLEMENTARITY = 0.03
"""Average complementarity of the start, relative to ||x||_1 / m; chosen on real questions."""
COLD_RIDGE = 1e-9
TINY = 1e-300
PATIENCE = 3
GRAM_FORM_LAM = 2e-3
"""Smallest lam (at unit norms) for the m x m system: it divides by lam."""
SAME_STEP_LAM = 1e-4
"""From here on the quadratic term is felt, and the two steps must agree, or the stationarity gained is lost again."""


@dataclass(frozen=True)
class Interior:
    """Where the method ended."""

    steps: np.ndarray[Any, Any]
    x: Any
    """(q, m)."""
    theta: Any
    """(q, d)."""
    multipliers: Any
    """(q, signs, m)."""
    slacks: Any
    """(q, signs, m)."""
    gaps: Any
    """(q,) on the working set."""

    def some(self, which: Any, on_host: np.ndarray[Any, Any]) -> Interior:
        """The questions at the positions `which`, given on the device and on the host."""
        parts = (self.x, self.theta, self.multipliers, self.slacks, self.gaps)
        return Interior(self.steps[on_host], *(part[which] for part in parts))


class _System:
    """Solves (lam I + C' W C) y = r for fixed C and changing W."""

    def __init__(self, a: Arrays, columns: Any, lam: float) -> None:
        self.a, self.columns, self.lam = a, columns, lam
        m, d = columns.shape[1], columns.shape[2]
        self.gram_form = lam >= GRAM_FORM_LAM and m <= 1.5 * d
        self.gram = columns @ columns.swapaxes(1, 2) if self.gram_form else None
        self.factor: Any = None
        self.weights: Any = None

    def some(self, which: Any) -> None:
        """Go on with the questions at the positions `which`."""
        self.columns = self.columns[which]
        if self.gram is not None:
            self.gram = self.gram[which]

    def set_weights(self, weights: Any) -> Any:
        """Factorise for W = `weights` (q, m); says for which questions that was possible."""
        # Near a degenerate vertex the system is singular to rounding; a jitter this small only bends the step.
        self.weights = weights
        good = self._factorise(weights, 1e-15)
        return good if bool(good.all()) else self._factorise(weights, 1e-11)

    def _factorise(self, weights: Any, jitter: float) -> Any:
        a = self.a
        if self.gram_form:
            matrix, diagonal = a.copy(self.gram), self.lam / weights
        else:
            matrix, diagonal = a.weighted_gram(self.columns, weights), self.lam
        spots = range(matrix.shape[-1])
        main = matrix[:, spots, spots]
        matrix[:, spots, spots] = main + diagonal + jitter * a.xp.amax(main, axis=1)[:, None]
        self.factor, good = a.factor(matrix)
        return good

    def solve(self, right: Any) -> tuple[Any, Any]:
        """y (q, d) and Cy (q, m)."""
        if not self.gram_form:
            y = self.a.solve(self.factor, right)
            return y, _forward(self.columns, y)
        # What is solved for is W C y. Multiplying C y by W, which grows without bound, would blow up its rounding.
        weighted = self.a.solve(self.factor, _forward(self.columns, right))
        return (right - _backward(self.columns, weighted)) / self.lam, weighted / self.weights


def _forward(columns: Any, theta: Any) -> Any:
    """C theta: (q, m)."""
    return (columns @ theta[..., None])[..., 0]


def _backward(columns: Any, x: Any) -> Any:
    """C'x: (q, d)."""
    return (x[:, None, :] @ columns)[:, 0]


def _longest(a: Arrays, values: Any, change: Any) -> Any:
    """Largest step that keeps values + step * change >= 0, at most 1 / tiny: (q,)."""
    worst = a.xp.amin(change / values, axis=(1, 2))
    return 1.0 / a.xp.clip(-worst, 1e-12, None)


def interior(
    a: Arrays, columns: Any, b: Any, lam: float, start: tuple[Any, Any] | Interior | None, tol: float, nonnegative: bool
) -> Interior:
    """Solve the working-set problems to relative gap `tol` (on the working set), or as far as rounding lets them go.

    columns: (q, m, d); b: (q, d); start: a rough x (q, m) and theta (q, d), the end of an
    earlier call to go on from, or None. Questions leave as they
    are done.
    """
    m, d = columns.shape[1], columns.shape[2]
    if m < d and lam < GRAM_FORM_LAM:
        # Outside the span of the working set theta is b / lam and the system is lam I: that part is left out.
        basis, lengths, turn = a.xp.linalg.svd(columns.swapaxes(1, 2), full_matrices=False)
        basis = basis * a.cast(lengths > 1e-12 * a.xp.amax(lengths, axis=1)[:, None], "float64")[:, None, :]
        reduced = turn.swapaxes(1, 2) * lengths[:, None, :]
        inside = _backward(basis, b)
        if isinstance(start, Interior):
            start = replace(start, theta=_backward(basis, start.theta))
        elif start is not None:
            start = (start[0], _backward(basis, start[1]))
        part = _follow(a, reduced, inside, lam, start, tol, nonnegative)
        outside = b - _forward(basis, inside)
        return replace(part, theta=_forward(basis, part.theta) + outside / lam)
    return _follow(a, columns, b, lam, start, tol, nonnegative)


def _start(
    a: Arrays, columns: Any, b: Any, lam: float, start: tuple[Any, Any] | Interior | None, signs: Any
) -> tuple[Any, Any, Any, Any]:
    """A strictly interior point: theta, A'theta, multipliers and slacks."""
    xp = a.xp
    if isinstance(start, Interior):
        return start.theta, _forward(columns, start.theta), start.multipliers, start.slacks
    if start is None:
        ridge = a.copy(columns.swapaxes(1, 2) @ columns)
        spots = range(ridge.shape[-1])
        ridge[:, spots, spots] += lam + COLD_RIDGE * xp.amax(ridge[:, spots, spots], axis=1)[:, None] + TINY
        x = _forward(columns, a.solve(a.factor(ridge)[0], b))
        theta, values = xp.zeros_like(b), xp.zeros_like(x)
        lift = 0.1 * xp.clip(xp.amax(xp.abs(x), axis=1), TINY, None)[:, None, None]
    else:
        x, theta = start
        values = _forward(columns, theta)
        inside = START_INSIDE / xp.clip(xp.amax(xp.abs(values), axis=1), START_INSIDE, None)[:, None]
        theta, values = theta * inside, values * inside
        total = xp.clip(xp.abs(x).sum(axis=1), TINY, None)[:, None, None]
        lift = START_COMPLEMENTARITY * total / columns.shape[1] / (1.0 - signs * values[:, None, :])
    slacks = 1.0 - signs * values[:, None, :]
    return theta, values, xp.clip(signs * x[:, None, :], 0.0, None) + lift, slacks


def _follow(
    a: Arrays, columns: Any, b: Any, lam: float, start: tuple[Any, Any] | Interior | None, tol: float, nonnegative: bool
) -> Interior:
    """Predictor-corrector steps."""
    xp = a.xp
    signs = a.array([[1.0]] if nonnegative else [[1.0], [-1.0]])
    system = _System(a, columns, lam)
    theta, values, multipliers, slacks = _start(a, columns, b, lam, start, signs)
    q = b.shape[0]
    steps, worse = np.zeros(q, dtype=np.int64), np.zeros(q, dtype=np.int64)
    usable = np.ones(q, dtype=bool)
    alive = np.arange(q)
    best: list[Any] = []
    for step in range(MAX_STEPS + 1):
        x = (signs * multipliers).sum(axis=1)
        fit = _backward(system.columns, x)
        gaps, _ = relative_gap(a, b, lam, x, values, fit, theta)
        now = [x, theta, multipliers, slacks, gaps]
        if not best:
            best = [a.copy(part) for part in now]
        else:
            where = a.array(alive, "int64")
            wins = gaps < best[4][where]
            for old, new in zip(best, now, strict=True):
                old[where[wins]] = new[wins]
            # Near the limits of rounding iterates only get worse, and a few such steps in a row are the end. Far from
            # the optimum the gap says little: it is nearly 1 until x fits b.
            near = a.host(best[4])[alive] < 1e-2
            worse[alive] = np.where(near & ~a.host(wins), worse[alive] + 1, 0)
        going = (a.host(best[4])[alive] > tol) & (worse[alive] < PATIENCE) & usable[alive]
        if not going.any() or step == MAX_STEPS:
            break
        if going.sum() <= 0.75 * len(alive):
            on = a.array(np.flatnonzero(going), "int64")
            alive, going = alive[going], going[going]
            system.some(on)
            x, fit, b, theta, values, multipliers, slacks = (
                part[on] for part in (x, fit, b, theta, values, multipliers, slacks)
            )
        steps[alive[going]] += 1
        good = system.set_weights((multipliers / slacks).sum(axis=1))
        usable[alive] = a.host(good)
        residual = b - lam * theta - fit
        complement = multipliers * slacks
        average = complement.mean(axis=(1, 2))
        _, _, dmultipliers, dslacks = _direction(system, signs, residual, multipliers, slacks, -complement)
        primal = xp.clip(_longest(a, multipliers, dmultipliers), None, 1.0)[:, None, None]
        dual = xp.clip(_longest(a, slacks, dslacks), None, 1.0)[:, None, None]
        ahead = ((multipliers + primal * dmultipliers) * (slacks + dual * dslacks)).mean(axis=(1, 2))
        centring = xp.clip(ahead / average, 0.0, 1.0) ** 3
        target = (centring * average)[:, None, None] - complement - dmultipliers * dslacks
        dtheta, dvalues, dmultipliers, dslacks = _direction(system, signs, residual, multipliers, slacks, target)
        # Questions that are done wait, unmoved, until enough of them are to leave the batch.
        moving = a.array(going & usable[alive])
        primal = moving * xp.clip(BOUNDARY * _longest(a, multipliers, dmultipliers), None, 1.0)
        dual = moving * xp.clip(BOUNDARY * _longest(a, slacks, dslacks), None, 1.0)
        if lam >= SAME_STEP_LAM:
            primal = dual = xp.minimum(primal, dual)
        multipliers = multipliers + primal[:, None, None] * dmultipliers
        slacks = slacks + dual[:, None, None] * dslacks
        theta = theta + dual[:, None] * dtheta
        values = values + dual[:, None] * dvalues
    return Interior(steps, *best)


def _direction(
    system: _System, signs: Any, residual: Any, multipliers: Any, slacks: Any, target: Any
) -> tuple[Any, Any, Any, Any]:
    """The Newton step towards multipliers * slacks = current + target: of theta, A'theta, multipliers and slacks."""
    shift = (signs * (target / slacks)).sum(axis=1)
    dtheta, dvalues = system.solve(residual - _backward(system.columns, shift))
    up = signs * dvalues[:, None, :]
    return dtheta, dvalues, (target + multipliers * up) / slacks, -up
