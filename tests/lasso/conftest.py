"""Problems for the LASSO tests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

Problem = tuple[np.ndarray, np.ndarray]


@pytest.fixture
def problem() -> Callable[..., Problem]:
    """`problem(d, n, q)`: random unit columns A (d, n) and questions B (d, q)."""

    def make(d: int, n: int, q: int = 1, seed: int = 0, unit: bool = True) -> Problem:
        rng = np.random.default_rng(seed)
        A, B = rng.standard_normal((d, n)), rng.standard_normal((d, q))
        if unit:
            A, B = A / np.linalg.norm(A, axis=0), B / np.linalg.norm(B, axis=0)
        return A, B

    return make
