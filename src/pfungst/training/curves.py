"""The curve of a training run: JSON lines always, TensorBoard files where it is installed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pfungst.core.files import write_atomic

NAME = "curves.jsonl"


class Curves:
    """Appends points. What was written after the checkpoint it resumes from is dropped: it will be computed again."""

    def __init__(self, folder: Path | None, step: int, tensorboard: bool = True) -> None:
        self._file: Any = None
        self._board: Any = None
        if folder is None:
            return
        path = folder / NAME
        kept = [point for point in read_curves(folder) if point["step"] <= step]
        write_atomic(path, "".join(_line(point) for point in kept).encode())
        self._file = path.open("a", encoding="utf-8")
        if tensorboard:
            self._board = _writer(folder / "tensorboard", step)

    def add(self, step: int, values: Mapping[str, float]) -> None:
        if self._file is not None:
            self._file.write(_line({"step": step, **values}))
            self._file.flush()
        if self._board is not None:
            for name, value in values.items():
                self._board.add_scalar(name, value, step)
            self._board.flush()

    def close(self) -> None:
        for one in (self._file, self._board):
            if one is not None:
                one.close()


def read_curves(folder: Path) -> list[dict[str, Any]]:
    """The points of a run: `step` and whatever was measured there. A half-written last line is left out."""
    path = folder / NAME
    points = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            points.append(json.loads(line))
        except ValueError:
            break
    return points


def _line(point: Mapping[str, Any]) -> str:
    return json.dumps(point) + "\n"


def _writer(folder: Path, step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder), purge_step=step + 1 if step else None)
