"""How a player gets better: one training loop, and the data it learns from.

    from pfungst.training import FitConfig, fit

    fit(model, data, validation=held_out, config=FitConfig(epochs=20, precision="bf16"), out="runs/film")

Everything below `fit` needs torch and numpy alone. Names are loaded when they are first used: torch takes seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pfungst._lazy import lazy

if TYPE_CHECKING:
    from pfungst.training._config import FitConfig as FitConfig
    from pfungst.training._curves import read_curves as read_curves
    from pfungst.training._data import ArrayData as ArrayData
    from pfungst.training._data import Data as Data
    from pfungst.training._data import Prepared as Prepared
    from pfungst.training._evaluate import Evaluation as Evaluation
    from pfungst.training._evaluate import evaluate as evaluate
    from pfungst.training._fit import Fitted as Fitted
    from pfungst.training._fit import Loss as Loss
    from pfungst.training._fit import Moment as Moment
    from pfungst.training._fit import fit as fit
    from pfungst.training._fit import model_losses as model_losses
    from pfungst.training._prepare import prepare as prepare
    from pfungst.training._train import train as train
    from pfungst.training.augment import shift as shift

# name -> module below pfungst.training that defines it
_HOMES = {
    "FitConfig": "_config",
    "read_curves": "_curves",
    "ArrayData": "_data",
    "Data": "_data",
    "Prepared": "_data",
    "Evaluation": "_evaluate",
    "Fitted": "_fit",
    "Loss": "_fit",
    "Moment": "_fit",
    "evaluate": "_evaluate",
    "fit": "_fit",
    "model_losses": "_fit",
    "prepare": "_prepare",
    "train": "_train",
    "shift": "augment",
}

__all__ = sorted(_HOMES)

__getattr__, __dir__ = lazy(__name__, _HOMES)
