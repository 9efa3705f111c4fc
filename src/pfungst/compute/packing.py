"""Work on its way to processes of this machine: large arrays in it lie in one file that all workers map."""

from __future__ import annotations

import io
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from pickle import PicklingError
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pfungst.compute.shards import ComputeError

LARGE = 1 << 16
"""Bytes from which on an array is shared instead of copied to every worker."""


class _Packer(ForkingPickler):
    def __init__(self, buffer: io.BytesIO, path: Path) -> None:
        super().__init__(buffer)
        self._path = path
        self._end = 0

    def reducer_override(self, thing: Any) -> Any:
        if type(thing) is not np.ndarray or thing.dtype.hasobject or thing.nbytes < LARGE:
            return NotImplemented
        order: Literal["C", "F"] = "F" if thing.flags.f_contiguous and not thing.flags.c_contiguous else "C"
        with open(self._path, "ab") as file:
            begin = -(-self._end // 64) * 64  # where vector instructions like it
            file.write(bytes(begin - self._end))
            file.write(thing.tobytes(order))
            self._end = file.tell()
        return _mapped, (self._path, begin, thing.dtype.str, thing.shape, order)


def pack(work: Any, path: Path) -> bytes:
    """What a worker's pipe carries; `path` is a new file for the arrays, written only where there are large ones."""
    buffer = io.BytesIO()
    try:
        _Packer(buffer, path).dump(work)
    except (PicklingError, AttributeError, TypeError) as error:
        raise ComputeError(
            f"The work cannot be sent to another process ({error}). Use a function at the top of a module."
        ) from error
    return buffer.getvalue()


def _mapped(path: Path, begin: int, dtype: str, shape: tuple[int, ...], order: Any) -> npt.NDArray[Any]:
    """The array in a worker. Its pages are shared until somebody writes on one."""
    return np.asarray(np.memmap(path, dtype=dtype, mode="c", offset=begin, shape=shape, order=order))
