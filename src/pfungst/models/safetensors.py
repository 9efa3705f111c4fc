"""The safetensors format, in a few lines: where only torch and numpy are installed, weights must still be read.

A file is 8 bytes (length of the header, little endian), a JSON header (name -> dtype, shape, place of the bytes;
`__metadata__` holds text), then the bytes of the tensors, one after the other. Nothing in it can run.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pfungst.core import DataError
from pfungst.core.files import write_atomic

_NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}
MAX_HEADER = 100_000_000
"""Bytes of the longest header the format allows."""


def save_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write the tensors; the file is either whole or not there."""
    header: dict[str, object] = {"__metadata__": dict(metadata)} if metadata else {}
    chunks: list[bytes] = []
    place = 0
    # Large numbers first, as the format's own writer does, keeps every tensor aligned.
    for name, tensor in sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0])):
        dense = tensor.detach().cpu().contiguous()
        data = dense.reshape(-1).view(torch.uint8).numpy().tobytes()
        header[name] = {
            "dtype": _NAMES[dense.dtype],
            "shape": list(dense.shape),
            "data_offsets": [place, place + len(data)],
        }
        chunks.append(data)
        place += len(data)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    write_atomic(path, struct.pack("<Q", len(text)) + text + b"".join(chunks))


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the metadata of a file, on the CPU. Raises DataError where it is no such file."""
    try:
        raw = np.fromfile(path, np.uint8)
    except OSError as error:
        raise DataError.at(path, "", "the weights cannot be read.", "Check the path.") from error
    header, start = _header(path, raw)
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict):
        raise _damaged(path, "its metadata are no text")
    tensors = {name: _tensor(path, raw, start, name, entry) for name, entry in header.items()}
    return tensors, {str(key): str(value) for key, value in metadata.items()}


def _header(path: Path, raw: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> tuple[dict[str, object], int]:
    if len(raw) < 8:
        raise _damaged(path, "it is shorter than 8 bytes")
    length = struct.unpack("<Q", raw[:8].tobytes())[0]
    if length > min(MAX_HEADER, len(raw) - 8):
        raise _damaged(path, "its header is longer than the file")
    try:
        header = json.loads(raw[8 : 8 + length].tobytes())
    except ValueError as error:
        raise _damaged(path, "its header is no JSON") from error
    if not isinstance(header, dict):
        raise _damaged(path, "its header is no table")
    return header, 8 + length


def _tensor(
    path: Path, raw: np.ndarray[tuple[int], np.dtype[np.uint8]], start: int, name: str, entry: object
) -> Tensor:
    try:
        dtype, shape = _DTYPES[entry["dtype"]], [int(n) for n in entry["shape"]]  # type: ignore[index]
        first, last = (int(n) for n in entry["data_offsets"])  # type: ignore[index]
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(path, f"the entry of {name} is incomplete") from error
    size = math.prod(shape) * torch.empty(0, dtype=dtype).element_size()
    if min(shape, default=0) < 0 or not 0 <= first <= last <= len(raw) - start or last - first != size:
        raise _damaged(path, f"the bytes of {name} are not where its header says")
    if not size:
        return torch.zeros(shape, dtype=dtype)
    data = torch.from_numpy(raw[start + first : start + last].copy())
    return data.view(dtype).reshape(shape)


def _damaged(path: Path, why: str) -> DataError:
    return DataError.at(path, "", f"this is not a safetensors file, or a damaged one: {why}.", "Get or train it again.")
