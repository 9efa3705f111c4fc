"""Adversarial training: scenes that fooled a model are mixed into the questions it learnt from.

Measuring CLEVRness, "Adversarial training". `pfungst harden` measures what it is worth.
"""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pfungst.core import PfungstError
from pfungst.core.types import Progress, no_progress
from pfungst.models import Model, Trained
from pfungst.training.config import FitConfig
from pfungst.training.data import ArrayData
from pfungst.training.loop import Fitted, fit


def retrain(
    trained: Trained,
    data: ArrayData,
    clean: int,
    share: float,
    config: FitConfig,
    out: str | Path,
    *,
    device: str = "cpu",
    settings: dict[str, str] | None = None,
    progress: Progress = no_progress,
) -> tuple[Model, Fitted]:
    """A copy of the model, trained further on its old questions and on scenes that fooled it.

    data: the first `clean` rows are old questions, so that it forgets nothing; the others are fooling scenes.
    share: part of the training questions that are fooling scenes, which are repeated as often as that takes.
    """
    if trained.model.objective == "choice":
        raise PfungstError(f"{trained.name} learns to choose; hardening with found scenes needs a model that answers.")
    if not 0 < share < 1:
        raise PfungstError(f"The share of fooling scenes lies between 0 and 1, not at {share}.")
    model = copy.deepcopy(trained.model)
    rows = mixed_rows(clean, len(data) - clean, share, config.seed)
    learnt, checked = data.for_model(model).rows(rows).split_by_picture(0.1, config.seed)
    noted = {"model": trained.fingerprint, "share": share, **(settings or {})}
    fitted = fit(
        model, learnt, validation=checked, config=config, out=out, device=device, progress=progress, settings=noted
    )
    return model, fitted


def mixed_rows(clean: int, found: int, share: float, seed: int) -> NDArray[np.int64]:
    """Rows of the training data (clean ones first): fooling scenes repeated until they are `share` of all."""
    wanted = max(found, round(clean * share / (1 - share)))
    rng = np.random.default_rng([seed, 0x313])
    repeated = np.concatenate([rng.permutation(found) for _ in range(-(-wanted // found))])[:wanted]
    return np.concatenate([np.arange(clean), clean + repeated]).astype(np.int64)
