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


GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""Step of the counter that splitmix64 stirs."""


@compiled
def stir(x: Bits) -> Bits:
    """The finaliser of splitmix64: a random-looking number of 64 bits, the same on every machine."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
