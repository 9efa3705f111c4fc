"""What a training run leaves and how it stops: checkpoints, its curve, Ctrl-C between two steps.

A checkpoint is all a run needs to resume as if nothing had happened. No pickle: safetensors and JSON. Half a
step cannot be resumed, so none is ended within.
"""

from __future__ import annotations

import contextlib
import json
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn

from pfungst.core import DataError
from pfungst.core.files import write_atomic
from pfungst.models import load_tensors, save_tensors

CHECKPOINT, BEST, CURVES = "checkpoint.safetensors", "best.safetensors", "curves.jsonl"


@dataclass
class State:
    """Where a run is, besides its tensors."""

    step: int = 0
    """Steps done."""
    best: float = float("-inf")
    """Best accuracy seen in a check."""
    best_step: int = 0
    bad_checks: int = 0
    """Checks since."""
    sums: dict[str, float] = field(default_factory=dict)
    """Losses since the last point of the curve."""
    seconds: float = 0.0
    """Time spent in all runs together."""
    scaler: dict[str, float] = field(default_factory=dict)
    """Of the loss scale in fp16."""
    finished: str = ""
    """Why it ended: `steps` or `patience`; empty while it has not."""


def save_checkpoint(
    path: Path,
    modules: Mapping[str, nn.Module],
    optimizer: torch.optim.Optimizer,
    average: Mapping[str, Tensor],
    state: State,
) -> None:
    """Write everything at once: a killed writer leaves the checkpoint before."""
    tensors: dict[str, Tensor] = {}
    for name, module in modules.items():
        tensors |= {f"{name}/{key}": value for key, value in module.state_dict().items()}
    for index, values in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{index}/{key}": value for key, value in values.items() if isinstance(value, Tensor)}
    tensors |= {f"average/{key}": value for key, value in average.items()}
    save_tensors(path, tensors, {"state": json.dumps(asdict(state))})


def load_checkpoint(
    path: Path, modules: Mapping[str, nn.Module], optimizer: torch.optim.Optimizer, average: dict[str, Tensor]
) -> State:
    """Put everything back where `save_checkpoint` found it."""
    tensors, metadata = load_tensors(path)
    try:
        state = State(**json.loads(metadata["state"]))
        for name, module in modules.items():
            module.load_state_dict(_below(tensors, name))
        found: dict[int, dict[str, Any]] = {}
        for key, value in _below(tensors, "optimizer").items():
            index, _, part = key.partition("/")
            found.setdefault(int(index), {})[part] = value
        optimizer.load_state_dict({"state": found, "param_groups": optimizer.state_dict()["param_groups"]})
        kept = _below(tensors, "average")
        for key in average:
            average[key].copy_(kept[key])
    except (KeyError, ValueError, TypeError, RuntimeError) as error:
        raise DataError.at(
            path, "", f"the checkpoint does not fit this model ({error}).", "Choose another folder, or delete it."
        ) from error
    return state


def last_weights(path: Path) -> dict[str, Tensor]:
    """The model's weights when the checkpoint was written, averaged where the run averages them."""
    tensors, _ = load_tensors(path)
    return _below(tensors, "average") or _below(tensors, "model")


def _below(tensors: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
    return {key[len(name) + 1 :]: value for key, value in tensors.items() if key.startswith(f"{name}/")}


class Curves:
    """The curve of a run: JSON lines always, TensorBoard files where it is installed.

    Points behind the checkpoint that it resumes from are dropped: they will be computed again.
    """

    def __init__(self, folder: Path | None, step: int, tensorboard: bool = True) -> None:
        self._file: Any = None
        self._board: Any = None
        if folder is None:
            return
        path = folder / CURVES
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
    path = folder / CURVES
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


@contextlib.contextmanager
def deferred() -> Iterator[Callable[[], bool]]:
    """Within, Ctrl-C is not raised: the function given says whether it was pressed. Pressed again, it is raised.

    The same for SIGTERM, by which a cluster takes a machine back and `timeout` ends a command, but once is enough: it
    may reach a process directly and from the one that started it.
    In other threads than the main one, and where somebody else handles the signal, nothing changes.
    """
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    mine = threading.current_thread() is threading.main_thread()
    heard = {one: how for one, how in usual.items() if mine and signal.getsignal(one) is how}
    pressed = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed and number == signal.SIGINT:
            raise KeyboardInterrupt
        pressed = True

    for one in heard:
        signal.signal(one, note)
    try:
        yield lambda: pressed
    finally:
        for one, how in heard.items():
            signal.signal(one, how)
