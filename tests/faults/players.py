"""Players that misbehave, importable by name from other processes."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from pfungst.core import Answer, Query


class Noting:
    """Writes down every query before it answers; `delay` seconds a batch."""

    name, fingerprint, batch_size = "noting", "noting 1", 4

    def __init__(self, log: str, delay: float = 0.0) -> None:
        self._log = os.open(log, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
        self._delay = float(delay)

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        os.write(self._log, "".join(f"{query.key(self.fingerprint)}\n" for query in queries).encode())
        time.sleep(self._delay)
        return [Answer("yes" if len(query.question + str(query.take)) % 3 else "no") for query in queries]


class Removing:
    """Somebody removes the run folder while it answers."""

    name = fingerprint = "removing"
    batch_size = 4

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        shutil.rmtree(self.folder, ignore_errors=True)
        return [Answer("yes") for _ in queries]


class Once:
    """Says what a function says, and counts."""

    name = fingerprint = "once"
    batch_size = 4

    def __init__(self, say: object) -> None:
        self.say, self.count = say, 0

    def answer(self, queries: Sequence[Query]) -> object:
        self.count += len(queries)
        return self.say(queries)  # type: ignore[operator]
