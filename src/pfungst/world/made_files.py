"""Files of a data set in the making: records streamed in, checksums, whole or not there."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def records(parts: Iterable[Path], key: str) -> Iterator[dict[str, Any]]:
    prefix = f'{{"{key}":'
    for part in parts:
        with open(part, encoding="utf-8") as lines:
            for line in lines:
                if line.startswith(prefix):
                    yield json.loads(line)[key]


class JsonList:
    """Writes `{"info": ..., NAME: [...]}` record by record, and gives the file its name when it is whole."""

    def __init__(self, path: Path, name: str, info: Mapping[str, Any]) -> None:
        self.path, self.temporary = path, path.with_name(f".{path.name}.tmp")
        self.head: str = f'{{"info": {compact(info)}, "{name}": ['

    def __enter__(self) -> Callable[[Mapping[str, Any]], None]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.file = open(self.temporary, "w", encoding="utf-8", newline="\n")
        self.file.write(self.head)
        self.separator: str = "\n"
        return self._write

    def _write(self, record: Mapping[str, Any]) -> None:
        self.file.write(self.separator + compact(record))
        self.separator = ",\n"

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.file.write("\n]}\n")
            self.file.flush()
            os.fsync(self.file.fileno())
        self.file.close()
        if kind is None:
            self.temporary.replace(self.path)
        else:
            self.temporary.unlink(missing_ok=True)


def intact(path: Path, digest: str) -> bool:
    return bool(digest) and path.is_file() and checksum(path)["sha256"] == digest


def checksum(path: Path) -> dict[str, Any]:
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}
