"""The gated recurrent unit of the skip-thoughts encoder, Eq. 1-4 of Assessing the Robustness of VQA.

The papers write the state update as (Eq. 3, 4), with z the share of the new state

    h' = tanh(U (r * h) + W x),    h = z * h' + (1 - z) * h

The released skip-thoughts program, and so the released weights, differ from their own paper in two ways: the gate
u = 1 - z is the share of the *old* state (the same function with the signs of its weights turned), and the reset gate
is applied after the product: h' = tanh(r * (U h) + W x). `reset_after` chooses that, as torch and cuDNN calculate it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from pfungst.text.encoders.base import EncoderError, FloatArray

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class GRUWeights:
    """Weights in the published layout, for input size `e` and state size `h`. Gates stand as [reset, update]."""

    W: FloatArray
    """(e, 2h): input to gates."""
    U: FloatArray
    """(h, 2h): state to gates."""
    Wx: FloatArray
    """(e, h): input to new state."""
    Ux: FloatArray
    """(h, h): state to new state."""
    b: FloatArray
    """(2h,)"""
    bx: FloatArray
    """(h,)"""

    @classmethod
    def read(cls, arrays: Mapping[str, Any], prefix: str, where: str) -> GRUWeights:
        """Those of the arrays whose names begin with the prefix; shapes that do not belong together are refused."""
        weights = cls(*(arrays[f"{prefix}{field.name}"].astype(np.float32) for field in fields(cls)))
        e, h = weights.Wx.shape if weights.Wx.ndim == 2 else (0, 0)
        wanted = {"W": (e, 2 * h), "U": (h, 2 * h), "Wx": (e, h), "Ux": (h, h), "b": (2 * h,), "bx": (h,)}
        for name, shape in wanted.items():
            found = getattr(weights, name).shape
            if found != shape or not h:
                raise EncoderError(f"{where}: {name} has the shape {found}, not {shape}.")
        return weights

    @property
    def size(self) -> int:
        """Size of the state."""
        return int(self.Ux.shape[0])


def last_state(weights: GRUWeights, x: FloatArray, *, reset_after: bool = True) -> FloatArray:
    """State after the last word, in numpy.

    `x`: (words, sentences, e), sentences of one length. Returns (sentences, h); the state before the first word is 0.
    """
    h = weights.size
    gates_in = x @ weights.W + weights.b
    new_in = x @ weights.Wx + weights.bx
    state = np.zeros((x.shape[1], h), np.float32)
    recurrent = np.concatenate([weights.U, weights.Ux], axis=1) if reset_after else weights.U
    for gate_in, one_in in zip(gates_in, new_in, strict=True):
        product = state @ recurrent
        gates = _sigmoid(product[:, : 2 * h] + gate_in)
        reset, update = gates[:, :h], gates[:, h:]
        if reset_after:
            new = np.tanh(reset * product[:, 2 * h :] + one_in)
        else:
            new = np.tanh((reset * state) @ weights.Ux + one_in)
        state = update * state + (1 - update) * new
    return state


def _sigmoid(x: FloatArray) -> FloatArray:
    # The tanh form never overflows.
    gates: FloatArray = 0.5 * (1 + np.tanh(0.5 * x))
    return gates


def fill(gru: torch.nn.GRU, weights: GRUWeights) -> None:
    """Put the weights into torch's GRU, which applies the reset gate after the product."""
    import torch

    inputs, states, bias, second = gru.all_weights[0]
    with torch.no_grad():
        inputs.copy_(torch.from_numpy(np.concatenate([weights.W, weights.Wx], 1).T))
        states.copy_(torch.from_numpy(np.concatenate([weights.U, weights.Ux], 1).T))
        bias.copy_(torch.from_numpy(np.concatenate([weights.b, weights.bx])))
        second.zero_()


class TorchGRU:
    """The same in torch, on any device."""

    def __init__(self, weights: GRUWeights, *, reset_after: bool, device: str) -> None:
        import torch

        self.device = device
        self.reset_after = reset_after
        self.tensors = {
            field.name: torch.from_numpy(np.ascontiguousarray(getattr(weights, field.name))).to(device)
            for field in fields(weights)
        }
        self.fused = None
        if reset_after:
            self.fused = torch.nn.GRU(weights.Wx.shape[0], weights.size, device=device).requires_grad_(False)
            fill(self.fused, weights)

    def last_state(self, x: FloatArray) -> FloatArray:
        """As `last_state`: (words, sentences, e) -> (sentences, h)."""
        import torch

        inputs = torch.from_numpy(x.copy()).to(self.device)  # torch has no reversed views
        with torch.inference_mode():
            if self.fused is not None:
                state = self.fused(inputs)[1][0]
            else:
                state = equation_states(self.tensors, inputs)[-1]
        return np.asarray(state.cpu().numpy(), dtype=np.float32)


def equation_states(t: dict[str, Any], x: torch.Tensor) -> torch.Tensor:
    """All states (words, sentences, h) with the reset gate where Eq. 3 has it; `t` in the published layout."""
    import torch

    h = t["Ux"].shape[0]
    state = x.new_zeros(x.shape[1], h)
    gates_in, new_in = x @ t["W"] + t["b"], x @ t["Wx"] + t["bx"]
    states = []
    for gate_in, one_in in zip(gates_in, new_in, strict=True):
        reset, update = torch.sigmoid(state @ t["U"] + gate_in).chunk(2, dim=1)
        new = torch.tanh((reset * state) @ t["Ux"] + one_in)
        state = update * state + (1 - update) * new
        states.append(state)
    return torch.stack(states)
