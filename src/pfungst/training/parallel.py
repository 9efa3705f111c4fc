"""Data-parallel training: processes that share every step, as `torchrun` starts them.

Each process takes its share of the rows of a step, and the gradients are added up, each weighted by its share. So the
update is that of one process on the whole batch, up to rounding, where every loss is a mean over the rows and nothing
is dropped out (each process draws its own). Batch normalisation sees the rows of all, on any device.
"""

from __future__ import annotations

import atexit
import contextlib
import math
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import FrameType, MethodType
from typing import Any

import numpy as np
import torch

# Imported after a group was made, by an optimiser for instance, its default arguments would hold the group for ever,
# and the group's threads would now and then abort the process as it leaves.
import torch.distributed.nn.functional
from numpy.typing import NDArray
from torch import Tensor, distributed, nn

from pfungst.compute import ComputeError
from pfungst.compute.processes import leave_with_parent, told
from pfungst.training.interrupt import deferred

PATIENCE = timedelta(hours=2)
"""How long processes wait for each other: while one of them measures, the others do nothing."""
LOOK_SECONDS = 1.0
LEAVE_SECONDS = 30.0
"""How long they have to leave once one has failed."""
LEFT_ALONE = 75
"""Exit code of a process that failed because another did."""


class LeftAlone(ComputeError):
    """A process of the team has ended before its time."""


@dataclass(frozen=True)
class Team:
    """The processes that train one model. A process alone is a team of one."""

    rank: int = 0
    size: int = 1

    @classmethod
    def of_environment(cls, device: torch.device | str = "cpu") -> Team:
        """The team that `torchrun` has put this process into."""
        size = int(os.environ.get("WORLD_SIZE", "1"))
        if size == 1:
            return cls()
        if not distributed.is_initialized():
            on_gpu = torch.device(device).type == "cuda"
            distributed.init_process_group("nccl" if on_gpu else "gloo", timeout=PATIENCE)
            if not on_gpu:  # NCCL would wait for those whom a failure keeps from coming
                atexit.register(cls.end)
        return cls(distributed.get_rank(), distributed.get_world_size())

    @property
    def leads(self) -> bool:
        """Whether this process measures, writes and talks."""
        return self.rank == 0

    def device(self, device: torch.device | str) -> torch.device:
        """The GPU of this process; any other device as it is."""
        chosen = torch.device(device)
        if self.size > 1 and chosen.type == "cuda":
            chosen = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
            torch.cuda.set_device(chosen)
        return chosen

    def share(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of this process."""
        return rows[self.rank :: self.size]

    def add_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Add up the gradients of all processes; a parameter without one counts as zero."""
        if self.size == 1:
            return
        wanted = [parameter for parameter in parameters if parameter.requires_grad]
        for parameter in wanted:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        # One message for all: hundreds of small ones wait for each other.
        flat = torch.cat([parameter.grad.reshape(-1).float() for parameter in wanted])  # type: ignore[union-attr]
        _together(distributed.all_reduce, flat)
        start = 0
        for parameter in wanted:
            count = parameter.numel()
            assert parameter.grad is not None
            parameter.grad.copy_(flat[start : start + count].view_as(parameter))
            start += count

    def gather(self, sums: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The sums over all processes, at the one that leads; zeros at the others."""
        if self.size == 1:
            return dict(sums)
        added: dict[str, Tensor] = {}
        for name in sorted(sums):
            value = sums[name].clone()
            _together(distributed.all_reduce, value)
            added[name] = value if self.leads else torch.zeros_like(value)
        return added

    def agree(self, *flags: bool, device: torch.device) -> tuple[bool, ...]:
        """Each flag is true if it is true anywhere."""
        if self.size == 1:
            return flags
        votes = torch.tensor([float(flag) for flag in flags], device=device)
        _together(distributed.all_reduce, votes, distributed.ReduceOp.MAX)
        return tuple(vote > 0 for vote in votes.tolist())

    def told(self, number: float, device: torch.device) -> float:
        """The number of the process that leads."""
        if self.size == 1:
            return number
        # float64 is what it was measured in; a Mac, which has none, has no second GPU either.
        value = torch.tensor([number], dtype=torch.float64, device=device)
        _together(distributed.broadcast, value, 0)
        return float(value)

    @contextlib.contextmanager
    def leader_first(self) -> Iterator[None]:
        """What is made inside, in a folder that all see, is made by the process that leads; the others find it."""
        if self.size > 1 and not self.leads:
            _together(distributed.barrier)
        yield
        if self.size > 1 and self.leads:
            _together(distributed.barrier)

    @staticmethod
    def end() -> None:
        """Nothing more is done together; the threads that did it end."""
        if distributed.is_initialized():
            distributed.destroy_process_group()


def launched() -> bool:
    """Whether this process is one of a team that `torchrun` started."""
    return "WORLD_SIZE" in os.environ


def launch(size: int, work: Callable[[], None]) -> int:
    """Do the work in a team of processes on this machine, as `torchrun` would, but let only the one that leads speak,
    unless another fails first; returns its exit code."""
    store = distributed.TCPStore(  # type: ignore[attr-defined]
        "127.0.0.1", 0, is_master=True, wait_for_workers=False
    )
    team = {
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(store.port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",  # they meet here: a process that looks for a port can lose it again
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
    }
    context = multiprocessing.get_context("spawn")
    members: list[SpawnProcess] = []
    with tempfile.TemporaryDirectory() as folder:
        said = [Path(folder) / str(rank) for rank in range(size)]
        try:
            for rank in range(size):
                members.append(context.Process(target=_member, args=(work, said[rank] if rank else None)))
                with told({**team, "RANK": str(rank), "LOCAL_RANK": str(rank)}):
                    members[-1].start()
            with _passed_on(members):
                first = _await(members)
        finally:
            for member in members:
                member.kill()
                member.join()
        if first is None:
            return 0
        rank, code = members.index(first), first.exitcode or 0
        if code < 0:
            hint = " Out of memory is the usual reason." if code == -signal.SIGKILL else ""
            raise ComputeError(
                f"Process {rank + 1} of the {size} that train was ended by signal {-code}.{hint} Run the same command "
                "again to resume."
            )
        if code != members[0].exitcode:  # else the one that leads has said it
            sys.stderr.write(said[rank].read_text(errors="replace"))
        return 1 if code == LEFT_ALONE else code


def _member(work: Callable[[], None], said: Path | None) -> None:
    threading.Thread(target=leave_with_parent, daemon=True).start()
    if said is not None:
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT, 0o600), 2)
    try:
        work()
    except SystemExit as left:
        if isinstance(left.__context__, LeftAlone):
            sys.exit(LEFT_ALONE)
        raise


@contextlib.contextmanager
def _passed_on(members: list[SpawnProcess]) -> Iterator[None]:
    """SIGTERM, by which a cluster takes a machine back, often reaches only the first process of a command."""

    def pass_on(number: int, frame: FrameType | None) -> None:
        for member in members:
            member.terminate()

    before = signal.signal(signal.SIGTERM, pass_on)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _await(members: list[SpawnProcess]) -> SpawnProcess | None:
    """Wait for all; the first that failed. Then the others cannot go on, but may have a checkpoint to write."""
    first, until = None, math.inf
    with deferred():  # Ctrl-C reaches them, too: they decide together where to stop
        while (at_work := [member for member in members if member.exitcode is None]) and time.monotonic() < until:
            wait([member.sentinel for member in at_work], LOOK_SECONDS)
            first = first or _failed(members)
            if any(member.exitcode for member in members):
                until = min(until, time.monotonic() + LEAVE_SECONDS)
    return first or _failed(members) or next((member for member in members if member.exitcode), None)


def _failed(members: list[SpawnProcess]) -> SpawnProcess | None:
    """One that failed, and not because another did."""
    return next((member for member in members if member.exitcode not in (None, 0, LEFT_ALONE)), None)


def _together(operation: Callable[..., Any], *arguments: Any) -> None:
    """What all processes of the team do at the same time."""
    try:
        operation(*arguments)
    except RuntimeError as error:
        raise LeftAlone("Another process of this training has ended. Run the same command again to resume.") from error


class _Added(torch.autograd.Function):
    """The sum over all processes; so is its gradient."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        added = value.clone()
        _together(distributed.all_reduce, added)
        return added

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        added = gradients[0].contiguous().clone()
        _together(distributed.all_reduce, added)
        return added


def _added(value: Tensor) -> Tensor:
    result: Tensor = _Added.apply(value)  # type: ignore[no-untyped-call]
    return result


class Counted:
    """Whether the rows of this process count in the step at hand: one that has none works on a row of another."""

    def __init__(self) -> None:
        self.rows = True


def share_statistics(modules: list[nn.Module], team: Team) -> Counted:
    """Let every batch normalisation in training see the rows of the whole team; gradients flow through its sums."""
    counted = Counted()
    for module in modules if team.size > 1 else []:
        for part in module.modules():
            if isinstance(part, nn.modules.batchnorm._BatchNorm):
                part.forward = MethodType(_over_all(counted), part)  # type: ignore[method-assign]
    return counted


def _over_all(counted: Counted) -> Callable[..., Tensor]:
    def forward(self: nn.modules.batchnorm._BatchNorm, x: Tensor) -> Tensor:
        if not (self.training or self.running_mean is None):
            return nn.functional.batch_norm(
                x, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps
            )
        dims = [0, *range(2, x.dim())]
        shape = [1, -1, *[1] * (x.dim() - 2)]
        counts = float(counted.rows)
        exact = x.float()
        number = _added(exact.new_tensor(counts * exact.numel() / exact.shape[1]))
        mean = _added(exact.sum(dims) * counts) / number
        away = exact - mean.view(shape)
        variance = _added((away * away).sum(dims) * counts) / number
        if self.training and self.running_mean is not None and self.running_var is not None:
            with torch.no_grad():
                if self.num_batches_tracked is not None:
                    self.num_batches_tracked.add_(1)
                share = self.momentum if self.momentum is not None else 1.0 / float(self.num_batches_tracked or 1)
                unbiased = variance * (number / (number - 1).clamp(min=1))
                self.running_mean.lerp_(mean.to(self.running_mean.dtype), share)
                self.running_var.lerp_(unbiased.to(self.running_var.dtype), share)
        out = away * torch.rsqrt(variance + self.eps).view(shape)
        if self.weight is not None:
            out = out * self.weight.view(shape) + self.bias.view(shape)
        return out.to(x.dtype)

    return forward
