"""Files of a data set in the making: records streamed in, checksums, whole or not there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from pfungst.core.files import file_digest, publish


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def records(parts: Iterable[Path], key: str) -> Iterator[dict[str, Any]]:
    prefix = f'{{"{key}":'
    for part in parts:
        with open(part, encoding="utf-8") as lines:
            for line in lines:
                if line.startswith(prefix):
                    yield json.loads(line)[key]


@contextmanager
def json_list(path: Path, name: str, info: Mapping[str, Any]) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Write `{"info": ..., NAME: [...]}` record by record; the file gets its name when it is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with open(temporary, "w", encoding="utf-8", newline="\n") as file:
            file.write(f'{{"info": {compact(info)}, "{name}": [')
            separators = chain(["\n"], repeat(",\n"))

            def write(record: Mapping[str, Any]) -> None:
                file.write(next(separators) + compact(record))

            yield write
            file.write("\n]}\n")
        publish(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def intact(path: Path, digest: str) -> bool:
    return bool(digest) and path.is_file() and file_digest(path) == digest


def checksum(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "sha256": file_digest(path)}
