"""Multiple choice that cannot be gamed, and the audit that shows when it can (001_e067043fdf3face1.txt).

    from pfungst.probes.decoys import build
    decoys = build(load("cocoqa:DIR#test"), kinds=("qou", "iou"), k=3)
    data = decoys.dataset("QoU+IoU")        # a multiple-choice data set

Every name is loaded when it is first used.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "AnswerBook": "_answers",
    "AnswerRule": "_rules",
    "Audit": "_audit",
    "DecoySet": "_sets",
    "Decoys": "probe",
    "EmbeddingFilter": "_filters",
    "Filter": "_filters",
    "Rules": "_rules",
    "WupFilter": "_filters",
    "audit": "_audit",
    "build": "_build",
    "confusions": "_filters",
    "mine": "_mined",
    "rules": "_rules",
    "transfer": "_transfer",
    "write": "_files",
}
"""Public name -> module that defines it."""

__all__ = sorted(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
