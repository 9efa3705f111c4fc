"""Working sets: a small problem solved to the end, checked against all columns, enlarged where the check objects."""

from __future__ import annotations

from typing import Any

import numpy as np

from pfungst.lasso.active_set import TINY_LAM, active_set
from pfungst.lasso.arrays import Arrays
from pfungst.lasso.certificate import check, constraints
from pfungst.lasso.interior import Interior, interior
from pfungst.lasso.polish import polish
from pfungst.lasso.problem import Dictionary, Questions
from pfungst.lasso.settings import Answers, SolverSettings, certified
from pfungst.lasso.splitting import SHORT_STEP, STEP, Splitting

MAX_ROUNDS = 30
RETRIES = 2
FEW = 4
"""Up to this many questions the splitting soon turns from all columns to the nearest ones."""
FEW_SWEEPS = 25
POOL = 12
"""How many of those, in units of the dimension."""
NEAR = 0.87
"""Columns whose constraint is this near to binding after the splitting are the first working set ..."""
LARGEST = 2.2
"""... of at most this many times the dimension."""
EARLY = 1e-5
"""Gap on the working set at which the support is first tried, where lam is large enough to show it so soon."""
LATE = 1e-8
"""The same where lam is tiny and the solution a vertex with as many columns as dimensions."""
LAST = 1e-11
MIDDLING = 20
"""Up to this many columns, in units of the dimension, a CPU moves the support from a longer splitting to the optimum;
with more, too many columns are still wrong by then, and the interior point method on a working set is faster."""
DROP = 1e-11
"""Coefficients below this share of ||x||_1 are rounding, not support."""


def whole(dictionary: Dictionary) -> bool:
    """Whether the dictionary is so small that all of it is the working set."""
    return dictionary.n <= max(3 * dictionary.d, 300)


def sweeps_of(lam: float, n: int, d: int, on_gpu: bool) -> int:
    """Iterations of the splitting before columns are chosen: the larger lam, the sooner they show.

    A GPU iterates so fast that missing columns, which cost a second working set, are dearer.
    """
    if lam < 5e-3:
        if on_gpu:
            return 300
        return 200 if d < n <= MIDDLING * d else 100
    return 50 if lam < 5e-2 else 20


def step_of(lam: float, n: int, d: int) -> float:
    """Step of the splitting that chooses columns."""
    return SHORT_STEP if lam < TINY_LAM and n > MIDDLING * d else STEP


def working_set(dictionary: Dictionary, asked: Questions, settings: SolverSettings) -> Answers:
    """Solve a batch of questions, each to the tolerance over all columns or as far as rounding allows."""
    a = dictionary.arrays
    sweeps = sweeps_of(settings.lam, dictionary.n, dictionary.d, a.is_cuda)
    focus = asked.count <= FEW and dictionary.n > 3 * POOL * dictionary.d
    state = Splitting(dictionary, asked, settings)
    state.run(min(sweeps, FEW_SWEEPS) if focus else sweeps)
    iterations = state.iterations
    x, theta = state.average()
    del state
    if whole(dictionary):
        where = a.largest(x, dictionary.n)
        return _rounds(dictionary, asked, settings, where, a.cast(x, "float64"), theta, iterations)
    bound = constraints(dictionary, asked, theta @ dictionary.rows.T, settings.nonnegative)
    if focus and sweeps > FEW_SWEEPS:
        bound, x, theta = _focus(dictionary, asked, settings, bound, 2 * sweeps)
        iterations += 2 * sweeps
    near = np.percentile(a.host((bound > NEAR).sum(axis=1)), 90)
    # With a tiny lam as many columns are used as there are dimensions.
    least = 1.8 * dictionary.d if settings.lam < 5e-3 else 64
    size = int(min(max(near, least), LARGEST * dictionary.d, dictionary.n))
    where = a.largest(bound, size)
    del bound
    return _rounds(dictionary, asked, settings, where, a.cast(a.take(x, where), "float64"), theta, iterations)


def _focus(
    dictionary: Dictionary, asked: Questions, settings: SolverSettings, bound: Any, sweeps: int
) -> tuple[Any, Any, Any]:
    """The splitting again, for each question over the columns nearest to binding only: bound, x and theta.

    With few questions an iteration over all columns costs reading the dictionary from memory, whatever the number of
    questions; the nearest columns fit the cache.
    """
    a = dictionary.arrays
    x, theta = a.zeros((asked.count, dictionary.n), "float32"), a.zeros((asked.count, dictionary.d))
    pools = a.largest(bound, POOL * dictionary.d)
    nearest = a.zeros((asked.count, dictionary.n)) - 1.0
    for i in range(asked.count):
        pool = pools[i]
        part = dictionary.part(pool)
        alone = Questions(asked.b[i : i + 1], asked.scale, (asked.excluded[0][:0], asked.excluded[1][:0]), 1)
        state = Splitting(part, alone, settings)
        state.run(sweeps)
        found, dual = state.average()
        x[i, pool], theta[i] = found[0], dual[0]
        values = constraints(part, alone, dual @ part.rows.T, settings.nonnegative)
        # An excluded column can only be in the pool where nearly all columns are.
        nearest[i, pool] = a.xp.where(bound[i, pool] < 0, -1.0, values[0])
    return nearest, x, theta


def _rounds(
    dictionary: Dictionary, asked: Questions, settings: SolverSettings, where: Any, x: Any, theta: Any, iterations: int
) -> Answers:
    """Solve, check, enlarge, until every question is certified or nothing is left to add."""
    a = dictionary.arrays
    answers = Answers.none(asked.count, dictionary.d)
    answers.iterations[:] = iterations
    running = np.arange(asked.count)
    retries = RETRIES
    for _ in range(MAX_ROUNDS):
        x, theta, steps = _solve_all(dictionary, asked, settings, where, x, theta)
        answers.iterations[running] += steps
        verdict = check(dictionary, asked, settings.lam, where, x, theta, settings.nonnegative)
        reached = a.host(verdict.gaps)
        outside = verdict.correlation
        a.put(outside, where, a.zeros(where.shape))
        violators = a.host((outside > 1.0 + 1e-12).sum(axis=1))
        improved = np.flatnonzero(reached < answers.gaps[running])
        if len(improved):
            better = running[improved]
            spent = answers.iterations[better]
            answers.put(better, certified(dictionary, verdict, improved, where, x, settings.keep, spent))
        missed = reached > settings.tol
        stuck = missed & (violators == 0)
        retries -= bool(stuck.any())
        stay = np.flatnonzero(missed if retries >= 0 else missed & (violators > 0))
        if not len(stay):
            break
        some = a.array(stay, "int64")
        running, asked = running[stay], asked.some(stay, a)
        # Columns next to the violators are likely the violators of the next round.
        size = where.shape[1]
        grow = int(min(max(16, size // 4, violators.max()), max(16, size // 2), dictionary.n - size))
        where, x = where[some], x[some]
        if grow:
            where = a.xp.concatenate((where, a.largest(outside[some], grow)), axis=1)
            x = a.xp.concatenate((x, a.zeros((len(stay), grow))), axis=1)
        theta = theta[some]
        if stuck.any():
            # The working set was solved badly, not chosen badly: enlarge it all the same, and start afresh.
            x = theta = None
    return answers


def _solve_all(
    dictionary: Dictionary, asked: Questions, settings: SolverSettings, where: Any, x: Any, theta: Any
) -> tuple[Any, Any, Any]:
    """The working-set problems of all questions: x (q, m), theta (q, d) and interior point steps (q,)."""
    a = dictionary.arrays
    m, d = where.shape[1], dictionary.d
    # A CPU does one question at a time, in its cache; a GPU as many as its memory holds.
    group = 1 if a.is_numpy else max(1, int(0.1 * a.free_bytes()) // (8 * m * max(m, d)))
    allowed = _allowed(dictionary, asked, where)
    first = EARLY if settings.lam > 1e-4 else LATE
    stops = (first, LATE, LAST) if first > LATE else (LATE, LAST)
    # Only where lam is tiny does the support come near the rank of the dictionary.
    rank = dictionary.rank if settings.lam < 1e-3 else d
    products = dictionary.products if a.is_numpy and m == dictionary.n and whole(dictionary) else None

    def work(first: int) -> tuple[Any, Any, Any]:
        part = slice(first, first + group)
        columns = dictionary.rows[where[part]]
        if allowed is not None:
            # A zero column stays at zero, so nothing below needs to know what is excluded.
            columns[allowed[part] == 0.0] = 0.0
        start = None if x is None else (x[part], theta[part])
        if a.is_numpy and start is not None and dictionary.n <= MIDDLING * d:
            near, dual, gap, moves = active_set(
                columns[0], products, asked.b[first], settings.lam, rank, (x[first], theta[first]), settings.nonnegative
            )
            if gap <= settings.tol:
                return near[None], dual[None], np.array([moves])
        found, duals, _, steps = _finish(a, columns, asked.b[part], rank, settings, start, stops)
        found = a.xp.where(a.xp.abs(found) > DROP * a.xp.abs(found).sum(axis=1)[:, None], found, 0.0)
        if allowed is not None:
            found = found * allowed[part]
        return found, duals, steps

    parts = settings.workers.map(work, range(0, asked.count, group))
    return (
        a.xp.concatenate([part[0] for part in parts]),
        a.xp.concatenate([part[1] for part in parts]),
        np.concatenate([part[2] for part in parts]),
    )


def _finish(
    a: Arrays,
    columns: Any,
    b: Any,
    rank: int,
    settings: SolverSettings,
    start: tuple[Any, Any] | Interior | None,
    stops: tuple[float, ...],
) -> tuple[Any, Any, Any, Any]:
    """x, theta, gaps on the working set, and steps.

    Interior point steps to the first gap in `stops`, then the equations of the support that shows; the questions for
    which that was too early go on from where they are.
    """
    point = interior(a, columns, b, settings.lam, start, stops[0], settings.nonnegative)
    x, theta, gaps = polish(a, columns, b, settings.lam, rank, point, settings.nonnegative)
    steps = np.array(point.steps)
    early = np.flatnonzero(a.host(gaps) > LAST)
    if len(early) and len(stops) > 1:
        some = a.array(early, "int64")
        if len(early) < len(gaps):
            columns, b, point = columns[some], b[some], point.some(some, early)
        late = _finish(a, columns, b, rank, settings, point, stops[1:])
        wins = late[2] < gaps[some]
        x[some[wins]], theta[some[wins]], gaps[some[wins]] = late[0][wins], late[1][wins], late[2][wins]
        steps[early] += late[3]
    return x, theta, gaps, steps


def _allowed(dictionary: Dictionary, asked: Questions, where: Any) -> Any:
    """(q, m) ones, zeros where the column is excluded; None where nothing is."""
    a = dictionary.arrays
    question, column = asked.excluded
    if not len(question):
        return None
    mask = a.zeros((asked.count, dictionary.n), "float32") + 1.0
    mask[question, column] = 0.0
    return a.cast(a.take(mask, where), "float64")
