"""Checkpoints: all a training run needs to resume as if nothing had happened. No pickle: safetensors and JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pfungst.core import DataError
from pfungst.models import load_tensors, save_tensors

CHECKPOINT, BEST = "checkpoint.safetensors", "best.safetensors"


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
