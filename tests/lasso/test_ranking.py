"""The best k columns of a solution."""

from __future__ import annotations

import numpy as np
import pytest

from pfungst.core import PfungstError
from pfungst.lasso import Dictionary, Solution, solve, top_k


def handmade(values: dict[int, float], A: np.ndarray, theta: np.ndarray, excluded: tuple[int, ...] = ()) -> Solution:
    columns = np.array(sorted(values), dtype=np.int64)
    return Solution(
        starts=np.array([0, len(columns)]),
        indices=columns,
        values=np.array([values[int(j)] for j in columns]),
        gaps=np.array([1e-8]),
        duals=theta[:, None],
        objectives=np.ones(1),
        iterations=np.ones(1, dtype=np.int64),
        lam=1e-6,
        tol=1e-6,
        excluded=(np.zeros(len(excluded), dtype=np.int64), np.array(excluded, dtype=np.int64)),
        dictionary=Dictionary(A),
    )


EYE = np.eye(6)


def test_largest_coefficients_come_first_and_ties_go_to_the_smaller_index():
    ranking = top_k(handmade({4: 0.2, 1: 0.5, 0: 0.2, 3: -0.9, 2: 0.1}, EYE, np.zeros(6)), 4)
    assert ranking.indices.tolist() == [[1, 0, 4, 2]]
    assert ranking.scores.tolist() == [[0.5, 0.2, 0.2, 0.1]]
    assert ranking.filled.tolist() == [0]
    assert ranking.gaps.tolist() == [1e-8]


def test_missing_places_are_filled_by_correlation_with_score_zero():
    theta = np.array([0.1, 1.0, 0.7, -1.0, 0.7, 0.0])
    ranking = top_k(handmade({1: 0.5, 3: -0.9}, EYE, theta), 4)
    assert ranking.indices.tolist() == [[1, 2, 4, 0]]
    assert ranking.scores.tolist() == [[0.5, 0.0, 0.0, 0.0]]
    assert ranking.filled.tolist() == [3]


def test_excluded_columns_do_not_fill_up():
    theta = np.array([0.1, 1.0, 0.7, 0.0, 0.9, 0.0])
    ranking = top_k(handmade({1: 0.5}, EYE, theta, excluded=(4,)), 3)
    assert ranking.indices.tolist() == [[1, 2, 0]]


def test_a_large_lam_still_gives_k_columns(problem):
    A, B = problem(20, 400, 3)
    solution = solve(A, B, 0.5 * float(np.abs(A.T @ B).max()), exclude=[0, 1, 2])
    ranking = top_k(solution, 21)
    assert (ranking.filled > 0).all()
    for i, row in enumerate(ranking.indices):
        assert len(set(row.tolist())) == 21 and i not in row


@pytest.mark.parametrize(("k", "excluded"), [(7, ()), (6, (2,)), (0, ())])
def test_more_columns_than_there_are_cannot_be_ranked(k, excluded):
    with pytest.raises(PfungstError, match="columns"):
        top_k(handmade({1: 0.5}, EYE, np.zeros(6), excluded), k)
