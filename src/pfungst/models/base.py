"""What every model of the zoo can do, what goes into it and what comes out."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PAD, UNKNOWN, START, END = 0, 1, 2, 3
"""Word numbers with a meaning of their own; words follow from 4 on."""


@dataclass(frozen=True)
class _Tensors:
    """Something made of tensors."""

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Self:
        """The same on a device."""
        parts = {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}
        moved = {name: part.to(device, non_blocking=non_blocking) for name, part in parts.items() if part is not None}
        return dataclasses.replace(self, **moved)


@dataclass(frozen=True)
class Scenes(_Tensors):
    """B scenes of up to N objects as numbers; objects that are not there are all 0 (the paper's empty token)."""

    attributes: Tensor
    """(B, N, 4) int64: colour, shape, size, material, each 1 + its place in `pfungst.world.constants`; 0 is empty."""
    positions: Tensor
    """(B, N, 2) float: x and y on the ground, in scene units."""
    pixels: Tensor | None = None
    """(B, N, 2) float: column and row of the centre as a share of width and height; NaN where it is unknown."""
    members: Tensor | None = None
    """(B, N, M) int8, for training alone: whether an object is in each of M sets that the question's program passes,
    -1 where there is no such set (see `pfungst.training.grounding`)."""

    @property
    def present(self) -> Tensor:
        """(B, N) bool: whether there is an object."""
        return self.attributes[..., 0] > 0


@dataclass(frozen=True)
class Batch(_Tensors):
    """B questions with whatever a model may look at. A model reads what its `reads` names and nothing else."""

    question: Tensor
    """(B, T) int64 word numbers, 0 behind the last word."""
    image: Tensor | None = None
    """(B, C, H, W): grid features (float), or pixels (uint8, C = 3) for models with a stem of their own."""
    regions: Tensor | None = None
    """(B, R, D) float: region features; rows of zeros are padding."""
    scene: Scenes | None = None
    choices: Tensor | None = None
    """(B, K, L) int64 word numbers of the choices; a row of zeros is no choice."""
    program: Tensor | None = None
    """(B, P) int64 program tokens in prefix order, 0 behind the last (see `pfungst.models.programs`)."""
    answer: Tensor | None = None
    """(B,) int64: number of the right answer (of the right choice, for models that choose), -1 where it is none the
    model can give. Or (B, A) float: a score in [0, 1] for every answer, as in VQA."""

    def __len__(self) -> int:
        return int(self.question.shape[0])

    @property
    def answered(self) -> Tensor:
        """`answer`, where it must be known."""
        if self.answer is None:
            raise ValueError("This batch has no answers.")
        return self.answer

    @property
    def choice_mask(self) -> Tensor:
        """(B, K) bool: which choices are there."""
        if self.choices is None:
            raise ValueError("This batch has no choices.")
        return (self.choices != PAD).any(-1)


@dataclass(frozen=True)
class Output:
    """What a model says."""

    logits: Tensor
    """(B, A) over the answers, or (B, K) over the choices (-inf where there is none)."""
    maps: dict[str, Tensor] = field(default_factory=dict)
    """What a report can draw, by name: attention over the grid (B, ..., H, W), over words (B, T), over regions ..."""
    extra: dict[str, Any] = field(default_factory=dict)
    """What losses need (program logits, detections, reconstructions). `stages`: what is known of every place after each
    step of the reasoning, (B, C, H, W) over the grid or (B, N, C) over the objects of the scene."""


@dataclass(frozen=True)
class Sizes:
    """What the data decides about a model."""

    words: int
    """Word numbers, the four special ones included."""
    answers: int
    image: tuple[int, int, int] = (3, 96, 128)
    """Channels, height and width of `Batch.image`."""
    regions: int = 0
    """Length of a region feature; 0 where the grid's cells serve as regions."""
    functions: int = 0
    """Program tokens, padding, start and end included; 0 where there are no programs."""


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
