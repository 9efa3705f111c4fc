"""The splitting iteration on a GPU: half-precision matrix products, one fused kernel for all that is element-wise.

Half precision (11 significant bits) costs nothing here that matters: theta and t - 2 clip(t) may be rounded freely, the
iteration forgets. Only the rounding of the dictionary stays, so it is split, rows = high + low, both in half precision;
the products of `low` with the averaged iterates are added as constants and renewed now and then. The whole then
converges to the solution for the unrounded dictionary at the price of half precision.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pfungst.lasso.splitting import Splitting

REFRESH = 100
"""Iterations between two corrections for the rounding of the dictionary."""
LIFT = 2048.0
"""What rounding leaves is 2^-11 of the entries; multiplied by this it has the full precision of a half again."""
PAD = 128
PIECES = 8
KERNEL_BLOCK = 2048
THIN = 1024
"""Up to this dimension moving v costs more than computing it, so it is written in half precision."""


@lru_cache(maxsize=1)
def _kernel() -> Any:
    """The fused update; None where triton is missing."""
    try:
        from pfungst.lasso.kernels import update
    except ImportError:
        return None
    return update


class Half:
    """The dictionary in half precision and the workspace of one batch."""

    def __init__(self, rows: Any, relaxation: float) -> None:
        import torch

        # A power of two, so that scaling is exact, that brings the entries well above the subnormal numbers.
        self.scale: float = float(2.0 ** torch.floor(-torch.log2(rows.abs().mean() + 1e-30)))
        self.relaxation = relaxation
        self.rows = rows
        # Matrix units want rows that start at multiples of sixteen bytes: 186,027 columns at a fifth of the speed else.
        n, d = rows.shape
        self.width, self.depth = -(-n // PAD) * PAD, -(-d // 8) * 8
        self.high = torch.zeros((self.width, self.depth), dtype=torch.float16, device=rows.device)
        self.high[:n, :d] = rows * self.scale
        self.v: Any = None
        self.y: Any = None
        self.v_constant: Any = None
        self.feedback_constant: Any = None

    def sweep(self, state: Splitting, theta: Any, weight: float) -> None:
        """One iteration of `state`, whose t and averages have one question a row."""
        import torch

        if self.y is None:
            self.y = torch.empty_like(state.t, dtype=torch.float16)
        if state.iterations % REFRESH == 0:
            self.refresh(state)
        self.v = None
        self.v = _product(self.pad(theta), self.high.T, exact=state.dictionary.d > THIN)
        question, column = state.asked.excluded
        free = None
        if len(question):
            v = self.v[question, column].float() / self.scale
            if self.v_constant is not None:
                v += self.v_constant[question, column].float()
            t = state.t[question, column]
            free = t + self.relaxation * (v - t)
        self.update(state, weight)
        if free is not None:
            # An excluded column has no constraint: its clip is the identity, its coefficient zero.
            state.t[question, column] = free
            state.mean_x[question, column] = 0.0
            self.y[question, column] = (-free).half()
        feedback = sum_of_products(self.y, self.high)
        state.feedback = feedback[:, : theta.shape[1]] / self.scale
        if self.feedback_constant is not None:
            state.feedback += self.feedback_constant

    def update(self, state: Splitting, weight: float) -> None:
        """The element-wise part: t, y = t - 2 clip(t) and, where `weight` is not zero, the average."""
        import torch

        low = -3.4e38 if state.low is None else state.low
        kernel = _kernel() if state.t.is_cuda else None
        if kernel is not None:
            count = state.t.numel()
            constant = self.v_constant if self.v_constant is not None else self.v
            kernel[(-(-count // KERNEL_BLOCK),)](
                state.t,
                self.v,
                constant,
                self.y,
                state.mean_x,
                count,
                1.0 / self.scale,
                self.relaxation,
                weight,
                low,
                HAS_CONSTANT=self.v_constant is not None,
                HAS_MEAN=weight > 0,
                SIZE=KERNEL_BLOCK,
                num_warps=8,
            )
            return
        v = self.v.float() / self.scale
        if self.v_constant is not None:
            v += self.v_constant
        state.t += self.relaxation * (v - torch.clip(state.t, low, 1.0))
        z = torch.clip(state.t, low, 1.0)
        self.y.copy_(state.t - 2.0 * z)
        if weight:
            state.mean_x += weight * (state.t - z - state.mean_x)

    def refresh(self, state: Splitting) -> None:
        """Products of the averages with what half precision leaves of the dictionary."""
        import torch

        theta = self.pad(state.mean_theta)
        v = _product(theta, self.high.T, exact=False).float() / self.scale
        balance = (state.mean_x - torch.clip(v, state.low, 1.0)).half()
        del v
        if self.v_constant is None:
            self.v_constant = torch.zeros_like(self.y)
        self.feedback_constant = torch.zeros_like(state.feedback)
        for start in range(0, self.rows.shape[0], 1 << 14):
            rows = self.rows[start : start + (1 << 14)]
            count, d = rows.shape
            lifted = torch.zeros((1 << 14, self.depth), dtype=torch.float16, device=rows.device)
            lifted[:count, :d] = (rows * self.scale - self.high[start : start + count, :d].float()) * LIFT
            unlift = LIFT * self.scale
            self.v_constant[:, start : start + count] = _product(theta, lifted.T)[:, :count] / unlift
            part = torch.nn.functional.pad(balance[:, start : start + count], (0, (1 << 14) - count))
            self.feedback_constant += _product(part, lifted)[:, :d] / unlift

    def pad(self, theta: Any) -> Any:
        """theta in half precision, with as many entries as the padded dictionary."""
        import torch

        return torch.nn.functional.pad(theta.half(), (0, self.depth - theta.shape[1]))

    def keep(self, where: Any) -> None:
        """Go on with some of the questions only."""
        self.v = self.y = None
        if self.v_constant is not None:
            self.v_constant = self.v_constant[where]
            self.feedback_constant = self.feedback_constant[where]


def sum_of_products(left: Any, right: Any) -> Any:
    """left @ right in float32, in pieces.

    Matrix units round towards zero as they accumulate. Over 186,027 terms that is a bias of some 1e-4, which would be
    the floor of the gap; over a piece of them it is nothing.
    """
    piece = left.shape[1] // PIECES // 8 * 8 or left.shape[1]
    total = _product(left[:, :piece], right[:piece])
    for start in range(piece, left.shape[1], piece):
        total += _product(left[:, start : start + piece], right[start : start + piece])
    return total


def _product(left: Any, right: Any, exact: bool = True) -> Any:
    """A half-precision product accumulated in float32, returned in float32 where `exact`, else in half precision."""
    import torch

    if left.device.type != "cuda":
        result = left.float() @ right.float()
        return result if exact else result.half()
    return torch.mm(left, right, out_dtype=torch.float32) if exact else left @ right
