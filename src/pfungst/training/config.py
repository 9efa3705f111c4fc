"""How a model is trained: one frozen record, saved beside the weights."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pfungst.core import UsageError

SCHEDULES = ("cosine", "linear", "constant", "step")
PRECISIONS = ("fp32", "bf16", "fp16")


@dataclass(frozen=True)
class FitConfig:
    """Everything the curve depends on, besides model and data."""

    steps: int = 0
    """Training steps in all; 0: as `epochs` says."""
    epochs: float = 10.0
    """Passes over the data."""
    batch: int = 64
    """Questions per step."""
    rate: float = 5e-4
    """Highest learning rate of AdamW."""
    weight_decay: float = 1e-4
    """On matrices and convolutions; biases, norms and embeddings are spared."""
    betas: tuple[float, float] = (0.9, 0.999)
    schedule: str = "cosine"
    """After the warm-up: `cosine` or `linear` down to `final`, `constant`, or `step` (a tenth after 60% and 85%)."""
    warmup: float = 0.02
    """Share of the steps over which the rate rises from 0."""
    final: float = 0.01
    """Last rate as a share of the highest."""
    clip: float = 5.0
    """Longest gradient; 0 for any length."""
    precision: str = "fp32"
    """`fp32`, or mixed: `bf16`, `fp16` (with a scaled loss; on a GPU). fp32 where the device cannot, with a warning."""
    average: float = 0.0
    """Decay of a moving average of the weights (0.999, say), which is then what is checked and kept; 0 for none."""
    check_every: int = 500
    """Steps between two looks at the validation data."""
    patience: int = 0
    """Checks without a better accuracy after which it stops; 0: never."""
    checkpoint_every: int = 500
    """Steps between two checkpoints."""
    log_every: int = 20
    """Steps of which one point of the curve is the mean."""
    seconds: float = 0.0
    """Time after which it stops, with a checkpoint; 0: never. The curve up to there is the same."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES:
            raise UsageError(f"There is no schedule {self.schedule!r}. There are: {', '.join(SCHEDULES)}.")
        if self.precision not in PRECISIONS:
            raise UsageError(f"There is no precision {self.precision!r}. There are: {', '.join(PRECISIONS)}.")
        for name in ("batch", "check_every", "checkpoint_every", "log_every"):
            if getattr(self, name) < 1:
                raise UsageError(f"The training setting {name} must be at least 1, not {getattr(self, name)}.")
        if self.steps < 0 or (not self.steps and self.epochs <= 0):
            raise UsageError("Say how long to train: steps or epochs above 0.")
        if self.rate <= 0 or not 0 <= self.average < 1:
            raise UsageError("The learning rate must be above 0, the average's decay in [0, 1).")

    def total(self, examples: int) -> int:
        """Steps in all."""
        return self.steps or max(1, round(self.epochs * self.per_epoch(examples)))

    def per_epoch(self, examples: int) -> int:
        """Steps of one pass; what does not fill a batch waits for the next pass."""
        return max(1, examples // self.batch)

    def rate_at(self, step: int, total: int) -> float:
        """Learning rate of a step, counted from 0: a function of the step alone, so there is nothing to restore."""
        warm = max(1, round(self.warmup * total))
        if step < warm:
            return self.rate * (step + 1) / warm
        done = (step - warm) / max(1, total - warm)
        if self.schedule == "constant":
            return self.rate
        if self.schedule == "step":
            return self.rate * 0.1 ** ((done >= 0.6) + (done >= 0.85))
        left = 1 - done if self.schedule == "linear" else (1 + math.cos(math.pi * done)) / 2
        return self.rate * (self.final + (1 - self.final) * left)
