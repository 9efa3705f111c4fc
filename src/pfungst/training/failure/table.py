"""Table 4, and beyond it: how well a model knows when it is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfungst.core.stats import bootstrap_means
from pfungst.scores.selective import RISKS, best_threshold, calibration_error, failure_scores, risk_coverage
from pfungst.training.config import FitConfig
from pfungst.training.data import ArrayData
from pfungst.training.failure.predictor import FailureConfig, Seen, fit_predictor, look

COLUMNS = ("precision", "recall", "F1", "AUGRC", *(f"coverage at {risk:.0%} risk" for risk in RISKS), "ECE")


@dataclass(frozen=True)
class Judged:
    """One way of telling failures, judged on questions it was not made on."""

    name: str
    """`confidence` or `FP`."""
    precision: float
    recall: float
    f1: float
    """Of "this answer is right", at the threshold that was best on the other half."""
    threshold: float
    augrc: float
    coverage: tuple[float, ...]
    """At 1%, 5% and 10% risk."""
    ece: float
    """Expected calibration error."""
    n: int
    f1_low: float
    f1_high: float
    """95% interval over pictures."""

    def cells(self) -> tuple[float, ...]:
        return (self.precision, self.recall, self.f1, self.augrc, *self.coverage, self.ece)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


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
    # F1 = 2 hits / (believed + right): an interval of a ratio of means.
    means = bootstrap_means(
        np.stack([believed & right, believed, right]).astype(np.float64), pictures.tolist(), seed=seed
    )
    f1 = 2 * means[:, 0] / np.maximum(means[:, 1] + means[:, 2], 1e-12)
    low, high = np.quantile(f1, [0.025, 0.975])
    curve = risk_coverage(confidence, correct)
    return Judged(
        name,
        scores.precision,
        scores.recall,
        scores.f1,
        threshold,
        curve.augrc,
        tuple(curve.coverage_at(risk) for risk in RISKS),
        calibration_error(np.clip(confidence, 0, 1), correct),
        scores.n,
        float(low),
        float(high),
    )


def failure_table(
    model: Any,
    data: ArrayData,
    *,
    seed: int = 0,
    config: FailureConfig | None = None,
    fit_config: FitConfig | None = None,
    device: str = "cpu",
) -> list[Judged]:
    """The rows of a model in Table 4: its confidence against a threshold, and the FP module on the frozen model.

    `data` must be new to the model. Half of the pictures set the threshold and train FP, the other half judges both.
    """
    first, second = data.split_by_picture(0.5, seed)
    made, asked = (look(model, one, device=device) for one in (first, second))
    pictures = np.asarray(second.arrays["picture"])
    return judged_rows(made, asked, pictures, seed=seed, config=config, fit_config=fit_config, device=device)


def judged_rows(
    made: Seen,
    asked: Seen,
    pictures: NDArray[np.int64],
    *,
    seed: int = 0,
    config: FailureConfig | None = None,
    fit_config: FitConfig | None = None,
    device: str = "cpu",
) -> list[Judged]:
    """As `failure_table`, from what the frozen model saw."""
    own = judge("confidence", (made.confidence, made.correct), asked.confidence, asked.correct, pictures, seed)
    predictor = fit_predictor(made, config=config, fit_config=fit_config, device=device)
    told = (predictor.believe(made), made.correct)
    return [own, judge("FP", told, predictor.believe(asked), asked.correct, pictures, seed)]


def as_text(rows: Mapping[str, list[Judged]]) -> str:
    """Table 4 for a terminal: a block a model, its confidence first, then `+ FP`."""
    lines = [f"{'':24}" + "".join(f"{name:>22}" if "risk" in name else f"{name:>10}" for name in COLUMNS)]
    for name, judged in rows.items():
        for one in judged:
            line = f"{name if one.name == 'confidence' else '  + FP':24}"
            for column, value in zip(COLUMNS, one.cells(), strict=True):
                line += f"{value:>22.3f}" if "risk" in column else f"{value:>10.3f}"
            lines.append(line)
    return "\n".join(lines)
