"""What is wrong with the input is said in a sentence."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from pfungst.core import PfungstError
from pfungst.lasso import Dictionary, solve

A, B = np.eye(3, 4), np.ones((3, 2))
HOLE = A.copy()
HOLE[1, 2] = np.nan
BLANK = B.copy()
BLANK[0, 1] = np.inf


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        ((HOLE, B, 0.1), {}, "Column 2 of the dictionary holds NaN"),
        ((A, BLANK, 0.1), {}, "Question 1 holds NaN or infinite"),
        ((np.zeros((3, 0)), B, 0.1), {}, "dictionary is empty"),
        ((np.zeros(3), B, 0.1), {}, r"matrix \(d, n\)"),
        ((A, np.ones((4, 2)), 0.1), {}, "columns of length 3"),
        ((A, B, 0.0), {}, "positive number"),
        ((A, B, -1.0), {}, "positive number"),
        ((A, B, float("nan")), {}, "positive number"),
        ((A, B, 0.1, 0.0), {}, "positive relative gap"),
        ((A, B, 0.1), {"exclude": [1]}, "for 1 questions, but there are 2"),
        ((A, B, 0.1), {"exclude": [1, 4]}, "column 4 for question 1"),
        ((A, B, 0.1), {"exclude": np.zeros((2, 4), dtype=bool)}, r"\(4, 2\) is needed"),
        ((A, B, 0.1), {"method": "guess"}, "no method 'guess'"),
        ((A, B, 0.1), {"keep": 0}, "at least one coefficient"),
        (([["a", "b"]], B, 0.1), {}, "array of numbers"),
    ],
)
def test_bad_input_is_explained(arguments, options, sentence):
    with pytest.raises(PfungstError, match=sentence):
        solve(*arguments, **options)


def test_lists_and_sparse_matrices_are_taken():
    from scipy.sparse import csc_matrix

    dense = solve(A, B, 0.1).coefficients.toarray()
    np.testing.assert_array_equal(solve(A.tolist(), B.tolist(), 0.1).coefficients.toarray(), dense)
    np.testing.assert_array_equal(solve(csc_matrix(A), B, 0.1).coefficients.toarray(), dense)


def test_a_dictionary_of_zeros_has_only_the_zero_answer():
    solution = solve(np.zeros((3, 4)), B, 0.1)
    assert solution.coefficients.nnz == 0 and (solution.gaps == 0).all()


def test_a_dictionary_can_be_prepared_alone():
    dictionary = Dictionary(2.0 * A)
    assert (dictionary.n, dictionary.d, dictionary.rank, dictionary.scale) == (4, 3, 3, 2.0)


def test_the_solver_needs_neither_scipy_nor_torch_to_be_imported():
    code = "import sys, pfungst.lasso; print(sorted({'scipy', 'torch', 'numba', 'triton'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
