"""Cycle-Consistency for Robust VQA: a model that answers what its own question generator asks.

    from pfungst.training import FitConfig, fit, model_losses
    from pfungst.training.cycle import Cycle, CycleConfig

    cycle = Cycle.of(model, data, CycleConfig(start=0.5), steps=4000)
    fit(model, data, losses=(model_losses, cycle), modules=cycle.modules, config=FitConfig(steps=4000))

Works for every model of the zoo that answers freely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pfungst._lazy import declared, lazy
from pfungst.training.cycle.config import A_ITER, LAMBDA_C, LAMBDA_G, T_SIM, CycleConfig

if TYPE_CHECKING:
    from pfungst.training.cycle.generator import QuestionGenerator as QuestionGenerator
    from pfungst.training.cycle.generator import load_generator as load_generator
    from pfungst.training.cycle.generator import save_generator as save_generator
    from pfungst.training.cycle.loss import Cycle as Cycle
    from pfungst.training.cycle.loss import gate as gate
    from pfungst.training.cycle.loss import hide_words as hide_words
    from pfungst.training.cycle.loss import hiding as hiding
    from pfungst.training.cycle.loss import make_generator as make_generator
    from pfungst.training.cycle.rephrase import Writer as Writer
    from pfungst.training.cycle.tap import Tap as Tap

_HOMES = declared(__name__)
__all__ = ["A_ITER", "LAMBDA_C", "LAMBDA_G", "T_SIM", "CycleConfig", *sorted(_HOMES)]
__getattr__, __dir__ = lazy(__name__, _HOMES)
