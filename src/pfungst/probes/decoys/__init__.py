"""Multiple choice that cannot be gamed (Being Negative but Constructively); `experiments.audit` shows when one can.

    from pfungst.probes.decoys import build
    decoys = build(load("cocoqa:DIR#test"), kinds=("qou", "iou"), k=3)
    data = decoys.dataset("QoU+IoU")        # a multiple-choice data set

Every name is loaded when it is first used.
"""

from pfungst._lazy import lazy

_HOMES = {
    "AnswerBook": "split",
    "AnswerRule": "rulebook",
    "DecoySet": "sets",
    "Decoys": "probe",
    "EmbeddingFilter": "filters",
    "Filter": "filters",
    "RuleScores": "rulebook",
    "WupFilter": "filters",
    "build": "building",
    "confusions": "filters",
    "mine": "filters",
    "rules": "rulebook",
    "write": "sets",
}
"""Public name -> module that defines it."""

__all__ = sorted(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]

__getattr__, __dir__ = lazy(__name__, _HOMES)
