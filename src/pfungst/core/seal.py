"""Checksums in safetensors files, and of files that a `SHA256SUMS` beside them names.

The format says where each tensor lies, not whether its bytes are still those that were written: one flipped bit makes
another model. A sealed file has `sha256` among its metadata, over the table of its tensors and all their bytes.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from pfungst.core.errors import DataError

SUMS = "SHA256SUMS"
_SEAL = "sha256"
_META = "__metadata__"


def seal(content: bytes) -> bytes:
    """A safetensors file with its checksum; the same tensors and metadata give the same bytes."""
    header, data = _parts(content)
    kept = {name: header.get(_META, {})[name] for name in sorted(header.get(_META, {}))}
    text = json.dumps({_META: {**kept, _SEAL: _digest(header, data)}, **_table(header)}, separators=(",", ":"))
    head = text.encode("ascii")
    head += b" " * (-len(head) % 8)
    return b"".join((len(head).to_bytes(8, "little"), head, data))


def read_sealed(path: Path) -> tuple[bytes, dict[str, str]]:
    """The bytes of a safetensors file and its metadata. DataError where a checksum says that it is damaged.

    A file without a checksum, as other programs write it, is taken as it is.
    """
    content = path.read_bytes()
    check_sum(path, content)
    try:
        header, data = _parts(content)
        metadata = dict(header.get(_META) or {})
        damaged = metadata.pop(_SEAL, None) not in (None, _digest(header, data))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise _damaged(path, f"this is not a safetensors file, or a damaged one ({error}).") from error
    if damaged:
        raise _damaged(path, "its bytes are not those that were written: its checksum does not match.")
    return content, {str(name): str(value) for name, value in metadata.items()}


def check_sum(path: Path, content: bytes) -> None:
    """DataError where a `SHA256SUMS` beside the file names another checksum for it."""
    try:
        lines = path.with_name(SUMS).read_text("utf-8").splitlines()
    except OSError:
        return
    sums = {name.lstrip(" *"): digest for digest, _, name in (line.partition(" ") for line in lines)}
    if path.name in sums and hashlib.sha256(content).hexdigest() != sums[path.name]:
        raise _damaged(path, f"its bytes are not those that were published: {SUMS} has a different checksum.")


def _damaged(path: Path, problem: str) -> DataError:
    return DataError.at(path, "", problem, "Install, download or train it again.")


def _parts(content: bytes) -> tuple[dict[str, Any], memoryview]:
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 + length or length < 2:
        raise ValueError("its header is cut off")
    header = json.loads(content[8 : 8 + length])
    if not isinstance(header, dict) or not isinstance(header.get(_META) or {}, dict):
        raise ValueError("its header is not an object")
    return header, memoryview(content)[8 + length :]


def _table(header: dict[str, Any]) -> dict[str, Any]:
    return {name: header[name] for name in header if name != _META}


def _digest(header: dict[str, Any], data: memoryview) -> str:
    metadata = {name: value for name, value in (header.get(_META) or {}).items() if name != _SEAL}
    digest = hashlib.sha256(json.dumps([metadata, _table(header)], sort_keys=True).encode())
    digest.update(data)
    return digest.hexdigest()
