"""Files that are either whole or not there."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import tempfile
from pathlib import Path
from typing import Any


def write_atomic(path: Path, data: bytes) -> None:
    """Write beside the target, flush to disk, rename: a reader or a killed writer never leaves half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes private files; ours are as readable as any other file of the user.
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def cache_dir(name: str) -> Path:
    """Folder for what can be made again: below $PFUNGST_CACHE, else in the user's cache folder."""
    root = os.environ.get("PFUNGST_CACHE")
    if root:
        base = Path(root)
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pfungst"
    folder = base / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def storable(text: str) -> str:
    """Valid Unicode: a lone surrogate, which JSON can smuggle in, must not lose the record it stands in."""
    return text.encode("utf-8", "replace").decode("utf-8")


def jsonable(value: Any) -> Any:
    """Dataclasses to dictionaries, NaN and infinity to None: what strict JSON can hold."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "item") and callable(value.item):  # numpy scalars
        return jsonable(value.item())
    return value


def write_json(path: Path, value: Any) -> None:
    """Write JSON with a fixed layout: the same value gives the same bytes."""
    text = json.dumps(jsonable(value), indent=1, ensure_ascii=False, allow_nan=False)
    write_atomic(path, (text + "\n").encode("utf-8", "replace"))
