"""Which method a problem gets, working sets, and the public entry points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import numpy as np

from pfungst.core.errors import UsageError
from pfungst.core.threads import threads
from pfungst.lasso.certificate import constraints
from pfungst.lasso.first_order import first_order
from pfungst.lasso.problem import Dictionary, Exclude, Questions, questions
from pfungst.lasso.settings import Answers, SolverSettings
from pfungst.lasso.solution import Solution
from pfungst.lasso.splitting import STEP, step_size
from pfungst.lasso.working_set import step_of, working_set

Method = Literal["auto", "interior", "splitting"]
How = Callable[[Dictionary, Questions, SolverSettings], Answers]

INTERIOR_DIMENSION = 1500
"""Up to this dimension the systems of the interior point method cost less than more iterations over all columns."""
QUESTIONS_AT_ONCE = 128
"""Questions of one batch on a CPU."""
BYTES_A_COLUMN = 64
"""Memory that a question takes for every column of the dictionary: A'theta in float64, its copies, the splitting."""


def solve(
    A: Any,
    B: Any,
    lam: float = 1e-6,
    tol: float = 1e-6,
    *,
    exclude: Exclude = None,
    nonnegative: bool = False,
    device: str | None = None,
    method: Method = "auto",
    keep: int | None = None,
    workers: int | None = None,
) -> Solution:
    """Solve min_x 1/2 ||Ax - b||^2 + lam ||x||_1 for every column b of B, each to a certified duality gap.

    A: (d, n) the dictionary, or a `Dictionary` prepared from it; B: (d, q) or (d,) the questions. NumPy arrays are
    solved with NumPy and scipy; torch tensors, or any arrays where `device` is given, with torch on that device.
    Columns and questions are used as they are (rescaled inside, which changes nothing in the result); the papers'
    ranking has both at unit norm: see `unit_columns`.

    lam: > 0. The papers use 1e-6, where the problem is basis pursuit for all practical purposes.
    tol: relative gap (P - D) / P to reach, P and D in units of lam. 1e-3 is enough for a good set of the best 21
        columns, 1e-6 gives the set and nearly always the order. What was reached is in `gaps`; a question that missed
        the tolerance has status `not converged`.
    exclude: for every question the columns it must not use (the question itself): an index, a list of indices or
        None each, or a boolean array (n, q).
    nonnegative: only coefficients >= 0.
    method: `interior` (working sets and an interior point method: the gap reaches 1e-10 and below), `splitting` (first
        order over all columns: for large d, where a gap of 1e-2 to 1e-4 is wanted), or `auto` by size and tol.
    keep: only return this many largest (most positive) coefficients a question. `splitting` gives every column a
        coefficient, if a tiny one; at n = 186,027 that is more than anybody wants to store.
    workers: threads on a CPU, all cores if None.
    """
    dictionary = A if isinstance(A, Dictionary) else Dictionary(A, device=device)
    asked = questions(dictionary, B, exclude)
    _check_settings(lam, tol, method, keep)
    scaled = lam / (dictionary.scale * asked.scale)
    use_splitting = method == "splitting" or (
        method == "auto" and min(dictionary.d, dictionary.n) > INTERIOR_DIMENSION and tol >= 1e-4 and not nonnegative
    )
    how = first_order if use_splitting else working_set
    step = STEP if use_splitting else step_of(scaled, dictionary.n, dictionary.d)
    with threads(workers if dictionary.arrays.is_numpy else 1) as pool:
        beta = 1.0
        if asked.count:
            dictionary.prepare(pool)
            beta = step_size(dictionary, asked, scaled, step)
            dictionary.whitened(scaled / beta, pool)
        parts = _in_batches(dictionary, asked, SolverSettings(scaled, tol, nonnegative, keep, beta, pool), how)
    return _assemble(dictionary, asked, parts, lam, tol, keep)


def solve_stream(
    A: Any, batches: Iterable[Any], lam: float = 1e-6, tol: float = 1e-6, **options: Any
) -> Iterator[Solution]:
    """Solve batch after batch over one dictionary, in bounded memory: one `Solution` a batch, as they are asked for.

    batches: arrays (d, q), or pairs of such an array and its `exclude`. Options as for `solve`. On a GPU a batch of
    2,560 questions keeps the chip busy; with `keep` what has to be held is k numbers a question.
    """
    device = options.pop("device", None)
    dictionary = A if isinstance(A, Dictionary) else Dictionary(A, device=device)
    for batch in batches:
        B, exclude = batch if isinstance(batch, tuple) else (batch, None)
        yield solve(dictionary, B, lam, tol, exclude=exclude, **options)


def _check_settings(lam: float, tol: float, method: str, keep: int | None) -> None:
    if not (np.isfinite(lam) and lam > 0):
        raise UsageError(
            f"lam is {lam}, but a positive number is needed: at 0 the problem has no certificate. The papers use 1e-6."
        )
    if not (np.isfinite(tol) and tol > 0):
        raise UsageError(f"tol is {tol}, but a positive relative gap is needed, for example 1e-6.")
    if method not in ("auto", "interior", "splitting"):
        raise UsageError(f"There is no method {method!r}: use 'auto', 'interior' or 'splitting'.")
    if keep is not None and keep < 1:
        raise UsageError(f"keep is {keep}, but at least one coefficient per question must be kept.")


def _in_batches(dictionary: Dictionary, asked: Questions, settings: SolverSettings, how: How) -> list[Answers]:
    """Batches large enough for efficient matrix products and small enough for the memory."""
    a = dictionary.arrays
    most = (4096 if dictionary.d <= INTERIOR_DIMENSION else 2560) if a.is_cuda else QUESTIONS_AT_ONCE
    size = max(1, min(most, int(0.5 * a.free_bytes() / (BYTES_A_COLUMN * dictionary.n))))
    batches = (np.arange(i, min(i + size, asked.count)) for i in range(0, asked.count, size))
    return [_solve_batch(dictionary, asked.some(batch, a), settings, how) for batch in batches]


def _solve_batch(dictionary: Dictionary, asked: Questions, settings: SolverSettings, how: How) -> Answers:
    """Questions for which lam is so large that zero is optimal, with theta = b / lam, are answered at once, the others
    by `how`."""
    a = dictionary.arrays
    largest = a.xp.amax(constraints(dictionary, asked, asked.b @ dictionary.rows.T, settings.nonnegative), axis=1)
    # Equality counts as zero, also where the caller's own max |A'b| was rounded differently.
    trivial = a.host(largest) <= settings.lam * (1 + 1e-13)
    if not trivial.any():
        return how(dictionary, asked, settings)
    b, lam, rest = a.host(asked.b), settings.lam, np.flatnonzero(~trivial)
    answers = Answers.zero(np.zeros(asked.count), (b * b).sum(axis=1) / (2 * lam), b / lam)
    if len(rest):
        answers.put(rest, how(dictionary, asked.some(rest, a), settings))
    return answers


def _assemble(
    dictionary: Dictionary,
    asked: Questions,
    parts: list[Answers],
    lam: float,
    tol: float,
    keep: int | None,
) -> Solution:
    """One result in the units of the caller."""
    unit = asked.scale / dictionary.scale
    columns = [column for part in parts for column in part.columns]
    values = [value for part in parts for value in part.values]
    starts = np.concatenate(([0], np.cumsum([len(column) for column in columns]))).astype(np.int64)
    theta = np.concatenate([part.theta for part in parts] or [np.zeros((0, dictionary.d))])
    a = dictionary.arrays
    return Solution(
        starts=starts,
        indices=np.concatenate([*columns, np.zeros(0, dtype=np.int64)]),
        values=np.concatenate([*values, np.zeros(0)]) * unit,
        gaps=np.concatenate([*(part.gaps for part in parts), np.zeros(0)]),
        duals=theta.T / dictionary.scale,
        objectives=np.concatenate([*(part.objectives for part in parts), np.zeros(0)]) * unit,
        iterations=np.concatenate([*(part.iterations for part in parts), np.zeros(0, dtype=np.int64)]),
        lam=lam,
        tol=tol,
        truncated=keep,
        excluded=(a.host(asked.excluded[0]), a.host(asked.excluded[1])),
        dictionary=dictionary,
    )
