"""Douglas-Rachford splitting of the dual (ADMM) over all columns, many questions at once, with averaged iterates.

Every iteration is two matrix products with the whole dictionary for the whole batch. In whitened coordinates
(AA' + ridge I = LL', rows of L^-1 A, theta^ = L'theta) and with x in units of the step `beta`, one array t (q, n) is
the state:

    theta^ = b^ / beta - (t - 2 clip(t)) rows          v = theta^ rows'
    t     += alpha (v - clip(t))                       x = beta (t - clip(t)),    clip to [-1, 1]

The iterates turn around the solution; their average does not. The average weighted by the square of the iteration has,
on sentence embeddings and on random data alike, a gap that falls with 1/k^2 instead of 1/k: 400 iterations do what the
last iterate needs well over a thousand for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pfungst.core.threads import Workers
from pfungst.lasso.problem import Dictionary, Questions
from pfungst.lasso.settings import SolverSettings

RELAXATION = 1.9
STEP = 1.2
"""beta in units of the typical coefficient ||x||_1 / d of the optimum; one to two is best from n = d to n = 20 d."""
SHORT_STEP = 0.5
"""The same where a tiny lam uses a few of very many columns: which ones shows in half as many iterations."""
SHRINK = 0.2
"""||x||_1 of the optimum is about (d / n)^SHRINK times that of the least-norm solution, on random data and on sentence
embeddings alike (1 at n = d, 0.8 at 2 d, 0.5 at 20 to 40 d)."""
SAMPLE = 64
"""Questions from which the step is chosen."""
RIDGE = 1e-9
STRIDE = 5
"""Iterations between two samples of the average; odd, because over-relaxed iterates alternate."""
POWER = 2
"""Sample k weighs k^POWER in the average."""
BLOCK = 512
"""Columns of a block: few enough that the block and its part of t stay in the cache."""
SHARES = 16
"""Parts of the columns that threads sweep on a CPU, whatever their number: the sum is the same for any."""


def step_size(dictionary: Dictionary, asked: Questions, lam: float, step: float = STEP) -> float:
    """beta: one number for all questions, since the whitening depends on it."""
    a = dictionary.arrays
    ridge = lam + 1e-9 * float(a.xp.diagonal(dictionary.gram).sum())
    inverse = a.xp.linalg.inv(dictionary.gram + ridge * a.eye(dictionary.d))
    sample = asked.some(np.arange(min(asked.count, SAMPLE)), a)
    dual = sample.b @ inverse
    question, column = (a.host(part) for part in sample.excluded)
    for i in np.unique(question):
        left_out = dictionary.rows[a.array(column[question == i], "int64")]
        # The least-norm solution over the other columns, by the formula of Woodbury.
        spread = left_out @ inverse
        small = a.eye(len(left_out)) - spread @ left_out.T
        dual[i] += a.xp.linalg.solve(small + RIDGE * a.eye(len(left_out)), left_out @ dual[i]) @ spread
    x = a.xp.abs(dual @ dictionary.rows.T)
    x[sample.excluded] = 0.0
    n, d = dictionary.n, dictionary.d
    total = float(x.sum(axis=1).mean()) * min(1.0, d / n) ** SHRINK
    beta = max(step * total / min(d, n), 1e-12)
    # One significant digit, so that calls over one dictionary share its whitening.
    return float(f"{beta:.0e}")


class Splitting:
    """The state of a batch, and its averages."""

    def __init__(
        self, dictionary: Dictionary, asked: Questions, settings: SolverSettings, half: bool | None = None
    ) -> None:
        a = dictionary.arrays
        self.dictionary: Dictionary = dictionary
        self.beta: float = settings.beta
        self.workers: Workers = settings.workers
        self.white = dictionary.whitened(settings.lam / settings.beta)
        self.target: Any = a.cast(asked.b @ self.white.inverse.T / self.beta, "float32")
        q, n, d = asked.count, dictionary.n, dictionary.d
        self.mean_theta: Any = a.zeros((q, d), "float32")
        """Average of theta^."""
        self.feedback: Any = a.zeros((q, d), "float32")
        """(t - 2 clip(t)) rows."""
        self.low: float | None = None if settings.nonnegative else -1.0
        self.iterations: int = 0
        self.samples: int = 0
        # Half precision pays on a GPU only. There t has one question a row; a CPU multiplies faster with one a column.
        self.half: Any = None
        if a.is_cuda if half is None else half:
            from pfungst.lasso.half import Half

            self.half = Half(self.white.rows, RELAXATION)
        shape = (n, q) if self.half is None else (q, self.half.width)
        self.t: Any = a.zeros(shape, "float32")
        self.mean_x: Any = a.zeros(shape, "float32")
        """Average of x / beta."""
        self._ask(asked)

    def _ask(self, asked: Questions) -> None:
        self.asked = asked
        question, column = (self.dictionary.arrays.host(part) for part in asked.excluded)
        order = np.argsort(column, kind="stable")
        self.by_column = question[order], column[order]

    def run(self, iterations: int) -> None:
        """Iterate."""
        for _ in range(iterations):
            self.iterations += 1
            sampled = self.iterations % STRIDE == 0
            weight = 0.0
            if sampled:
                self.samples += 1
                weight = (POWER + 1) / (self.samples + POWER)
            theta = self.target - self.feedback
            if self.half is not None:
                self.half.sweep(self, theta, weight)
            else:
                self._sweep(theta, weight)
            if sampled:
                self.mean_theta += weight * (theta - self.mean_theta)

    def _sweep(self, theta: Any, weight: float) -> None:
        """One pass over the columns, a block at a time: each block of the dictionary is read once for both products."""
        starts = range(0, self.dictionary.n, BLOCK)
        turned = self.dictionary.arrays.contiguous(theta.T)
        shares = self.workers.shares(starts, SHARES if self.dictionary.arrays.is_numpy else 1)
        parts = self.workers.map(lambda share: self._sweep_blocks(share, turned, weight), shares)
        self.feedback = sum(parts[1:], start=parts[0])

    def _sweep_blocks(self, starts: Sequence[int], theta: Any, weight: float) -> Any:
        """Update t in some blocks of columns and return their part of the feedback."""
        xp = self.dictionary.arrays.xp
        feedback = xp.zeros_like(self.feedback)
        for start in starts:
            block = self.white.rows[start : start + BLOCK]
            t = self.t[start : start + BLOCK]
            v = block @ theta
            pairs = self._excluded(start)
            free = None if pairs is None else t[pairs] + RELAXATION * (v[pairs] - t[pairs])
            v -= xp.clip(t, self.low, 1.0)
            v *= RELAXATION
            t += v
            clipped = xp.clip(t, self.low, 1.0)
            if free is not None:
                # An excluded column has no constraint: its clip is the identity, its coefficient zero.
                t[pairs] = free
                clipped[pairs] = free
            excess = xp.subtract(t, clipped, out=v)
            if weight:
                mean = self.mean_x[start : start + BLOCK]
                mean += weight * (excess - mean)
            excess -= clipped
            feedback += excess.T @ block
        return feedback

    def _excluded(self, start: int) -> tuple[Any, Any] | None:
        question, column = self.by_column
        first, last = np.searchsorted(column, (start, start + BLOCK))
        return (column[first:last] - start, question[first:last]) if last > first else None

    def average(self) -> tuple[Any, Any]:
        """x (q, n) float32 and theta (q, d) float64, in the coordinates of the problem."""
        a = self.dictionary.arrays
        theta = a.cast(self.mean_theta, "float64") @ self.white.inverse
        return self.beta * (self.mean_x.T if self.half is None else self.mean_x[:, : self.dictionary.n]), theta

    def keep(self, which: np.ndarray[Any, Any], asked: Questions) -> None:
        """Go on with some of the questions only."""
        a = self.dictionary.arrays
        where = a.array(which, "int64")
        for name in ("target", "mean_theta", "feedback"):
            setattr(self, name, getattr(self, name)[where])
        for name in ("t", "mean_x"):
            values = getattr(self, name)
            setattr(self, name, values[:, where] if self.half is None else values[where])
        if self.half is not None:
            self.half.keep(where)
        self._ask(asked)
