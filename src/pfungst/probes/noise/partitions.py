"""Noise levels: the ranked basic questions in consecutive partitions, appended to the main question."""

from __future__ import annotations

from collections.abc import Sequence

PARTITIONS = 7
"""21 = 7 x 3: seven noise levels of three basic questions each (Setup, Assessing the Robustness of VQA)."""
MAX_WORDS = 26
"""Words that most of the papers' models take (same place). 0 means no limit."""
ORDINALS = ("First", "Second", "Third", "Fourth", "Fifth", "Sixth", "Seventh", "Eighth", "Ninth", "Tenth")


def partition_names(count: int) -> list[str]:
    """`First`, `Second` ... as in the papers' tables."""
    return [ORDINALS[i] if i < len(ORDINALS) else f"Partition {i + 1}" for i in range(count)]


def split(ranked: Sequence[str], partitions: int = PARTITIONS) -> list[tuple[str, ...]]:
    """Consecutive partitions of equal size; what does not fill a partition at the end is left out."""
    size = len(ranked) // partitions
    return [tuple(ranked[start : start + size]) for start in range(0, size * partitions, size)] if size else []


def append(main: str, basic: Sequence[str], words: int = 0) -> str:
    """The direct concatenation of the papers (Figure 2), cut after `words` words if that is not 0."""
    text = " ".join([main, *basic])
    return " ".join(text.split()[:words]) if words else text
