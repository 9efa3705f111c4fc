"""Devices that share a piece of work: a process for each, which sees no other."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from functools import lru_cache
from importlib.util import find_spec

from pfungst.core import UsageError

VISIBLE = "CUDA_VISIBLE_DEVICES"
QUERY_SECONDS = 30.0


def read_devices(text: str | None) -> tuple[str, ...]:
    """`cuda:0,cuda:1` as its parts; () for None. All must be of one kind: their results differ in the last bits."""
    devices = tuple(part.strip() for part in (text or "").split(",") if part.strip())
    kinds = sorted({kind(device) for device in devices})
    if len(kinds) > 1:
        raise UsageError(f"Devices of one kind can share work, but {text} names {' and '.join(kinds)}.")
    return devices


def check_device(device: str | None) -> None:
    """UsageError where torch does not know the device, or this machine lacks it."""
    if device in (None, "", "cpu") or find_spec("torch") is None:
        return
    import torch

    try:
        wanted = torch.device(device)
    except RuntimeError:
        raise UsageError(f"There is no device {device!r}. There are cpu, cuda, cuda:1 ... and mps.") from None
    missing = ""
    if wanted.type == "cuda":
        # Asking torch starts CUDA, which processes that are forked later could not use: only where nobody else knows.
        seen = len(visible_gpus()) or torch.cuda.device_count()
        if not seen or (torch.version.cuda is None and torch.version.hip is None):
            missing = "torch sees no GPU"
        elif (wanted.index or 0) >= seen:
            missing = f"this machine has {seen} GPUs, cuda:0 and up"
    elif wanted.type == "mps" and not torch.backends.mps.is_available():
        missing = "torch sees no GPU of Apple's"
    if missing:
        raise UsageError(f"The device {device} is not available here: {missing}. Use cpu, or see `pfungst doctor`.")


def kind(device: str) -> str:
    """`cuda` of `cuda:1`."""
    return device.partition(":")[0]


def own_name(device: str) -> str:
    """What the device is called in the process that sees no other."""
    return kind(device) if kind(device) == "cuda" else device


def environment(device: str) -> Mapping[str, str]:
    """What a process must find in its environment to see this GPU alone; nothing for other devices."""
    name, _, number = device.partition(":")
    if name != "cuda" or not number:
        return {}
    seen = visible_gpus()
    # Numbers count what this process sees, which can be a part of what the machine has.
    if seen and not (number.isdecimal() and int(number) < len(seen)):
        raise UsageError(f"There is no device {device}: this machine has {len(seen)} GPUs, cuda:0 and up.")
    return {VISIBLE: seen[int(number)] if seen else number}


def every_gpu() -> tuple[str, ...]:
    """`cuda:0`, `cuda:1` ... of this machine."""
    return tuple(f"cuda:{number}" for number in range(len(visible_gpus())))


def visible_gpus() -> tuple[str, ...]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them; empty where there is none."""
    given = os.environ.get(VISIBLE)
    if given is not None:
        return tuple(part.strip() for part in given.split(",") if part.strip() not in ("", "-1", "NoDevFiles"))
    return tuple(str(number) for number in range(_installed_gpus()))


@lru_cache(maxsize=1)
def _installed_gpus() -> int:
    # Asking torch would load it and hold a context on the first GPU for as long as this process lives.
    try:
        told = subprocess.run(
            ["nvidia-smi", "--list-gpus"], capture_output=True, text=True, timeout=QUERY_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    return sum(line.startswith("GPU ") for line in told.stdout.splitlines())
