"""Convolutions in which every item of a batch has weights of its own: one of a bank."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

CHUNK = 2**28
"""Numbers of the unfolded image that are held at once."""


class ConvBank(nn.Module):
    """As many convolutions as there are tokens, each initialised as nn.Conv2d; the size of the grid stays.

    x (n, C, H, W), which (n,) the convolution of each -> (n, O, H, W).
    """

    def __init__(self, count: int, before: int, after: int, kernel: int, dilation: int = 1) -> None:
        super().__init__()
        bound = (before * kernel * kernel) ** -0.5
        self.weight = nn.Parameter(torch.empty(count, after, before, kernel, kernel).uniform_(-bound, bound))
        # Flat, so that an optimizer that spares vectors spares it, as it does the bias of a single convolution.
        self.bias = nn.Parameter(torch.empty(count * after).uniform_(-bound, bound))
        self.dilation = dilation

    def forward(self, x: Tensor, which: Tensor) -> Tensor:
        return conv_each(x, self.weight, self.bias.view(len(self.weight), -1), which, self.dilation)


def conv_each(x: Tensor, weight: Tensor, bias: Tensor, which: Tensor, dilation: int = 1) -> Tensor:
    """y[i] = the convolution of x[i] with weight[which[i]], plus bias[which[i]], with zeros around the grid.

    x (n, C, H, W), weight (T, O, C, k, k) with odd k, bias (T, O), which (n,) -> (n, O, H, W). On a GPU it is one
    product of n pairs of matrices whatever `which` is; on a CPU one convolution for every run of equal numbers.
    """
    if x.device.type != "cpu":
        if torch.is_autocast_enabled(x.device.type):
            x = x.to(torch.get_autocast_dtype(x.device.type))
        return unfolded_conv_each(x, weight, bias, which, dilation)
    padding = dilation * (weight.shape[-1] // 2)
    numbers, counts = torch.unique_consecutive(which, return_counts=True)
    parts = zip(torch.split(x, counts.tolist()), numbers.tolist(), strict=True)
    # Unbound at once: going back, an index would make a bank of zeros for every single part.
    weights, biases = weight.unbind(), bias.unbind()
    done = [F.conv2d(part, weights[i], biases[i], padding=padding, dilation=dilation) for part, i in parts]
    return done[0] if len(done) == 1 else torch.cat(done)


def unfolded_conv_each(x: Tensor, weight: Tensor, bias: Tensor, which: Tensor, dilation: int = 1) -> Tensor:
    """`conv_each` as products of matrices, in the number format of x."""
    result: Tensor = _Unfolded.apply(x, weight, bias, which, dilation)  # type: ignore[no-untyped-call]
    return result


class _Unfolded(torch.autograd.Function):
    """Keeps x instead of its unfolding, which is k * k times as large, and needs no scattering to go back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, which: Tensor, dilation: int) -> Tensor:
        cells, cast = _edged(x, weight.shape[-1]), weight.to(x.dtype)
        ctx.save_for_backward(cells, cast, which)
        ctx.dilation, ctx.grid, ctx.dtypes = dilation, x.shape[2:], (weight.dtype, bias.dtype)
        return _correlate(cells, ctx.grid, cast, which, dilation, bias.to(x.dtype))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None, None]:
        (grad,) = gradients
        cells, weight, which = ctx.saved_tensors
        count, kernel = len(weight), weight.shape[-1]
        to_x, to_weight, to_bias = None, None, None
        if ctx.needs_input_grad[0]:
            # The gradient of a convolution is the convolution of the gradient with the kernel turned round.
            turned = (weight.flip(3, 4) if kernel > 1 else weight).transpose(1, 2)
            to_x = _correlate(_edged(grad, kernel), ctx.grid, turned, which, ctx.dilation)
        # Sums over the items of a convolution as a product with zeros and ones: no races, full precision inside.
        member = _identity(count, grad.dtype, grad.device).index_select(1, which)
        if ctx.needs_input_grad[1]:
            for rows in _chunks(cells, kernel):
                columns = _columns(cells[rows], ctx.grid, kernel, ctx.dilation)
                each = torch.bmm(grad[rows].flatten(2), columns.transpose(1, 2))
                part = (member[:, rows] @ each.flatten(1)).to(ctx.dtypes[0])
                to_weight = part if to_weight is None else to_weight + part
            to_weight = None if to_weight is None else to_weight.view(weight.shape)
        if ctx.needs_input_grad[2]:
            to_bias = (member @ grad.sum((2, 3))).to(ctx.dtypes[1])
        return to_x, to_weight, to_bias, None, None


def _correlate(
    cells: Tensor, grid: torch.Size, weight: Tensor, which: Tensor, dilation: int, bias: Tensor | None = None
) -> Tensor:
    """What `conv_each` gives, of edged cells."""
    flat, done = weight.flatten(2), []
    for rows in _chunks(cells, weight.shape[-1]):
        columns, chosen = _columns(cells[rows], grid, weight.shape[-1], dilation), which[rows]
        kernels = flat.index_select(0, chosen)
        if bias is None:
            done.append(torch.bmm(kernels, columns))
        else:
            done.append(torch.baddbmm(bias.index_select(0, chosen)[..., None], kernels, columns))
    return torch.unflatten(done[0] if len(done) == 1 else torch.cat(done), 2, grid)


def _chunks(cells: Tensor, kernel: int) -> Iterator[slice]:
    step = max(1, CHUNK // (cells[0].numel() * kernel * kernel))
    for start in range(0, len(cells), step):
        yield slice(start, start + step)


def _edged(x: Tensor, kernel: int) -> Tensor:
    """The cells of the grid in a row, and behind them a zero where the kernel can see past the edge."""
    return x.flatten(2) if kernel == 1 else F.pad(x.flatten(2), (0, 1))


def _columns(cells: Tensor, grid: torch.Size, kernel: int, dilation: int) -> Tensor:
    """What the kernel sees at every cell: edged cells (n, C, ...) -> (n, C * k * k, H * W)."""
    if kernel == 1:
        return cells
    seen = cells.index_select(2, _neighbours(grid[0], grid[1], kernel, dilation, cells.device))
    return seen.view(cells.shape[0], cells.shape[1] * kernel * kernel, -1)


@cache
def _identity(size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.eye(size, dtype=dtype, device=device)


@cache
def _neighbours(height: int, width: int, kernel: int, dilation: int, device: torch.device) -> Tensor:
    """(k * k * H * W,) number of the cell that each part of the kernel sees; H * W outside the grid."""
    steps = (np.arange(kernel) - kernel // 2) * dilation
    rows = steps[:, None, None, None] + np.arange(height)[:, None]
    columns = steps[:, None, None] + np.arange(width)
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    numbers = np.where(inside, rows * width + columns, height * width).ravel()
    # It outlives the call, so it must be fit for training even where the first call only answers.
    with torch.inference_mode(False):
        return torch.from_numpy(numbers).to(device)
