"""Cholesky factorisation and solution by LAPACK without holding the interpreter lock.

The Python wrappers of scipy hold the lock while LAPACK works, so that two threads take turns. The same routines called
through their addresses, which scipy publishes for Cython in `scipy.linalg.cython_lapack`, do not.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np

_POINTER = ctypes.c_void_p
_LOWER = ctypes.c_char(b"L")


@lru_cache(maxsize=2)
def _routine(name: str, arguments: int) -> Any:
    from scipy.linalg import cython_lapack

    capsule = cython_lapack.__pyx_capi__[name]
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = get_pointer(capsule, get_name(capsule))
    return ctypes.CFUNCTYPE(None, *[_POINTER] * arguments)(address)


def cholesky(matrix: np.ndarray[Any, Any]) -> bool:
    """Factorise a symmetric matrix (k, k) in place, in column-major order the lower triangle; False if not definite."""
    assert matrix.flags.c_contiguous and matrix.dtype == np.float64
    size, info = ctypes.c_int(matrix.shape[0]), ctypes.c_int(0)
    _routine("dpotrf", 5)(
        ctypes.addressof(_LOWER),
        ctypes.addressof(size),
        matrix.ctypes.data,
        ctypes.addressof(size),
        ctypes.addressof(info),
    )
    return info.value == 0


def cholesky_solve(factor: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Solve for a right-hand side (k,), or for every row of several (r, k), with what `cholesky` left."""
    x = np.array(right, dtype=np.float64, order="C")
    size, info = ctypes.c_int(factor.shape[0]), ctypes.c_int(0)
    count = ctypes.c_int(1 if x.ndim == 1 else len(x))
    _routine("dpotrs", 8)(
        ctypes.addressof(_LOWER),
        ctypes.addressof(size),
        ctypes.addressof(count),
        factor.ctypes.data,
        ctypes.addressof(size),
        x.ctypes.data,
        ctypes.addressof(size),
        ctypes.addressof(info),
    )
    return x
