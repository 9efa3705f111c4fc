"""Independent arithmetic to judge the solver by: written from the definitions, sharing no code with it."""

from __future__ import annotations

import numpy as np


def objective(A: np.ndarray, b: np.ndarray, x: np.ndarray, lam: float) -> float:
    """1/2 ||Ax - b||^2 + lam ||x||_1."""
    return float(0.5 * np.sum((A @ x - b) ** 2) + lam * np.sum(np.abs(x)))


def relative_gap(
    A: np.ndarray, b: np.ndarray, x: np.ndarray, theta: np.ndarray, lam: float, nonnegative: bool = False
) -> float:
    """(P - D) / P in units of lam, with theta made feasible over all columns of A."""
    values = A.T @ theta
    theta = theta / max(1.0, float(np.max(values if nonnegative else np.abs(values), initial=0.0)))
    primal = objective(A, b, x, lam) / lam
    dual = float(b @ theta - lam / 2 * theta @ theta)
    return (primal - dual) / primal


def optimality_error(A: np.ndarray, b: np.ndarray, x: np.ndarray, lam: float) -> float:
    """Largest violation of the optimality conditions, in units of lam: a_j'r = lam sign(x_j), or |a_j'r| <= lam."""
    correlation = A.T @ (b - A @ x) / lam
    used = x != 0
    on = np.abs(correlation[used] - np.sign(x[used])).max(initial=0.0)
    off = np.maximum(np.abs(correlation[~used]) - 1.0, 0.0).max(initial=0.0)
    return float(max(on, off))
