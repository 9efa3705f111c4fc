"""How answers are judged: VQA accuracy, exact match, WUPS, multiple choice, yes/no, consensus, R_score."""

from pfungst.scores._exact import YesNo, choice_accuracy, exact_match, yes_no
from pfungst.scores._metrics import METRICS, get_metric, wups_accuracy
from pfungst.scores._robustness import Consensus, consensus, consensus_of, r_score
from pfungst.scores._vqa import VQAScorer, VQAScores, vqa_accuracy

__all__ = [
    "METRICS",
    "Consensus",
    "VQAScorer",
    "VQAScores",
    "YesNo",
    "choice_accuracy",
    "consensus",
    "consensus_of",
    "exact_match",
    "get_metric",
    "r_score",
    "vqa_accuracy",
    "wups_accuracy",
    "yes_no",
]
