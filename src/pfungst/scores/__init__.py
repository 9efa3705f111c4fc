"""How answers are judged: VQA accuracy, exact match, WUPS, multiple choice, yes/no, consensus, R_score."""

from pfungst.core.flips import same_answer
from pfungst.scores.generation import generation_scores
from pfungst.scores.metrics import (
    METRICS,
    YesNo,
    anls,
    check_metric,
    exact_match,
    get_metric,
    token_f1,
    token_recall,
    wups_accuracy,
    yes_no,
)
from pfungst.scores.robustness import Consensus, consensus, consensus_of, r_score
from pfungst.scores.selective import (
    FailureScores,
    RiskCoverage,
    augrc,
    best_threshold,
    calibration_error,
    failure_scores,
    risk_coverage,
)
from pfungst.scores.spelling import Gap, spelling_gap
from pfungst.scores.vqa import vqa_accuracy

__all__ = [
    "METRICS",
    "Consensus",
    "FailureScores",
    "Gap",
    "RiskCoverage",
    "YesNo",
    "anls",
    "augrc",
    "best_threshold",
    "calibration_error",
    "check_metric",
    "consensus",
    "consensus_of",
    "exact_match",
    "failure_scores",
    "generation_scores",
    "get_metric",
    "r_score",
    "risk_coverage",
    "same_answer",
    "spelling_gap",
    "token_f1",
    "token_recall",
    "vqa_accuracy",
    "wups_accuracy",
    "yes_no",
]
