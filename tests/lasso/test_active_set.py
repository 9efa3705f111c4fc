"""Small dictionaries: the exact answer from a short splitting and a few moves of the support."""

from __future__ import annotations

import numpy as np
import pytest

from pfungst.lasso import Dictionary, solve, unit_columns, working_set
from tests.lasso.oracle import optimality_error, relative_gap


def sentences(d: int, n: int) -> np.ndarray:
    """Unit columns as encoders give them: near each other, in directions of very different weight."""
    rng = np.random.default_rng(n)
    topics = rng.standard_normal((n // 5, d))
    vectors = topics[rng.integers(0, len(topics), n)] + 0.4 * rng.standard_normal((n, d)) + 0.5
    return unit_columns((vectors * np.geomspace(1.0, 0.05, d)).T)


@pytest.mark.parametrize("n", [20, 54, 66, 120, 180, 400])
def test_real_shapes_are_solved_exactly_without_the_interior_point_method(n, monkeypatch):
    monkeypatch.setattr(working_set, "interior", None)
    A = sentences(60, n)
    B = A[:, :20]
    solution = solve(A, B, 1e-6, 1e-3, exclude=range(20), workers=1)
    assert (solution.gaps < 1e-11).all()
    coefficients = solution.coefficients.toarray()
    for j in range(0, 20, 5):
        rest = np.delete(np.arange(n), j)
        assert coefficients[j, j] == 0
        assert optimality_error(A[:, rest], B[:, j], coefficients[rest, j], 1e-6) < 1e-6
        found = relative_gap(A[:, rest], B[:, j], coefficients[rest, j], solution.duals[:, j], 1e-6)
        assert found == pytest.approx(solution.gaps[j], abs=1e-9)


def test_the_ranking_of_a_question_does_not_depend_on_the_others_in_its_batch():
    A = sentences(60, 150)
    dictionary = Dictionary(A)
    together = solve(dictionary, A[:, :12], 1e-6, 1e-3, exclude=range(12)).coefficients.toarray()
    for j in (0, 7):
        alone = solve(dictionary, A[:, j], 1e-6, 1e-3, exclude=[j]).coefficients.toarray()[:, 0]
        np.testing.assert_allclose(together[:, j], alone, atol=1e-9)


def test_dependent_columns_are_left_to_the_interior_point_method():
    A = sentences(20, 40)
    twins = np.concatenate((A, A[:, :10]), axis=1)
    solution = solve(twins, A[:, 20:24] + 0.01, 1e-6)
    assert (solution.gaps <= 1e-6).all()
