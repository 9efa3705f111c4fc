"""The numbers of a training: AdamW, half precision where the device can, and how a model does on data."""

from __future__ import annotations

import contextlib
import functools
import math
import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pfungst.core.errors import PfungstWarning
from pfungst.models import Model
from pfungst.training.config import FitConfig
from pfungst.training.data import Data, batches

_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
_TRIALS: dict[Any, tuple[str, Callable[[], nn.Module], tuple[int, ...]]] = {
    nn.LSTM: ("an LSTM", lambda: nn.LSTM(8, 8, batch_first=True), (2, 3, 8)),
    nn.GRU: ("a GRU", lambda: nn.GRU(8, 8, batch_first=True), (2, 3, 8)),
    nn.Conv2d: ("a convolution", lambda: nn.Conv2d(8, 8, 3), (2, 8, 4, 4)),
    nn.Linear: ("a linear layer", lambda: nn.Linear(8, 8), (2, 8)),
}
"""Kinds of layers: what to call one, a small one, and the shape of what it reads."""


def make_optimizer(modules: Sequence[nn.Module], config: FitConfig) -> torch.optim.AdamW:
    """AdamW; weight decay on matrices and convolutions only."""
    decay: list[nn.Parameter] = []
    plain: list[nn.Parameter] = []
    for module in modules:
        for part in module.modules():
            for parameter in part.parameters(recurse=False):
                if not parameter.requires_grad or any(parameter is p for p in (*decay, *plain)):
                    continue
                spared = parameter.ndim < 2 or isinstance(part, nn.Embedding)
                (plain if spared else decay).append(parameter)
    groups: list[dict[str, Any]] = [
        {"params": decay, "weight_decay": config.weight_decay},
        {"params": plain, "weight_decay": 0.0},
    ]
    on_gpu = all(parameter.is_cuda for parameter in (*decay, *plain))
    return torch.optim.AdamW(
        [g for g in groups if g["params"]], lr=config.rate, betas=config.betas, fused=True if on_gpu else None
    )


def usable(precision: str, device: torch.device | str, modules: Iterable[nn.Module]) -> str:
    """The precision to compute with: the one asked for, or fp32 where a layer of these modules cannot do it here.

    A CPU without bf16 instructions has no bf16 LSTM, for example. A PfungstWarning says so, once in a process.
    """
    if precision == "fp32":
        return precision
    parts = [part for module in modules for part in module.modules()]
    kinds = [kind for kind in _TRIALS if any(isinstance(part, kind) for part in parts)]
    place = str(torch.device(device))
    return precision if all(_works(kind, precision, place) for kind in kinds) else "fp32"


def autocast(
    device: torch.device | str, precision: str, modules: Iterable[nn.Module]
) -> contextlib.AbstractContextManager[Any]:
    """Mixed precision for these modules; nothing for fp32, or where the device cannot."""
    chosen = usable(precision, device, modules)
    if chosen == "fp32":
        return contextlib.nullcontext()
    return torch.autocast(torch.device(device).type, _DTYPES[chosen])


@functools.cache
def _works(kind: Hashable, precision: str, device: str) -> bool:
    name, make, shape = _TRIALS[kind]
    try:
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            layer = make().to(device)
            with torch.autocast(torch.device(device).type, _DTYPES[precision]):
                found: Any = layer(torch.ones(shape, device=device, requires_grad=True))
            output: Tensor = found[0] if isinstance(found, tuple) else found
            output.float().sum().backward()  # type: ignore[no-untyped-call]
    except RuntimeError:
        where = "This CPU" if device == "cpu" else f"The device {device}"
        warnings.warn(f"{where} cannot compute {name} in {precision}: fp32 is used instead.", PfungstWarning, 2)
        return False
    return True


@dataclass(frozen=True)
class Evaluation:
    """How a model does on data."""

    accuracy: float
    correct: NDArray[np.float64]
    """(N,) score of every example."""


@torch.inference_mode()
def answers(model: Model, data: Data, batch: int, device: torch.device | str = "cpu") -> list[int]:
    """The number of the model's answer to every question."""
    model.eval()
    return [number for part in batches(data, batch, device) for number in model(part).logits.argmax(-1).tolist()]


@torch.no_grad()
def evaluate(
    model: Model, data: Data, batch: int = 64, device: torch.device | str = "cpu", precision: str = "fp32"
) -> Evaluation:
    """Ask the model everything. An answer the model cannot give counts as wrong."""
    model.eval()
    # It would be compiled anew to be asked, and again for the last, shorter batch: that takes longer than it saves.
    compiled = model._compiled_call_impl is not None
    scores = []
    with torch.compiler.set_stance("force_eager") if compiled else nullcontext():
        for part in batches(data, batch, device):
            with autocast(device, precision, [model]):
                output = model(part)
            scores.append(model.correct(part, output).float())
    correct = torch.cat(scores).cpu().double().numpy() if scores else np.zeros(0)
    return Evaluation(float(correct.mean()) if len(correct) else math.nan, correct)
