"""How far an exam is, as a file in its run folder: whoever looks at the folder can tell."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pfungst.core.types import Progress

PROGRESS_FILE = "progress.json"
EVERY_SECONDS = 0.5


@contextmanager
def shown_in(folder: Path, progress: Progress) -> Iterator[Progress]:
    """A progress callback that also writes `folder`/progress.json, at most twice a second.

    The file is there as long as the work lasts. It says what is being done, how much is done and how much there is; its
    age says whether the work still goes on. Where it cannot be written, the work goes on without it.
    """
    path = folder / PROGRESS_FILE
    told: float | None = None

    def tell(what: str, done: int, total: int) -> None:
        nonlocal told
        progress(what, done, total)
        if (told is None or time.monotonic() - told >= EVERY_SECONDS) and folder.is_dir():
            told = time.monotonic()
            temporary = path.with_name(f".{PROGRESS_FILE}.{os.getpid()}.tmp")
            with suppress(OSError):
                temporary.write_text(json.dumps({"what": what, "done": done, "total": total}), "utf-8")
                temporary.replace(path)

    try:
        yield tell
    finally:
        if told is not None:  # else it is the file of another exam in this folder, which ours had to leave
            with suppress(OSError):
                path.unlink(missing_ok=True)
