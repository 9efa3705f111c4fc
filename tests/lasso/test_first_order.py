"""The splitting: certified gaps for large dimensions, in float32 and in half precision."""

from __future__ import annotations

import numpy as np
import pytest

from pfungst.core.threads import Workers, threads
from pfungst.lasso import Dictionary, solve, top_k
from pfungst.lasso.certificate import check
from pfungst.lasso.first_order import fitted
from pfungst.lasso.problem import questions
from pfungst.lasso.settings import SolverSettings
from pfungst.lasso.splitting import Splitting, step_size
from tests.lasso.oracle import relative_gap


@pytest.fixture(autouse=True)
def one_thread():
    """As in `solve`: what is called below it directly must not fight other processes for the cores."""
    with threads(1):
        yield


@pytest.mark.parametrize("tol", [2e-2, 2e-3])
def test_the_splitting_reaches_a_certified_gap(problem, tol):
    A, B = problem(60, 2400, 3)
    solution = solve(A, B, 1e-6, tol, method="splitting", exclude=[5, None, [7, 8]])
    assert solution.status == ("optimal",) * 3
    x = solution.coefficients.toarray()
    assert x[5, 0] == 0 and not x[[7, 8], 2].any()
    rest = np.setdiff1d(np.arange(2400), [7, 8])
    found = relative_gap(A[:, rest], B[:, 2], x[rest, 2], solution.duals[:, 2], 1e-6)
    assert found == pytest.approx(solution.gaps[2], rel=1e-3)


def test_a_smaller_gap_means_a_ranking_nearer_to_the_exact_one(problem):
    A, B = problem(60, 2400, 6, seed=3)
    exact = top_k(solve(A, B, 1e-6)).indices
    shared = []
    for tol in (1e-1, 1e-3):
        ranked = top_k(solve(A, B, 1e-6, tol, method="splitting")).indices
        shared.append(np.mean([len(set(a) & set(b)) for a, b in zip(exact, ranked, strict=True)]))
    assert shared[1] > shared[0]
    assert shared[1] >= 19.5


def test_keep_returns_only_the_largest_coefficients(problem):
    A, B = problem(40, 1500, 2)
    whole = solve(A, B, 1e-6, 1e-2, method="splitting")
    kept = solve(A, B, 1e-6, 1e-2, method="splitting", keep=30)
    assert np.diff(kept.starts).tolist() == [30, 30]
    np.testing.assert_array_equal(top_k(kept).indices, top_k(whole).indices)
    np.testing.assert_array_equal(kept.gaps, whole.gaps)


def test_a_gap_that_stops_falling_is_reported(problem):
    A, B = problem(8, 400, 2)
    solution = solve(A, B, 1e-6, 1e-9, method="splitting")
    assert "not converged" in solution.status
    assert (solution.gaps > 1e-9).any() and (solution.gaps < 1e-3).all()


def test_half_precision_gets_as_far_as_single_precision(problem):
    torch = pytest.importorskip("torch")
    A, B = problem(30, 700, 4, seed=1)
    dictionary = Dictionary(torch.tensor(A))
    asked = questions(dictionary, B, [[1], None, [3, 4], None])
    beta = step_size(dictionary, asked, 1e-6)
    wanted = SolverSettings(1e-6, 1e-3, False, None, beta, Workers())
    gaps = {}
    for half in (False, True):
        state = Splitting(dictionary, asked, wanted, half=half)
        state.run(600)
        x, theta = fitted(dictionary, state, wanted)
        assert not x[2, [3, 4]].any()
        gaps[half] = check(dictionary, asked, 1e-6, None, x, theta, False).gaps.max().item()
    assert gaps[False] < 1e-3
    assert gaps[True] < 1.5 * gaps[False]


def test_questions_can_leave_a_batch_in_half_precision(problem):
    torch = pytest.importorskip("torch")
    A, B = problem(30, 1000, 4)
    dictionary = Dictionary(torch.tensor(A))
    asked = questions(dictionary, B, [[1], None, [3, 4], None])
    settings = SolverSettings(1e-6, 1e-3, False, None, step_size(dictionary, asked, 1e-6), Workers())
    whole = Splitting(dictionary, asked, settings, half=True)
    whole.run(120)
    part = Splitting(dictionary, asked, settings, half=True)
    part.run(110)
    left = np.array([1, 2])
    part.keep(left, asked.some(left, dictionary.arrays))
    part.run(10)
    torch.testing.assert_close(part.average()[0], whole.average()[0][[1, 2]], atol=1e-4, rtol=1e-3)
