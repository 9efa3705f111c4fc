"""Batch normalisation over the rows of all processes that share a step, on any device."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, distributed, nn

if TYPE_CHECKING:
    from pfungst.training.parallel import Team


class _Added(torch.autograd.Function):
    """The sum over all processes; so is its gradient."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        added = value.clone()
        distributed.all_reduce(added)
        return added

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        added = gradients[0].contiguous().clone()
        distributed.all_reduce(added)
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
