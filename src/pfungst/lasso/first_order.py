"""The splitting alone, run until the certificate says that it is enough."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pfungst.lasso.certificate import check
from pfungst.lasso.problem import Dictionary, Questions
from pfungst.lasso.settings import Answers, SolverSettings, certified
from pfungst.lasso.splitting import STRIDE, Splitting

FIRST_CHECK = 110
"""Iterations to a gap of 2e-2; other gaps follow from gap ~ 1 / iterations^2."""
MAX_ITERATIONS = 20_000
PATIENCE = 1.7
"""A question whose gap has not fallen by a tenth while the iterations grew by this factor is given up."""
CORRECTIONS = 2
"""Passes of the correction; a second one mends what leaving out the excluded columns breaks."""


def first_order(dictionary: Dictionary, asked: Questions, settings: SolverSettings) -> Answers:
    """Iterate over all columns; questions leave the batch as their certified gap reaches the tolerance.

    The averaged x does not quite fit b, and a residual costs 1/(2 lam) ||r||^2, so x is corrected by the least-norm
    solution before it is certified. A question whose gap stops falling leaves with the gap it has.
    """
    a = dictionary.arrays
    state = Splitting(dictionary, asked, settings)
    answers = Answers.none(asked.count, dictionary.d)
    running = np.arange(asked.count)
    target = min(FIRST_CHECK * math.sqrt(2e-2 / settings.tol), 10 * FIRST_CHECK)
    best, when = np.full(asked.count, np.inf), np.zeros(asked.count)
    while len(running):
        state.run(max(STRIDE, STRIDE * math.ceil((target - state.iterations) / STRIDE)))
        x, dual = fitted(dictionary, state, settings)
        verdict = check(dictionary, state.asked, settings.lam, None, x, dual, settings.nonnegative)
        reached = a.host(verdict.gaps)
        falling = running[reached < 0.9 * best[running]]
        best[running] = np.where(np.isin(running, falling), reached, best[running])
        when[falling] = state.iterations
        stalled = (state.iterations > PATIENCE * when[running]) | (state.iterations >= MAX_ITERATIONS)
        out = np.flatnonzero((reached <= settings.tol) | stalled)
        if len(out):
            spent = np.full(len(out), state.iterations)
            answers.put(running[out], certified(dictionary, verdict, out, None, x, settings.keep, spent))
            stay = np.setdiff1d(np.arange(len(running)), out)
            running = running[stay]
            if len(running):
                state.keep(stay, state.asked.some(stay, a))
        if len(running):
            ahead = math.sqrt(float(np.median(best[running])) / settings.tol)
            target = state.iterations * min(max(1.05 * ahead, 1.1), 1.6)
    return answers


def fitted(dictionary: Dictionary, state: Splitting, settings: SolverSettings) -> tuple[Any, Any]:
    """The averages with x (q, n) corrected to fit b, in float64."""
    a = dictionary.arrays
    x, theta = state.average()
    x = a.cast(x, "float64")
    question, column = state.asked.excluded
    ridge = settings.lam / settings.beta
    matrix = dictionary.gram + ridge * a.eye(dictionary.d)
    # The optimum has the residual lam theta, with theta as it will be once feasible; lam theta is tiny, near is enough.
    wanted = state.asked.b - settings.lam * theta
    for _ in range(CORRECTIONS):
        residual = wanted - x @ dictionary.rows
        x = x + a.xp.linalg.solve(matrix, residual.T).T @ dictionary.rows.T
        if settings.nonnegative:
            x = a.xp.clip(x, 0.0, None)
        if len(question):
            x[question, column] = 0.0
        elif not settings.nonnegative:
            break
    return x, theta
