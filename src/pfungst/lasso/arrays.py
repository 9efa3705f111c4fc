"""The few operations that differ between NumPy and torch, so that everything above is written once.

All arrays of the solver hold one question a row: coefficients (q, n), duals (q, d), and the dictionary one column of
the published `A` a row, (n, d). NumPy and torch then share one spelling for nearly everything (`xp.clip`, `xp.where`,
`@`, `swapaxes`, `sum(axis=...)`); what is left is here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pfungst.core.errors import PfungstError

LEAF = 32
"""Largest block that the batched Cholesky of a GPU factorises directly; larger ones are split into matrix products."""


@dataclass(frozen=True)
class Arrays:
    """An array library and the device it computes on."""

    xp: Any
    """The module `numpy` or `torch`."""
    device: Any = None
    """A `torch.device`, None for NumPy."""

    @property
    def is_numpy(self) -> bool:
        return self.xp is np

    @property
    def is_cuda(self) -> bool:
        return self.device is not None and self.device.type == "cuda"

    def free_bytes(self) -> int:
        """Memory that may be used: what is free on a GPU; a modest share of a machine's on a CPU."""
        if self.is_cuda:
            torch = self.xp
            reserved = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
            return int(torch.cuda.mem_get_info(self.device)[0] + reserved)
        return 4 << 30

    def array(self, values: Any, dtype: str = "float64") -> Any:
        """`values` as an array of `dtype` on the device; no copy where none is needed."""
        if self.is_numpy:
            if hasattr(values, "detach"):
                values = values.detach().cpu().numpy()
            return np.asarray(values, dtype=dtype)
        kind = getattr(self.xp, dtype)
        if hasattr(values, "detach"):
            return values.detach().to(device=self.device, dtype=kind)
        return self.xp.as_tensor(np.asarray(values), device=self.device).to(kind)

    def zeros(self, shape: tuple[int, ...], dtype: str = "float64") -> Any:
        if self.is_numpy:
            return np.zeros(shape, dtype=dtype)
        return self.xp.zeros(shape, dtype=getattr(self.xp, dtype), device=self.device)

    def eye(self, size: int) -> Any:
        if self.is_numpy:
            return np.eye(size)
        return self.xp.eye(size, dtype=self.xp.float64, device=self.device)

    def host(self, values: Any) -> np.ndarray[Any, Any]:
        """`values` as a NumPy array in the memory of this process."""
        if self.is_numpy:
            return np.asarray(values)
        result: np.ndarray[Any, Any] = values.detach().cpu().numpy()
        return result

    def copy(self, values: Any) -> Any:
        return values.copy() if self.is_numpy else values.clone()

    def contiguous(self, values: Any) -> Any:
        return np.ascontiguousarray(values) if self.is_numpy else values.contiguous()

    def cast(self, values: Any, dtype: str) -> Any:
        return values.astype(dtype) if self.is_numpy else values.to(getattr(self.xp, dtype))

    def largest(self, scores: Any, k: int) -> Any:
        """Positions (q, k) of the k largest entries of every row, in no particular order."""
        if k >= scores.shape[1]:
            rows = np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
            return self.array(rows.copy(), "int64")
        if self.is_numpy:
            return np.argpartition(scores, scores.shape[1] - k, axis=1)[:, -k:]
        return self.xp.topk(scores, k, dim=1, sorted=False).indices

    def take(self, values: Any, where: Any) -> Any:
        """`values[i, where[i, j]]` for all i, j."""
        if self.is_numpy:
            return np.take_along_axis(values, where, axis=1)
        return self.xp.gather(values, 1, where)

    def put(self, values: Any, where: Any, entries: Any) -> None:
        """`values[i, where[i, j]] = entries[i, j]` in place."""
        if self.is_numpy:
            np.put_along_axis(values, where, entries, axis=1)
        else:
            values.scatter_(1, where, entries)

    def factor(self, matrix: Any) -> tuple[Any, Any]:
        """Factorise symmetric positive definite matrices (q, k, k) for `solve`; says which were definite (q,).

        The matrices may be overwritten.
        """
        if self.is_numpy:
            from pfungst.lasso.lapack import cholesky

            good = np.array([cholesky(one) for one in matrix], dtype=bool)
            matrix[~good] = np.eye(matrix.shape[-1])
            return matrix, good
        if self.is_cuda and matrix.shape[-1] > LEAF:
            factor = self.xp.zeros_like(matrix)
            self._inverse_cholesky(matrix, factor)
        else:
            factor, info = self.xp.linalg.cholesky_ex(matrix)
            factor = self.xp.where((info != 0)[:, None, None], float("nan"), factor)
        good = self.xp.isfinite(self.xp.diagonal(factor, dim1=1, dim2=2)).all(dim=1)
        factor[~good] = self.eye(matrix.shape[-1])
        return factor, good

    def solve(self, factor: Any, right: Any) -> Any:
        """Solve for one right-hand side (q, k) a matrix."""
        if self.is_numpy:
            from pfungst.lasso.lapack import cholesky_solve

            return np.stack([cholesky_solve(one, row) for one, row in zip(factor, right, strict=True)])
        column = right[..., None]
        if self.is_cuda and factor.shape[-1] > LEAF:
            return (factor.swapaxes(1, 2) @ (factor @ column))[..., 0]
        return self.xp.cholesky_solve(column, factor)[..., 0]

    def _inverse_cholesky(self, matrix: Any, inverse: Any) -> None:
        """The inverses of the Cholesky factors of (q, k, k), by halving, into `inverse`, which holds zeros.

        A GPU factorises many matrices of a few hundred rows slowly and multiplies them fast; halving turns all but
        the diagonal blocks into products.
        """
        size = matrix.shape[-1]
        if size <= LEAF:
            lower, info = self.xp.linalg.cholesky_ex(matrix)
            lower = self.xp.where((info != 0)[:, None, None], float("nan"), lower)
            eye = self.eye(size).expand_as(lower)
            inverse[:] = self.xp.linalg.solve_triangular(lower, eye, upper=False)
            return
        half = LEAF * -(-(size // 2) // LEAF)
        top, bottom = inverse[:, :half, :half], inverse[:, half:, half:]
        self._inverse_cholesky(matrix[:, :half, :half], top)
        below = matrix[:, half:, :half] @ top.swapaxes(1, 2)
        rest = self.xp.baddbmm(matrix[:, half:, half:], below, below.swapaxes(1, 2), alpha=-1)
        self._inverse_cholesky(rest, bottom)
        inverse[:, half:, :half] = (bottom @ (below @ top)).neg_()

    def weighted_gram(self, columns: Any, weights: Any) -> Any:
        """`columns' diag(weights) columns` for columns (q, m, d) and weights (q, m) >= 0: (q, d, d)."""
        if not self.is_numpy:
            return (columns * weights[..., None]).swapaxes(1, 2) @ columns
        out = np.empty((columns.shape[0], columns.shape[2], columns.shape[2]))
        for i, (block, weight) in enumerate(zip(columns, weights, strict=True)):
            # Late in an interior point method most weights are many orders below the rest, and add nothing but time.
            heavy = np.flatnonzero(weight > 1e-13 * weight.max())
            scaled = block[heavy] * np.sqrt(weight[heavy])[:, None]
            np.matmul(scaled.T, scaled, out=out[i])
        return out


def arrays_of(*values: Any, device: str | None = None) -> Arrays:
    """The library that `values` belong to; torch on `device` where one is named."""
    torch_values = [value for value in values if hasattr(value, "detach")]
    if device is None and not torch_values:
        return Arrays(np)
    try:
        import torch
    except ImportError as error:
        raise PfungstError(
            "The LASSO solver was asked for a torch device, but torch is not installed: pip install 'pfungst[torch]', "
            "or leave out `device` to compute with NumPy."
        ) from error
    where = torch.device(device) if device is not None else torch_values[0].device
    if where.type == "cuda" and not torch.cuda.is_available():
        raise PfungstError(
            f"The device {device!r} is not available here: torch sees no GPU. Use device='cpu' or leave it out."
        )
    return Arrays(torch, where)
