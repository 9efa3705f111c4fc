"""FP: the failure prediction module (Section 5.4 of Cycle-Consistency for Robust VQA), on top of a frozen model.

Given image, question and the model's answer A', is A' right? The module reads what the frozen model F makes of them:
the attended image, its reading of the question, and the distribution over answers.

    [W_v v, W_q q, W_a a] -> ReLU -> hidden -> ReLU -> sigmoid: chance that A' is right

The paper does not describe the module beyond its inputs; the layers are ours.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pfungst.core import DataError
from pfungst.models import Batch, Model, Output, Sizes
from pfungst.training.config import FitConfig
from pfungst.training.cycle.loss import answer_chances
from pfungst.training.cycle.tap import Tap
from pfungst.training.data import Data, batches
from pfungst.training.loop import fit

HIDDEN, DROPOUT = 128, 0.2


@dataclass(frozen=True)
class Seen:
    """What a frozen model made of N questions."""

    features: NDArray[np.float32]
    """(N, D): attended image, question, distribution over answers, side by side, each scaled to be of length 1."""
    confidence: NDArray[np.float64]
    """(N,) the model's own: the chance of the answer it gives."""
    correct: NDArray[np.float64]
    """(N,) the score of that answer."""


@torch.no_grad()
def look(model: Model, data: Data, batch: int = 256, device: torch.device | str = "cpu") -> Seen:
    """Ask a model everything, its weights untouched, and note what it saw."""
    if not len(data):
        raise DataError("There is nothing to ask: the data is empty.")
    model = model.to(device).eval()
    parts: list[list[Tensor]] = [[], [], []]
    with closing(Tap(model)) as tap:
        for asked in batches(data, batch, device):
            output = model(asked)
            chances = answer_chances(model, output)
            read = [tap.features(output), *([tap.encoding] if tap.encoding is not None else []), chances]
            parts[0].append(torch.cat([nn.functional.normalize(one.float(), dim=-1) for one in read], -1).cpu())
            parts[1].append(chances.amax(-1).cpu())
            parts[2].append(model.correct(asked, output).cpu())
    features, confidence, correct = (torch.cat(one).numpy() for one in parts)
    return Seen(features.astype(np.float32), confidence.astype(np.float64), correct.astype(np.float64))


class FailurePredictor(Model):
    """features (B, 1, D) in `Batch.regions` -> one logit: A' is right."""

    objective = "sigmoid"

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes, None)
        self.layers: nn.Sequential = nn.Sequential(
            nn.Linear(sizes.regions, HIDDEN), nn.ReLU(), nn.Dropout(DROPOUT),
            nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Dropout(DROPOUT), nn.Linear(HIDDEN, 1),
        )  # fmt: skip

    def forward(self, batch: Batch) -> Output:
        if batch.regions is None:
            raise ValueError("The failure predictor reads features, and the batch has none.")
        return Output(self.layers(batch.regions[:, 0]))

    def correct(self, batch: Batch, output: Output) -> Tensor:
        """(B,) whether it told right answers from wrong ones."""
        return ((output.logits[:, 0] > 0) == (batch.answered[:, 0] > 0)).float()

    @torch.no_grad()
    def believe(self, seen: Seen) -> NDArray[np.float64]:
        """(N,) chance that the model's answer is right."""
        self.eval()
        device = next(self.parameters()).device
        logits: Tensor = self.layers(torch.from_numpy(seen.features).to(device))[:, 0]
        return logits.sigmoid().double().cpu().numpy()


@dataclass(frozen=True)
class _Verdicts:
    """What the frozen model saw, as training data."""

    seen: Seen

    def __len__(self) -> int:
        return len(self.seen.correct)

    def batch(self, rows: NDArray[np.int64]) -> Batch:
        right = torch.from_numpy((self.seen.correct[rows] > 0).astype(np.float32))[:, None]
        features = torch.from_numpy(self.seen.features[rows])[:, None]
        return Batch(torch.zeros(len(rows), 1, dtype=torch.int64), regions=features, answer=right)


def fit_predictor(
    seen: Seen, held: Seen | None = None, *, fit_config: FitConfig | None = None, device: str = "cpu"
) -> FailurePredictor:
    """Train the module on what a frozen model saw; F cannot change, it is not there.

    Give it questions F was not trained on: on its own training data a model is hardly ever wrong. It keeps the pass
    that was best on `held`, where there are such questions, else the last.
    """
    fit_config = fit_config or FitConfig(epochs=30, batch=64, rate=1e-3, weight_decay=1e-3)
    fit_config = replace(fit_config, check_every=fit_config.per_epoch(len(seen.correct)))
    sizes = Sizes(words=1, answers=1, regions=seen.features.shape[1])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(fit_config.seed)
        predictor = FailurePredictor(sizes)
    validation = _Verdicts(held) if held else None
    fit(predictor, _Verdicts(seen), validation=validation, config=fit_config, device=device, tensorboard=False)
    return predictor
