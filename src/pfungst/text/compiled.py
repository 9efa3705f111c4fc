"""How kernels are compiled, and what they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

F = TypeVar("F", bound=Callable[..., Any])
Array = npt.NDArray[Any]
Bits = Any
"""An unsigned machine word, one bit a word of a sentence."""


def compiled(function: F) -> F:
    """Compile to machine code that runs beside other threads; kept on disk for the next process."""
    return cast(F, numba.njit(function, cache=True, nogil=True))


@compiled
def ones(value: Bits) -> Bits:
    """Number of bits set, by adding neighbours."""
    value = value - ((value >> np.uint64(1)) & np.uint64(0x5555555555555555))
    value = (value & np.uint64(0x3333333333333333)) + ((value >> np.uint64(2)) & np.uint64(0x3333333333333333))
    value = (value + (value >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((value * np.uint64(0x0101010101010101)) >> np.uint64(56))
