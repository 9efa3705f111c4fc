"""How METEOR's kernels are compiled, and the types they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy.typing as npt

F = TypeVar("F", bound=Callable[..., Any])
Array = npt.NDArray[Any]
Bits = Any
"""An unsigned machine word, one bit a word of a sentence."""


def compiled(function: F) -> F:
    """Compile to machine code that runs beside other threads; kept on disk for the next process."""
    return cast(F, numba.njit(function, cache=True, nogil=True))
