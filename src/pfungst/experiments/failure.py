"""Table 4 of Cycle-Consistency for Robust VQA, and beyond it: how well a model knows when it is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pfungst.core import Table
from pfungst.core.files import jsonable
from pfungst.core.stats import interval_of
from pfungst.core.types import Progress
from pfungst.experiments.base import Experiment, argument, option
from pfungst.scores.selective import RISKS, best_threshold, calibration_error, failure_scores, risk_coverage

if TYPE_CHECKING:
    from pfungst.training import ArrayData, FitConfig

COLUMNS = (
    "precision",
    "recall",
    "F1",
    "F1 if all are believed",
    "AUGRC",
    *(f"coverage at {risk:.0%} risk" for risk in RISKS),
    "ECE",
)

SPLITS = (
    "Half of the images train FP, a quarter stops its training and sets both thresholds, the last quarter judges both."
)


@dataclass(frozen=True)
class FailureStudy:
    """Table 4: do models know when they are wrong? Confidence threshold and the FP module, on data new to them.

    Half of the images train FP, a quarter stops its training and sets both thresholds, a quarter judges both.
    """

    models: tuple[str, ...] = argument()
    """Folders of trained models: the base, the cycle-trained one."""
    data: str = option("world", "--data", "-d")
    """Data set whose questions are asked."""
    limit: int | None = None
    """Only the first N questions."""
    images: Path | None = None
    """Folder or archive of the images, where it is not beside the data."""
    skip_bad: bool = False
    """Leave bad records out and count them."""
    device: str = "cpu"
    """cpu, cuda, cuda:1, mps."""
    seed: int = 0
    """Seed of every random choice."""


@dataclass(frozen=True)
class Judged:
    """One way of telling failures, judged on questions it was not made on."""

    name: str
    """`confidence` or `FP`."""
    precision: float
    recall: float
    f1: float
    """Of "this answer is right", at the threshold that was best on other images."""
    f1_all: float
    """Of believing every answer, which takes no confidence: 2a / (1 + a), where a is the share that is right."""
    threshold: float
    augrc: float
    coverage: tuple[float, ...]
    """At 1%, 5% and 10% risk."""
    ece: float
    """Expected calibration error."""
    n: int
    f1_low: float
    f1_high: float
    """95% interval over images."""

    def cells(self) -> tuple[float, ...]:
        return (self.precision, self.recall, self.f1, self.f1_all, self.augrc, *self.coverage, self.ece)


def judge(
    name: str,
    chosen_on: tuple[NDArray[np.float64], NDArray[np.float64]],
    confidence: NDArray[np.float64],
    correct: NDArray[np.float64],
    pictures: NDArray[np.int64],
    seed: int = 0,
) -> Judged:
    """Measure a confidence; `chosen_on` (confidence, correct) are other questions, which set the threshold."""
    threshold = best_threshold(*chosen_on)
    believed = confidence >= threshold
    scores = failure_scores(believed.tolist(), correct.tolist())
    right = correct > 0
    span = interval_of(np.stack([believed & right, believed, right]).astype(np.float64), pictures, _f1)
    curve = risk_coverage(confidence, correct)
    return Judged(
        name,
        scores.precision,
        scores.recall,
        scores.f1,
        failure_scores([True] * len(correct), correct.tolist()).f1,
        threshold,
        curve.augrc,
        tuple(curve.coverage_at(risk) for risk in RISKS),
        calibration_error(np.clip(confidence, 0, 1), correct),
        scores.n,
        span.low,
        span.high,
    )


def _f1(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """From hits, what is believed, and what is right."""
    return np.asarray(2 * sums[:, 0] / np.maximum(sums[:, 1] + sums[:, 2], 1e-12))


def failure_table(
    model: Any, data: ArrayData, *, seed: int = 0, fit_config: FitConfig | None = None, device: str = "cpu"
) -> list[Judged]:
    """The rows of a model in Table 4: its confidence against a threshold, and the FP module on the frozen model.

    `data` must be new to the model. FP is surer of what it learnt from than of anything else, so the threshold is set
    on images of its own, see `SPLITS`.
    """
    from pfungst.training.failure import fit_predictor, look

    first, rest = data.split_by_picture(0.5, seed)
    second, third = rest.split_by_picture(0.5, seed)
    learnt, chosen, asked = (look(model, one, device=device) for one in (first, second, third))
    believe = fit_predictor(learnt, chosen, fit_config=fit_config, device=device).believe
    ways = {"confidence": (chosen.confidence, asked.confidence), "FP": (believe(chosen), believe(asked))}
    return [
        judge(name, (before, chosen.correct), confidence, asked.correct, third.picture, seed)
        for name, (before, confidence) in ways.items()
    ]


def run(config: FailureStudy, out: Path, *, progress: Progress) -> dict[str, list[Judged]]:
    """The rows of every model."""
    from pfungst.data import load
    from pfungst.models import Trained
    from pfungst.training import prepare

    asked = load(config.data, limit=config.limit, images=config.images, skip_bad=config.skip_bad)
    rows: dict[str, list[Judged]] = {}
    for number, place in enumerate(config.models):
        trained, name = Trained.load(place), Path(place).name
        arrays = prepare(
            {"asked": asked}, out / "data" / name, inputs=trained.inputs, vocabulary=trained.vocabulary, reuse=True,
            device=config.device, progress=progress,
        ).split("asked")  # fmt: skip
        rows[name] = failure_table(
            trained.model, arrays.for_model(trained.model), seed=config.seed, device=config.device
        )
        progress("models", number + 1, len(config.models))
    return rows


def tables(result: Mapping[str, Sequence[Judged]]) -> list[Table]:
    """Two rows for each model: its confidence, then `+ FP`."""
    rows = tuple(
        (name if row.name == "confidence" else "  + FP", *(f"{value:.3f}" for value in row.cells()))
        for name, judged in result.items()
        for row in judged
    )
    return [Table("Failure prediction", ("model", *COLUMNS), rows, SPLITS)]


EXPERIMENT = Experiment("failure", FailureStudy, run, tables, record=lambda result: {"models": jsonable(result)})
