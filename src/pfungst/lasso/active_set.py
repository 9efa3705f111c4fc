"""From a rough answer to the exact one on a CPU: columns enter and leave the support one at a time.

With the support S and the signs s of its coefficients known, the optimum follows from one system,

    A_S'A_S x_S = A_S'b - lam s.

Where a sign of x_S contradicts s, x moves towards it until the first coefficient is zero, and that column leaves; where
none does, the column that violates |a_j'theta| <= 1 most enters, theta = (b - Ax) / lam. Every move lowers the
objective. After the splitting S is nearly right (a few columns of 512), and one Cholesky factorisation serves all
moves: what enters and leaves borders it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pfungst.lasso.arrays import Arrays
from pfungst.lasso.certificate import relative_gap
from pfungst.lasso.lapack import cholesky, cholesky_solve

Array = np.ndarray[Any, Any]

TINY_LAM = 1e-3
"""Below this (at unit norms) the optimum uses about as many columns as the dictionary has dimensions."""
NEARLY = -0.05
"""Score from which on a column is tried in the support, where lam is not tiny."""
MOST_MOVES = 120
MOST_BORDERS = 48
"""Columns that enter or leave before the system is factorised afresh."""
VIOLATION = 1e-9
"""A constraint that is exceeded by less is met, up to rounding."""
REFINEMENTS = 6
EXPECTED = 12
"""Columns that are likely to leave, whose part of the system is solved for together."""


class _System:
    """A_S'A_S for a changing S: one Cholesky factorisation, bordered by what entered and left since."""

    def __init__(self, columns: Array, gram: Array | None, support: Array) -> None:
        self.columns, self.gram = columns, gram
        self.start(support)

    def start(self, support: Array) -> None:
        """Factorise for `support`; raises LinAlgError where its columns depend on each other."""
        self.base = support
        if self.gram is not None:
            self.factor = self.gram.take(support, 0).take(support, 1)
        else:
            part = self.columns[support]
            self.factor = part @ part.T
        if not cholesky(self.factor):
            raise np.linalg.LinAlgError
        self._latest: list[tuple[Array, Array]] = []
        self._leaving: dict[int, tuple[Array, Array]] = {}
        self.place = np.full(len(self.columns), -1, dtype=np.int64)
        self.place[support] = np.arange(len(support))
        self.borders: dict[int, tuple[Array, Array]] = {}
        """Column -> its row of the system (for a column of the base: the demand that it be zero), and what the base
        answers to that row."""
        self._schur: tuple[Array, Array, Array, Array, Array] | None = None

    def products(self, column: int) -> Array:
        """a_i'a_j for all columns i: (m,)."""
        return np.asarray(self.gram[column] if self.gram is not None else self.columns @ self.columns[column])

    def change(self, column: int) -> None:
        """A column enters S that is not in it, or leaves S."""
        self._schur = None
        if self.borders.pop(column, None) is not None:
            return
        if self.place[column] < 0:
            row = self.products(column)[self.base]
            self.borders[column] = row, self._answer(row)
        else:
            self.expect(np.array([column]))
            self.borders[column] = self._leaving[column]

    def expect(self, columns: Array) -> None:
        """Columns that may leave soon: to solve for several at once costs little more than for one."""
        new = [column for column in columns.tolist() if self.place[column] >= 0 and column not in self._leaving]
        if new:
            rows = np.zeros((len(new), len(self.base)))
            rows[np.arange(len(new)), self.place[new]] = 1.0
            self._leaving.update(zip(new, zip(rows, cholesky_solve(self.factor, rows), strict=True), strict=True))

    def _answer(self, right: Array) -> Array:
        """The base alone solved for `right`; most moves ask for one of the last two again."""
        for known, answer in self._latest:
            if np.array_equal(known, right):
                return answer
        answer = cholesky_solve(self.factor, right)
        self._latest = [(right, answer), *self._latest[:1]]
        return answer

    def solve(self, right: Array) -> Array:
        """x (m,), zero outside S, for `right` (m,), of which only the entries of S count."""
        inner = self._answer(right[self.base])
        x = np.zeros(len(self.columns))
        if not self.borders:
            x[self.base] = inner
            return x
        outer, entered, rows, answers, small = self._bordering()
        among = np.linalg.solve(small, np.where(entered, right[outer], 0.0) - rows @ inner)
        x[self.base] = inner - among @ answers
        x[outer] = np.where(entered, among, 0.0)
        return x

    def _bordering(self) -> tuple[Array, Array, Array, Array, Array]:
        """Columns of the borders, which of them entered, rows, answers, and their Schur complement."""
        if self._schur is None:
            outer = np.array(list(self.borders))
            entered = self.place[outer] < 0
            rows, answers = (np.array(parts) for parts in zip(*self.borders.values(), strict=True))
            small = -(rows @ answers.T)
            new = self.columns[outer[entered]]
            small[np.ix_(entered, entered)] += new @ new.T
            self._schur = outer, entered, rows, answers, small
        return self._schur


def active_set(
    columns: Array,
    gram: Array | None,
    b: Array,
    lam: float,
    rank: int,
    start: tuple[Array, Array],
    nonnegative: bool,
) -> tuple[Array, Array, float, int]:
    """x (m,), theta (d,), the gap on these columns (infinite where the method failed), and the number of moves.

    columns: (m, d), zero where they must not be used; gram: their products (m, m) where known; start: a rough x (m,)
    and theta (d,).
    """
    support = _support(columns, lam, rank, start, nonnegative)
    moves = 0
    try:
        system = _System(columns, gram, support)
        x, sign, moves = _walk(system, b, lam, start[0], nonnegative)
        x, theta = _refine(system, b, lam, x, sign)
    except np.linalg.LinAlgError:
        return start[0], start[1], np.inf, moves
    values = columns @ theta
    scale = max(1.0, float((values if nonnegative else np.abs(values)).max()))
    fit = x @ columns
    gap, _ = relative_gap(Arrays(np), b[None], lam, x[None], values[None] / scale, fit[None], theta[None] / scale)
    wrong = nonnegative and bool((x < 0).any())
    return x, theta, np.inf if wrong or not np.isfinite(gap[0]) else float(gap[0]), moves


def _support(columns: Array, lam: float, rank: int, start: tuple[Array, Array], nonnegative: bool) -> Array:
    """The columns to begin with: those whose coefficient, in units of the typical one, outweighs their slack."""
    x, values = start[0], columns @ start[1]
    bound = values if nonnegative else np.abs(values)
    size = min(rank, len(columns))
    unit = max(float(np.abs(x).sum()) / size, 1e-300)
    score = np.abs(x) / unit - (1.0 - np.clip(bound, None, 1.0))
    if nonnegative:
        score[x < 0] = -2.0
    usable = columns.any(axis=1)
    best = np.argsort(np.where(usable, -score, np.inf), kind="stable")[: min(size, int(usable.sum()))]
    # With a tiny lam as many columns are used as there are dimensions.
    return np.sort(best if lam < TINY_LAM and not nonnegative else best[score[best] > NEARLY])


def _walk(system: _System, b: Array, lam: float, x: Array, nonnegative: bool) -> tuple[Array, Array, int]:
    """x, its signs, and the number of moves to where no column needs to enter or leave."""
    target = system.columns @ b
    inside = system.place >= 0
    x = np.where(inside, np.clip(x, 0.0, None) if nonnegative else x, 0.0)
    sign = _signs(x, inside)
    if lam < TINY_LAM and not nonnegative and inside.sum() < system.columns.shape[1]:
        # Where all columns fit into S, what fits b best is nearly the answer, if no coefficient is too small.
        fitting = system.solve(target)
        other = _signs(fitting, inside)
        if _conflicts(system, target - lam * other, other) < _conflicts(system, target - lam * sign, sign):
            x, sign = fitting, other
    for moves in range(MOST_MOVES):
        if len(system.borders) > MOST_BORDERS:
            system.start(np.flatnonzero(inside))
        direction = system.solve(target - lam * sign) - x
        longest, entering = 1.0, -1
        crossing = np.flatnonzero((x + direction) * sign < 0)
        if not len(crossing):
            x = x + direction
            values = system.columns @ ((b - x @ system.columns) / lam)
            over = np.where(inside, 0.0, values if nonnegative else np.abs(values)) - 1.0
            entering = int(over.argmax())
            if over[entering] <= VIOLATION:
                return x, np.where(inside, sign, 0.0), moves
            sign[entering] = 1.0 if values[entering] > 0 else -1.0
            products = system.products(entering)
            direction = -sign[entering] * system.solve(products)
            direction[entering] = sign[entering]
            # A column that depends on those in S has no curvature: it goes until another coefficient is zero.
            curvature = float(sign[entering] * direction @ products)
            longest = lam * float(over[entering]) / max(curvature, 1e-14)
            crossing = np.flatnonzero((x + longest * direction) * sign < 0)
        if len(crossing):
            steps = np.clip(x[crossing] * sign[crossing], 0.0, None) / np.abs(direction[crossing])
            leaving = int(crossing[steps.argmin()])
            system.expect(crossing[np.argsort(steps)[:EXPECTED]])
            x = x + float(steps.min()) * direction
            x[leaving], inside[leaving] = 0.0, False
            system.change(leaving)
        else:
            x = x + longest * direction
        if entering >= 0:
            inside[entering] = True
            system.change(entering)
    raise np.linalg.LinAlgError


def _signs(x: Array, inside: Array) -> Array:
    return np.where(inside, np.where(x < 0, -1.0, 1.0), 0.0)


def _conflicts(system: _System, right: Array, sign: Array) -> int:
    return int((system.solve(right) * sign < 0).sum())


def _refine(system: _System, b: Array, lam: float, x: Array, sign: Array) -> tuple[Array, Array]:
    """x and theta with the rounding of the normal equations, which square the condition number, taken out."""
    support = np.flatnonzero(sign)
    part, signs = system.columns[support], sign[support]
    values, right = x[support], np.zeros(len(sign))

    def solved(off: Array) -> Array:
        right[support] = off
        return system.solve(right)[support]

    for _ in range(REFINEMENTS):
        off = part @ (b - values @ part) - lam * signs
        if np.abs(off).max() <= 1e-15:
            break
        values = values + solved(off)
    theta = (b - values @ part) / lam
    for _ in range(REFINEMENTS):
        off = signs - part @ theta
        if np.abs(off).max() <= 1e-12:
            break
        theta = theta + solved(off) @ part
    x = np.zeros(len(sign))
    x[support] = values
    return x, theta
