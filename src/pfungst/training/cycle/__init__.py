"""Cycle-consistent training (003_43f488cf6d651ec9.txt): a model that answers what its own question generator asks.

    from pfungst.training import FitConfig, fit, model_losses
    from pfungst.training.cycle import Cycle, CycleConfig

    cycle = Cycle.of(model, data, CycleConfig(start=0.5), steps=4000)
    fit(model, data, losses=(model_losses, cycle), modules=cycle.modules, config=FitConfig(steps=4000))

Works for every model of the zoo that answers freely. Needs torch and numpy alone.
"""

from __future__ import annotations

from pfungst.training.cycle.config import (
    A_ITER,
    HIDDEN,
    LAMBDA_C,
    LAMBDA_G,
    T_SIM,
    TABLE_2,
    VARIANTS,
    CycleConfig,
    StudyConfig,
)
from pfungst.training.cycle.generator import QuestionGenerator, load_generator, save_generator
from pfungst.training.cycle.loss import Cycle, gate, hide_words, hiding, make_generator
from pfungst.training.cycle.splits import load_study
from pfungst.training.cycle.study import run_name, run_study, unclaim
from pfungst.training.cycle.table import as_text, summarise
from pfungst.training.cycle.tap import Tap

__all__ = [
    "A_ITER",
    "HIDDEN",
    "LAMBDA_C",
    "LAMBDA_G",
    "TABLE_2",
    "T_SIM",
    "VARIANTS",
    "Cycle",
    "CycleConfig",
    "QuestionGenerator",
    "StudyConfig",
    "Tap",
    "as_text",
    "gate",
    "hide_words",
    "hiding",
    "load_generator",
    "load_study",
    "make_generator",
    "run_name",
    "run_study",
    "save_generator",
    "summarise",
    "unclaim",
]
