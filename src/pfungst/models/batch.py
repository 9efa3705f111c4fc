"""What goes into a model of the zoo and what comes out: the same for all of them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Self

import torch
from torch import Tensor

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
