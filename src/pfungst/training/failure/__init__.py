"""Failure prediction: does a model know when it is wrong? (Section 5.4 of 003_43f488cf6d651ec9.txt)

from pfungst.training.failure import failure_table

rows = failure_table(model, held_out_data)      # its confidence, and the FP module on the frozen model
"""

from __future__ import annotations

from pfungst.training.failure.predictor import FailureConfig, FailurePredictor, Seen, fit_predictor, look
from pfungst.training.failure.table import Judged, as_text, failure_table, judge, judged_rows

__all__ = [
    "FailureConfig",
    "FailurePredictor",
    "Judged",
    "Seen",
    "as_text",
    "failure_table",
    "fit_predictor",
    "judge",
    "judged_rows",
    "look",
]
