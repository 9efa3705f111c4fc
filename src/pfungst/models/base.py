"""What every model of the zoo can do."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pfungst.models.batch import Batch, Output, Sizes


class Model(nn.Module):
    """`model(batch)` gives an `Output`; `model.losses(batch, output)` what to minimise, by name.

    A subclass has a frozen dataclass `Config` whose defaults are the paper's sizes, and `PRESETS` with `compact`
    (on pixels, with a CNN of its own), `features` (compact, on features from outside) and `tiny` (for dry runs).
    """

    Config: ClassVar[Any]
    PRESETS: ClassVar[dict[str, Any]]
    reads: ClassVar[frozenset[str]] = frozenset({"question", "image"})
    """Parts of a Batch it looks at when it answers."""
    learns_from: frozenset[str] = frozenset({"answer"})
    """Parts of a Batch its losses need besides."""
    objective: ClassVar[str] = "softmax"
    """`softmax`: one answer is right. `sigmoid`: every answer has a score of its own. `choice`: choices are scored one
    by one with the binary logistic loss."""

    def __init__(self, sizes: Sizes, config: Any) -> None:
        super().__init__()
        self.sizes = sizes
        self.config = config

    def forward(self, batch: Batch) -> Output:
        raise NotImplementedError

    def losses(self, batch: Batch, output: Output) -> dict[str, Tensor]:
        """Scalars to be summed and minimised."""
        return {"answer": answer_loss(output.logits, batch.answered, self.objective)}

    def correct(self, batch: Batch, output: Output) -> Tensor:
        """(B,) in [0, 1]: the score of what it would answer."""
        answer = batch.answered
        chosen = output.logits.argmax(-1)
        if answer.ndim == 2:
            return answer.gather(1, chosen[:, None]).squeeze(1)
        return (chosen == answer).float()

    def drawings(self, batch: Batch, output: Output) -> dict[str, Tensor]:
        """All maps a report can draw: `output.maps`, and those that are too dear to make for every answer."""
        return output.maps

    @property
    def parameter_count(self) -> int:
        """Numbers that are learnt."""
        return sum(p.numel() for p in self.parameters() if p.requires_grad)


def answer_loss(logits: Tensor, answer: Tensor, objective: str, keep: Tensor | None = None) -> Tensor:
    """The mean loss of a batch, or of the rows (B,) that `keep` names, 0 where these are none.

    logits (B, A); answer (B,) numbers with -1 for unknown, or (B, A) scores. `sigmoid` sums the binary losses over the
    answers, as in the models that predict VQA's soft scores; `choice` averages them over the choices that are there,
    of all rows.
    """
    if objective == "softmax" and answer.ndim == 1:
        keep = answer >= 0 if keep is None else keep & (answer >= 0)
        each = F.cross_entropy(logits.float(), answer.clamp(min=0), reduction="none")
    elif objective == "softmax":
        share = answer / answer.sum(-1, keepdim=True).clamp(min=1e-6)
        each = -(share * F.log_softmax(logits.float(), -1)).sum(-1)
    else:
        there = torch.isfinite(logits)
        wanted = answer
        if answer.ndim == 1:
            wanted = F.one_hot(answer.clamp(min=0), logits.shape[1]).to(logits.dtype) * (answer >= 0)[:, None]
        finite = logits.masked_fill(~there, 0.0).float()
        losses = F.binary_cross_entropy_with_logits(finite, wanted.float(), reduction="none").masked_fill(~there, 0.0)
        if objective == "choice":
            return losses.sum() / there.sum().clamp(min=1)
        each = losses.sum(-1)
    return each.mean() if keep is None else (each * keep).sum() / keep.sum().clamp(min=1)


def start_bias(answers: int) -> float:
    """Bias with which sigmoid(logit) starts at 1 / answers, so that the first steps are not spent on saying no."""
    return -math.log(max(answers - 1, 1))
