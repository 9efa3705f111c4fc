"""How a model does on data."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from pfungst.models import Model
from pfungst.training.data import Data, batches
from pfungst.training.precision import autocast


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
