"""What the solver returns, and the ranking read off it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pfungst.core.errors import PfungstError
from pfungst.lasso.problem import Dictionary

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix

Array = np.ndarray[Any, Any]

OPTIMAL = "optimal"
NOT_CONVERGED = "not converged"


@dataclass(frozen=True, eq=False)
class Solution:
    """The coefficients of q questions over n columns, each with its certificate.

    The arrays `starts`, `indices` and `values` are the columns of the coefficient matrix as in scipy's CSC format.
    """

    starts: Array
    """(q + 1,) where the entries of each question begin."""
    indices: Array
    """Columns of the dictionary, ascending within a question."""
    values: Array
    """Their coefficients."""
    gaps: Array
    """(q,) certified relative duality gaps (P - D) / P, computed over all columns in float64."""
    duals: Array
    """(d, q) dual points theta that certify the gaps: |a_j'theta| <= 1 for every column that may be used."""
    objectives: Array
    """(q,) P = ||Ax - b||^2 / (2 lam) + ||x||_1."""
    iterations: Array
    """(q,) iterations spent: of the splitting over all columns and of the interior point method together."""
    lam: float
    tol: float
    truncated: int | None = None
    """Where not None, only this many largest coefficients were kept; gaps are those of the whole vectors."""
    excluded: tuple[Array, Array] = field(default=(np.zeros(0, np.int64), np.zeros(0, np.int64)), repr=False)
    """Question and column of every pair that was excluded."""
    dictionary: Dictionary | None = field(default=None, repr=False)

    @property
    def questions(self) -> int:
        return len(self.starts) - 1

    @property
    def columns(self) -> int:
        return self.dictionary.n if self.dictionary is not None else int(self.indices.max(initial=-1)) + 1

    @property
    def converged(self) -> Array:
        """(q,) whether the certified gap is within the tolerance."""
        flags: Array = self.gaps <= self.tol
        return flags

    @property
    def status(self) -> tuple[str, ...]:
        """`optimal` (to the tolerance, certified) or `not converged`, one a question."""
        return tuple(OPTIMAL if flag else NOT_CONVERGED for flag in self.converged)

    @property
    def coefficients(self) -> csc_matrix:
        """The coefficients as a scipy sparse matrix (n, q)."""
        from scipy.sparse import csc_matrix

        return csc_matrix((self.values, self.indices, self.starts), shape=(self.columns, self.questions))


@dataclass(frozen=True, eq=False)
class TopColumns:
    """The k best columns of every question."""

    indices: Array
    """(q, k) columns, best first."""
    scores: Array
    """(q, k) their coefficients; 0 for columns that only fill up."""
    filled: Array
    """(q,) how many of the k have no positive coefficient and were filled up by correlation."""
    gaps: Array
    """(q,) certified relative duality gaps of the solutions behind the ranking."""


def top_k(solution: Solution, k: int = 21) -> TopColumns:
    """Rank the columns of every question by their coefficient, largest first; ties go to the smaller index.

    Only positive coefficients rank: a negative one says what the question is not. Where fewer than k are positive, the
    list is filled up with the columns that correlate most with the residual (largest a_j'theta, ties by index), which
    are the next to enter the solution as lam falls; they score 0. Excluded columns never appear.

    k = 21 is the papers' choice ("Setup" of Assessing the Robustness of VQA).
    """
    if k < 1:
        raise PfungstError(f"The ranking was asked for k = {k} columns; at least one is needed.")
    left = np.full(solution.questions, solution.columns)
    np.subtract.at(left, solution.excluded[0], 1)
    if solution.questions and k > left.min():
        worst = int(left.argmin())
        raise PfungstError(
            f"Question {worst} has {int(left[worst])} columns to rank, but k = {k} were asked for. "
            "Give a larger pool or a smaller k."
        )
    indices = np.empty((solution.questions, k), dtype=np.int64)
    scores = np.zeros((solution.questions, k))
    filled = np.zeros(solution.questions, dtype=np.int64)
    for i in range(solution.questions):
        part = slice(solution.starts[i], solution.starts[i + 1])
        columns, values = solution.indices[part], solution.values[part]
        positive = values > 0
        columns, values = columns[positive], values[positive]
        best = np.lexsort((columns, -values))[:k]
        indices[i, : len(best)], scores[i, : len(best)] = columns[best], values[best]
        filled[i] = k - len(best)
        if filled[i]:
            indices[i, len(best) :] = _fill(solution, i, columns[best], int(filled[i]))
    return TopColumns(indices, scores, filled, solution.gaps)


def _fill(solution: Solution, i: int, taken: Array, count: int) -> Array:
    if solution.dictionary is None:
        raise PfungstError(
            f"Question {i} has too few positive coefficients, and the solution does not include the dictionary that "
            "would fill up its ranking. Use the result of `solve` as it is returned."
        )
    a = solution.dictionary.arrays
    correlation = a.host(solution.dictionary.rows @ a.array(solution.duals[:, i])).copy()
    correlation[taken] = -np.inf
    correlation[solution.excluded[1][solution.excluded[0] == i]] = -np.inf
    order: Array = np.lexsort((np.arange(len(correlation)), -correlation))[:count]
    return order
