"""Pictures small enough to travel: blocks of cosines, quantised and compressed; numpy alone unpacks them.

A rendered scene of 128x96 takes 36 KB as pixels and about 2 KB here, with a mean error of one or two levels in 255. The
blocks are those of JPEG (8x8, YCbCr, colours at half the resolution); the bytes are not.
"""

from __future__ import annotations

import json
import lzma
import os
import struct
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfungst.core import DataError
from pfungst.core.files import write_atomic

_MAGIC = b"PFPIC1\n\0"
_CHUNK = 512
"""Pictures compressed together."""


def _cosines() -> NDArray[np.float32]:
    k, n = np.mgrid[:8, :8]
    basis = np.cos(np.pi * (2 * n + 1) * k / 16) * np.sqrt(2 / 8)
    basis[0] /= np.sqrt(2)
    cosines: NDArray[np.float32] = basis.astype(np.float32)
    return cosines


def _steps(quality: float) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Quantisation steps of brightness and colour: finer for low frequencies, coarser for fine detail."""
    i, j = np.mgrid[:8, :8]
    slope = (4 + 1.6 * (i + j)).astype(np.float32)
    return slope / quality, 1.6 * slope / quality


_TO_YCC = np.array([[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]], np.float32)
_FROM_YCC = np.linalg.inv(_TO_YCC.astype(np.float64)).astype(np.float32)


def _transform(plane: NDArray[np.float32], steps: NDArray[np.float32]) -> NDArray[np.int16]:
    """(n, H, W) -> quantised coefficients (n, H/8, W/8, 8, 8)."""
    n, height, width = plane.shape
    blocks = plane.reshape(n, height // 8, 8, width // 8, 8).transpose(0, 1, 3, 2, 4)
    basis = _cosines()
    result: NDArray[np.int16] = np.rint(basis @ blocks @ basis.T / steps).astype(np.int16)
    return result


def _back(codes: NDArray[np.int16], steps: NDArray[np.float32]) -> NDArray[np.float32]:
    basis = _cosines()
    blocks = basis.T @ (codes.astype(np.float32) * steps) @ basis
    n, down, across = codes.shape[:3]
    plane: NDArray[np.float32] = blocks.transpose(0, 1, 3, 2, 4).reshape(n, down * 8, across * 8)
    return plane


def pack_pictures(path: Path, pictures: NDArray[np.uint8], quality: float = 1.0) -> None:
    """Write pictures (M, 3, H, W); height and width must be multiples of 16. `quality` 2 halves the error."""
    count, channels, height, width = pictures.shape
    if channels != 3 or height % 16 or width % 16:
        raise DataError(f"Pictures of {width}x{height} cannot be packed: give multiples of 16.")
    bright, colour = _steps(quality)
    chunks: list[bytes] = []
    for start in range(0, count, _CHUNK):
        part = pictures[start : start + _CHUNK].astype(np.float32) - 128
        planes = np.einsum("yc,nchw->ynhw", _TO_YCC, part)
        half = planes[1:].reshape(2, len(part), height // 2, 2, width // 2, 2).mean((3, 5))
        codes = [_transform(planes[0], bright), _transform(half[0], colour), _transform(half[1], colour)]
        # All pictures' values of one frequency stand together, low bytes before high ones: runs of 0 compress well.
        flat = np.concatenate([c.transpose(3, 4, 1, 2, 0).ravel() for c in codes]).astype("<i2")
        chunks.append(lzma.compress(flat.view(np.uint8).reshape(-1, 2).T.tobytes(), preset=6))
    head = json.dumps(
        {"count": count, "height": height, "width": width, "quality": quality, "chunks": [len(c) for c in chunks]}
    ).encode()
    write_atomic(path, _MAGIC + struct.pack("<I", len(head)) + head + b"".join(chunks))


def unpack_pictures(path: Path) -> NDArray[np.uint8]:
    """Read pictures (M, 3, H, W) back. The latest two files stay in memory: several models may learn from them."""
    try:
        return _unpacked(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise DataError.at(path, "", "the pictures cannot be read.") from error


@lru_cache(maxsize=2)
def _unpacked(path: Path, modified: int) -> NDArray[np.uint8]:
    try:
        raw = path.read_bytes()
        if raw[:8] != _MAGIC:
            raise ValueError("it does not begin as such a file does")
        length = struct.unpack("<I", raw[8:12])[0]
        head: dict[str, Any] = json.loads(raw[12 : 12 + length])
        count, height, width = head["count"], head["height"], head["width"]
        bright, colour = _steps(head["quality"])
        pictures = np.empty((count, 3, height, width), np.uint8)
        ends = np.cumsum([12 + length, *head["chunks"]]).tolist()

        def unpack(i: int) -> None:
            planes = np.frombuffer(lzma.decompress(raw[ends[i] : ends[i + 1]]), np.uint8).reshape(2, -1)
            flat = np.ascontiguousarray(planes.T).view("<i2").ravel()
            start = i * _CHUNK
            n = min(_CHUNK, count - start)
            pictures[start : start + n] = _chunk(flat, n, height, width, bright, colour)

        # lzma and matrix products let go of the interpreter: threads unpack at the speed of all cores.
        with ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as pool:
            list(pool.map(unpack, range(len(head["chunks"]))))
    except (ValueError, KeyError, lzma.LZMAError, struct.error) as error:
        raise DataError.at(path, "", f"the packed pictures are damaged ({error}).", "Export them again.") from error
    pictures.flags.writeable = False
    return pictures


def _chunk(
    flat: NDArray[np.int16], n: int, height: int, width: int, bright: NDArray[np.float32], colour: NDArray[np.float32]
) -> NDArray[np.uint8]:
    planes, place = [], 0
    for down, across, steps in (
        (height, width, bright),
        (height // 2, width // 2, colour),
        (height // 2, width // 2, colour),
    ):
        shape = (8, 8, down // 8, across // 8, n)
        size = int(np.prod(shape))
        codes = flat[place : place + size].reshape(shape).transpose(4, 2, 3, 0, 1)
        plane = _back(codes.astype(np.int16), steps)
        planes.append(plane if down == height else plane.repeat(2, 1).repeat(2, 2))
        place += size
    colours = np.einsum("cy,ynhw->nchw", _FROM_YCC, np.stack(planes)) + 128
    result: NDArray[np.uint8] = np.clip(np.rint(colours), 0, 255).astype(np.uint8)
    return result
