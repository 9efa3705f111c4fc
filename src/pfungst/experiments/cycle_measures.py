"""What a study of cycle consistency measures beside accuracy: where a model looks, and what its generator asks."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from pfungst.models import Model
from pfungst.training.cycle.generator import QuestionGenerator
from pfungst.training.cycle.loss import answer_chances
from pfungst.training.cycle.tap import Tap
from pfungst.training.data import ArrayData

_AT_ONCE = 512


@torch.no_grad()
def looks(model: Model, data: ArrayData, groups: NDArray[np.int64], device: str) -> NDArray[np.float16]:
    """(N,) how far a model looks at the same place in another wording as in the original, for Figure 4.

    The overlap of the two attention maps, sum of min(a, b) over the cells with a and b summing to 1, averaged over the
    glimpses: 1 where they are the same, as of the originals, which are the first of their groups, and 0 where they
    share no cell. Empty if the model has no attention.
    """
    found = np.ones(len(data), np.float16)
    _, first, number = np.unique(groups, return_index=True, return_inverse=True)
    others = np.setdiff1d(np.arange(len(data)), first)
    tap = Tap(model.eval())
    try:
        for start in range(0, len(others), _AT_ONCE):
            rows = others[start : start + _AT_ONCE]
            one, two = (_attention(model, tap, data, part, device) for part in (first[number[rows]], rows))
            if one is None or two is None:
                return found[:0]
            found[rows] = torch.minimum(one, two).sum(-1).mean(-1).cpu().numpy()
    finally:
        tap.close()
    return found


def _attention(model: Model, tap: Tap, data: ArrayData, rows: NDArray[np.int64], device: str) -> Tensor | None:
    """(B, glimpses, cells), each glimpse summing to 1."""
    weights = tap.attention(model(data.batch(rows).to(device)))
    if weights is None:
        return None
    weights = weights.float().clamp(min=0)
    return weights / weights.sum(-1, keepdim=True).clamp(min=1e-6)


@torch.no_grad()
def written(model: Model, generator: QuestionGenerator, data: ArrayData, device: str) -> NDArray[np.uint16]:
    """(N, T) the words of the question that G writes for every image and its right answer, greedily, without noise.

    Where the model cannot give the right answer, G is told what the model would say.
    """
    model.eval()
    generator.eval()
    tap = Tap(model)
    found = []
    try:
        for start in range(0, len(data), _AT_ONCE):
            batch = data.batch(np.arange(start, min(start + _AT_ONCE, len(data)))).to(device)
            output = model(batch)
            chances = answer_chances(model, output)
            assert batch.answer is not None
            answer = batch.answer
            if answer.ndim == 2:
                answer = torch.where(answer.amax(-1) > 0, answer.argmax(-1), -1)
            right = F.one_hot(answer.clamp(min=0), chances.shape[1]).to(chances.dtype)
            chances = torch.where((answer >= 0)[:, None], right, chances)
            condition = generator.condition(tap.features(output, generator.config.attended).float(), chances, 0.0)
            found.append(generator.write(condition, batch.question.shape[1], greedy=True).cpu())
    finally:
        tap.close()
    return torch.cat(found).numpy().astype(np.uint16)
