"""The LASSO of the papers, solved for many questions over one dictionary, each with a certified duality gap.

>>> solution = solve(unit_columns(A), unit_columns(B), lam=1e-6, tol=1e-6)
>>> solution.coefficients, solution.gaps, top_k(solution, 21).indices
"""

from pfungst.lasso.problem import Dictionary, unit_columns
from pfungst.lasso.solution import Solution, TopColumns, top_k
from pfungst.lasso.solving import solve, solve_stream

__all__ = ["Dictionary", "TopColumns", "Solution", "solve", "solve_stream", "top_k", "unit_columns"]
