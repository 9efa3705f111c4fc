"""The answers of `solve`, against scikit-learn and against the optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pfungst.lasso import Dictionary, solve, solve_stream, unit_columns
from tests.lasso.oracle import objective, optimality_error, relative_gap

sklearn = pytest.importorskip("sklearn.linear_model")


def by_scikit_learn(A, b, lam, positive=False):
    model = sklearn.Lasso(
        alpha=lam / len(b), fit_intercept=False, tol=1e-14, max_iter=1_000_000, positive=positive
    ).fit(A, b)
    return model.coef_


@pytest.mark.parametrize(
    ("d", "n"), [(1, 1), (1, 4), (4, 1), (3, 2), (10, 10), (20, 8), (30, 90), (12, 400), (40, 700)]
)
@pytest.mark.parametrize("share", [0.5, 0.1, 0.02])
def test_coefficients_equal_those_of_scikit_learn(problem, d, n, share):
    A, B = problem(d, n, 3, seed=d + n, unit=False)
    lam = share * float(np.abs(A.T @ B).max())
    solution = solve(A, B, lam)
    coefficients = solution.coefficients.toarray()
    assert coefficients.shape == (n, 3)
    for j in range(3):
        expected = by_scikit_learn(A, B[:, j], lam)
        np.testing.assert_allclose(coefficients[:, j], expected, atol=1e-9 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("lam", [1e-6, 1e-4])
def test_tiny_lam_is_solved_where_coordinate_descent_gives_up(problem, lam):
    A, B = problem(30, 800, 4)
    solution = solve(A, B, lam, tol=1e-9)
    assert solution.status == ("optimal",) * 4
    for j in range(4):
        x = solution.coefficients.toarray()[:, j]
        assert optimality_error(A, B[:, j], x, lam) < 1e-6
        assert np.count_nonzero(x) <= 30


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("lam", [1e-6, 1e-3, 0.1])
@pytest.mark.parametrize(("d", "n"), [(15, 40), (15, 600), (40, 15)])
def test_gaps_are_what_an_independent_computation_finds(problem, d, n, lam, nonnegative):
    A, B = problem(d, n, 3, seed=7)
    solution = solve(A, B, lam, nonnegative=nonnegative)
    assert (solution.gaps <= 1e-6).all()
    for j in range(3):
        x = solution.coefficients.toarray()[:, j]
        found = relative_gap(A, B[:, j], x, solution.duals[:, j], lam, nonnegative)
        assert found == pytest.approx(solution.gaps[j], abs=1e-9)
        assert solution.objectives[j] * lam == pytest.approx(objective(A, B[:, j], x, lam), rel=1e-9)


def test_nonnegative_coefficients_equal_those_of_scikit_learn(problem):
    A, B = problem(25, 60, 3, seed=5)
    solution = solve(A, B, 0.05, nonnegative=True)
    for j in range(3):
        x = solution.coefficients.toarray()[:, j]
        assert (x >= 0).all()
        np.testing.assert_allclose(x, by_scikit_learn(A, B[:, j], 0.05, positive=True), atol=1e-9)


def test_lam_at_its_maximum_gives_exact_zeros_and_no_gap(problem):
    A, B = problem(20, 50, 4, unit=False)
    lam = float(np.abs(A.T @ B).max())
    solution = solve(A, B, lam)
    assert solution.coefficients.nnz == 0
    assert (solution.gaps == 0).all()
    np.testing.assert_allclose(solution.duals, B / lam)


def test_a_zero_question_has_the_zero_answer(problem):
    A, B = problem(20, 50, 3)
    B[:, 1] = 0
    solution = solve(A, B, 1e-3)
    assert solution.gaps[1] == 0
    assert np.count_nonzero(solution.coefficients.toarray()[:, 1]) == 0
    assert np.count_nonzero(solution.coefficients.toarray()[:, 0]) > 0


def test_zero_columns_are_never_used(problem):
    A, B = problem(20, 50, 2)
    A[:, [0, 7]] = 0
    solution = solve(A, B, 1e-6)
    assert (solution.gaps <= 1e-6).all()
    assert not solution.coefficients.toarray()[[0, 7]].any()


@pytest.mark.parametrize("lam", [1e-6, 1e-2])
def test_duplicate_columns_share_one_coefficient(problem, lam):
    A, B = problem(12, 60, 2)
    single = solve(A, B, lam)
    double = solve(np.concatenate((A, A), axis=1), B, lam)
    assert (double.gaps <= 1e-6).all()
    both = double.coefficients.toarray()
    np.testing.assert_allclose(both[:60] + both[60:], single.coefficients.toarray(), atol=1e-6)


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("share", [1e-7, 5e-3])
def test_near_paraphrases_and_repeats_are_solved(nonnegative, share):
    rng = np.random.default_rng(0)
    A = unit_columns(rng.standard_normal((20, 30)))[:, rng.integers(0, 12, 30)]
    B = A[:, :20] + 0.01 * rng.standard_normal((20, 20))
    assert solve(A, B, share, nonnegative=nonnegative).gaps.max() < 1e-6


def test_a_column_equal_to_the_question_wins(problem):
    A, _ = problem(20, 300)
    x = solve(A, A[:, 17], 1e-6).coefficients.toarray()[:, 0]
    assert x[17] == pytest.approx(1 - 1e-6)
    assert np.count_nonzero(x) == 1


def test_excluded_columns_are_not_used_and_do_not_bind(problem):
    A, B = problem(20, 300, 3)
    B[:, 0] = A[:, 17]
    solution = solve(A, B, 1e-6, exclude=[[17, 3], None, 5])
    x = solution.coefficients.toarray()
    assert not x[[17, 3], 0].any() and x[5, 2] == 0
    assert (solution.gaps <= 1e-6).all()
    rest = np.setdiff1d(np.arange(300), [17, 3])
    expected = solve(A[:, rest], B[:, 0], 1e-6).coefficients.toarray()[:, 0]
    np.testing.assert_allclose(x[rest, 0], expected, atol=1e-9)


def test_a_mask_excludes_like_a_list(problem):
    A, B = problem(10, 500, 2)
    mask = np.zeros((500, 2), dtype=bool)
    mask[[4, 9], 0] = True
    by_mask = solve(A, B, 1e-4, exclude=mask)
    by_list = solve(A, B, 1e-4, exclude=[[9, 4], []])
    np.testing.assert_array_equal(by_mask.coefficients.toarray(), by_list.coefficients.toarray())


def test_with_every_column_excluded_nothing_is_left(problem):
    A, B = problem(6, 5, 1)
    solution = solve(A, B, 1e-3, exclude=[range(5)])
    assert solution.coefficients.nnz == 0 and solution.gaps[0] == 0


def test_scaling_the_problem_scales_the_answer(problem):
    A, B = problem(15, 200, 2)
    plain = solve(A, B, 1e-3)
    scaled = solve(3.0 * A, 5.0 * B, 15e-3)
    np.testing.assert_allclose(scaled.coefficients.toarray(), plain.coefficients.toarray() * 5 / 3, atol=1e-9)


def test_questions_of_very_different_length_are_all_solved(problem):
    A, B = problem(15, 400, 3)
    B *= [1e-4, 1.0, 1e3]
    solution = solve(A, B, 1e-5)
    for j in range(3):
        assert optimality_error(A, B[:, j], solution.coefficients.toarray()[:, j], 1e-5) < 1e-6


def test_a_tolerance_out_of_reach_is_reported_honestly(problem):
    A, B = problem(15, 300, 2)
    solution = solve(A, B, 1e-6, tol=1e-30)
    assert solution.status == ("not converged",) * 2
    assert (solution.gaps > 1e-30).all() and (solution.gaps < 1e-9).all()


def test_a_batch_gives_what_single_questions_give(problem):
    A, B = problem(16, 900, 9)
    together = solve(A, B, 1e-6).coefficients.toarray()
    for j in range(9):
        alone = solve(A, B[:, j], 1e-6).coefficients.toarray()[:, 0]
        np.testing.assert_allclose(together[:, j], alone, atol=1e-10)


def test_threads_do_not_change_the_answer(problem):
    A, B = problem(20, 1500, 6)
    one, two = (solve(A, B, 1e-6, workers=workers).coefficients.toarray() for workers in (1, 2))
    np.testing.assert_allclose(one, two, atol=1e-10)


def test_few_questions_over_many_columns_take_the_short_way_to_the_same_answer(problem):
    A, B = problem(8, 4000, 6)
    alone = solve(A, B[:, 0], 1e-6, exclude=[11])
    batch = solve(A, B, 1e-6, exclude=[11, None, None, None, None, None])
    assert alone.gaps[0] <= 1e-6
    np.testing.assert_allclose(alone.coefficients.toarray()[:, 0], batch.coefficients.toarray()[:, 0], atol=1e-10)


def test_a_stream_gives_one_solution_a_batch(problem):
    A, B = problem(16, 500, 6)
    whole = solve(A, B, 1e-4, exclude=[0, 1, 2, 3, 4, 5]).coefficients.toarray()
    batches = ((B[:, i : i + 2], [i, i + 1]) for i in range(0, 6, 2))
    parts = list(solve_stream(A, batches, 1e-4))
    assert len(parts) == 3
    np.testing.assert_allclose(
        np.concatenate([part.coefficients.toarray() for part in parts], axis=1), whole, atol=1e-9
    )


def test_no_questions_give_an_empty_solution(problem):
    A, _ = problem(5, 9)
    solution = solve(A, np.zeros((5, 0)), 1e-3)
    assert solution.coefficients.shape == (9, 0) and solution.gaps.shape == (0,)


def test_a_prepared_dictionary_can_be_used_again(problem):
    A, B = problem(10, 400, 2)
    dictionary = Dictionary(A)
    for lam in (1e-6, 1e-2, 1e-6):
        assert (solve(dictionary, B, lam).gaps <= 1e-6).all()


@settings(max_examples=40, deadline=None)
@given(
    d=st.integers(1, 12),
    n=st.integers(1, 30),
    seed=st.integers(0, 10_000),
    power=st.floats(-6, 0.5),
    grid=st.booleans(),
)
def test_optimality_conditions_hold(d, n, seed, power, grid):
    rng = np.random.default_rng(seed)
    # Integers give ties, duplicates and dependent columns in plenty.
    A = rng.integers(-2, 3, (d, n)).astype(float) if grid else rng.standard_normal((d, n))
    b = rng.integers(-3, 4, d).astype(float) if grid else rng.standard_normal(d)
    lam = 10.0**power
    solution = solve(A, b, lam)
    x = solution.coefficients.toarray()[:, 0]
    assert solution.gaps[0] <= 1e-6
    if b.any():
        assert relative_gap(A, b, x, solution.duals[:, 0], lam) <= 1e-6
        assert np.abs(A.T @ solution.duals[:, 0]).max() <= 1 + 1e-9


def test_unit_columns_have_unit_norm_and_zero_columns_stay():
    scaled = unit_columns(np.array([[3.0, 0.0], [4.0, 0.0]]))
    np.testing.assert_allclose(scaled, [[0.6, 0.0], [0.8, 0.0]])
