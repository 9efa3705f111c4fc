"""How a player gets better: one training loop, and the data it learns from.

    from pfungst.training import FitConfig, fit

    fit(model, data, validation=held_out, config=FitConfig(epochs=20, precision="bf16"), out="runs/film")

Everything below `fit` needs torch and numpy alone. Names are loaded when they are first used: torch takes seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pfungst._lazy import declared, lazy

if TYPE_CHECKING:
    from pfungst.training.augment import shift as shift
    from pfungst.training.checkpoint import read_curves as read_curves
    from pfungst.training.config import FitConfig as FitConfig
    from pfungst.training.data import ArrayData as ArrayData
    from pfungst.training.data import Data as Data
    from pfungst.training.data import Prepared as Prepared
    from pfungst.training.loop import Fitted as Fitted
    from pfungst.training.loop import Loss as Loss
    from pfungst.training.loop import Moment as Moment
    from pfungst.training.loop import fit as fit
    from pfungst.training.loop import model_losses as model_losses
    from pfungst.training.numerics import Evaluation as Evaluation
    from pfungst.training.numerics import evaluate as evaluate
    from pfungst.training.preparing import prepare as prepare
    from pfungst.training.trainer import train as train

_HOMES = declared(__name__)
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy(__name__, _HOMES)
