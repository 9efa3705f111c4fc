"""The GRU against the equations, written out one number at a time."""

from __future__ import annotations

import math
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pfungst.text.encoders import EncoderError
from pfungst.text.encoders.skip_thoughts import GRUWeights, TorchGRU, last_state


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def equations(w: GRUWeights, words: np.ndarray) -> list[float]:
    """Eq. 1-4 of the journal paper for one sentence, in plain loops; U_z = -U_u, because z is 1 - u."""
    e, h = w.Wx.shape
    state = [0.0] * h
    for x in words:
        r, z = [], []
        for j in range(h):
            gate_r = sum(float(w.U[i, j]) * state[i] for i in range(h)) + float(w.b[j])
            gate_r += sum(float(w.W[i, j]) * float(x[i]) for i in range(e))
            r.append(sigmoid(gate_r))
            gate_z = sum(-float(w.U[i, h + j]) * state[i] for i in range(h)) - float(w.b[h + j])
            gate_z += sum(-float(w.W[i, h + j]) * float(x[i]) for i in range(e))
            z.append(sigmoid(gate_z))
        new = []
        for j in range(h):
            inner = sum(float(w.Ux[i, j]) * (r[i] * state[i]) for i in range(h)) + float(w.bx[j])
            new.append(math.tanh(inner + sum(float(w.Wx[i, j]) * float(x[i]) for i in range(e))))
        state = [z[j] * new[j] + (1 - z[j]) * state[j] for j in range(h)]
    return state


def released(w: GRUWeights, words: np.ndarray) -> list[float]:
    """The released program: u keeps the old state, the reset gate comes after the product."""
    e, h = w.Wx.shape
    state = [0.0] * h
    for x in words:
        new_state = []
        for j in range(h):
            pre = [float(w.b[k]) + sum(float(w.U[i, k]) * state[i] for i in range(h)) for k in (j, h + j)]
            pre = [
                p + sum(float(w.W[i, k]) * float(x[i]) for i in range(e)) for p, k in zip(pre, (j, h + j), strict=True)
            ]
            r, u = sigmoid(pre[0]), sigmoid(pre[1])
            inner = r * sum(float(w.Ux[i, j]) * state[i] for i in range(h)) + float(w.bx[j])
            new = math.tanh(inner + sum(float(w.Wx[i, j]) * float(x[i]) for i in range(e)))
            new_state.append(u * state[j] + (1 - u) * new)
        state = new_state
    return state


def random_weights(rng: np.random.Generator, e: int, h: int) -> GRUWeights:
    shapes = [(e, 2 * h), (h, 2 * h), (e, h), (h, h), (2 * h,), (h,)]
    return GRUWeights(*(rng.standard_normal(shape).astype(np.float32) for shape in shapes))


@pytest.mark.parametrize("where", ["numpy", "torch"])
@pytest.mark.parametrize(("reset_after", "oracle"), [(False, equations), (True, released)])
@settings(max_examples=15, deadline=None)
@given(e=st.integers(1, 5), h=st.integers(1, 5), length=st.integers(1, 6), seed=st.integers(0, 999))
def test_states_follow_the_equations(where, reset_after, oracle, e, h, length, seed):
    rng = np.random.default_rng(seed)
    weights = random_weights(rng, e, h)
    x = rng.standard_normal((length, 3, e)).astype(np.float32)
    if where == "numpy":
        states = last_state(weights, x, reset_after=reset_after)
    else:
        states = TorchGRU(weights, reset_after=reset_after, device="cpu").last_state(x)
    assert states.dtype == np.float32
    np.testing.assert_allclose(states, [oracle(weights, x[:, i]) for i in range(3)], atol=2e-5)


def test_the_two_places_of_the_reset_gate_differ():
    rng = np.random.default_rng(0)
    weights, x = random_weights(rng, 3, 4), rng.standard_normal((5, 2, 3)).astype(np.float32)
    assert np.abs(last_state(weights, x, reset_after=True) - last_state(weights, x, reset_after=False)).max() > 0.01


def test_large_inputs_saturate_and_do_not_overflow():
    weights = random_weights(np.random.default_rng(0), 3, 4)
    with np.errstate(all="raise"):
        states = last_state(weights, np.full((2, 1, 3), 1e6, np.float32))
    assert np.isfinite(states).all()


def test_shapes_that_do_not_belong_together_are_refused():
    good = random_weights(np.random.default_rng(0), 3, 4)
    with pytest.raises(EncoderError, match=r"somewhere: U has the shape \(3, 8\), not \(4, 8\)"):
        GRUWeights.read({**asdict(good), "U": good.W}, "", "somewhere")
