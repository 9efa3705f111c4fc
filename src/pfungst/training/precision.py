"""Half precision where the device can: every kind of layer is tried once, and what fails is said in a sentence."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from pfungst.core.errors import PfungstWarning

_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
_TRIALS: dict[Any, tuple[str, Callable[[], nn.Module], tuple[int, ...]]] = {
    nn.LSTM: ("an LSTM", lambda: nn.LSTM(8, 8, batch_first=True), (2, 3, 8)),
    nn.GRU: ("a GRU", lambda: nn.GRU(8, 8, batch_first=True), (2, 3, 8)),
    nn.Conv2d: ("a convolution", lambda: nn.Conv2d(8, 8, 3), (2, 8, 4, 4)),
    nn.Linear: ("a linear layer", lambda: nn.Linear(8, 8), (2, 8)),
}
"""Kinds of layers: what to call one, a small one, and the shape of what it reads."""


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
