"""What is appended to a main question: noise levels, and the basic questions that are good enough (VQABQ)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

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


THRESHOLDS = (0.60, 0.58, 0.41)
"""(s1, s2, s3) of Table 7."""

Scores = npt.NDArray[np.float64]


def count_appended(scores: Scores, thresholds: tuple[float, float, float] = THRESHOLDS) -> npt.NDArray[np.int64]:
    """How many basic questions (0 to 3) each main question gets; scores: (main, >= 3), best first.

    score1 > s1 appends the first; then score2/score1 > s2 the second; then score3/score2 > s3 the third. The
    conditions are nested, as Table 6 shows (7,512 questions get one, 211 two, 9 three). A ratio to a score that is not
    positive is never large enough.
    """
    first, second, third = scores[:, 0], scores[:, 1], scores[:, 2]
    s1, s2, s3 = thresholds
    one = first > s1
    two = one & (_ratio(second, first) > s2)
    three = two & (_ratio(third, second) > s3)
    return one.astype(np.int64) + two + three


def _ratio(a: Scores, b: Scores) -> Scores:
    safe = np.where(b > 0, b, 1.0)
    return np.where(b > 0, a / safe, -np.inf)


@dataclass(frozen=True)
class ScoreStatistics:
    """Table 5: mean and standard deviation of score1, score2/score1 and score3/score2."""

    mean: tuple[float, float, float]
    std: tuple[float, float, float]

    @classmethod
    def of(cls, scores: Scores) -> ScoreStatistics:
        columns = [scores[:, 0], _ratio(scores[:, 1], scores[:, 0]), _ratio(scores[:, 2], scores[:, 1])]
        known = [column[np.isfinite(column)] for column in columns]
        mean = [float(column.mean()) if len(column) else float("nan") for column in known]
        std = [float(column.std()) if len(column) else float("nan") for column in known]
        return cls((mean[0], mean[1], mean[2]), (std[0], std[1], std[2]))

    def candidates(self) -> list[tuple[float, float, float]]:
        """avg - std, avg, avg + std of each threshold: the papers' initial estimates."""
        levels = [(m - s, m, m + s) for m, s in zip(self.mean, self.std, strict=True)]
        return [(a, b, c) for a, b, c in product(*levels)]


def search_thresholds(
    scores: Scores,
    accuracy: Callable[[npt.NDArray[np.int64]], float],
    candidates: Sequence[tuple[float, float, float]] | None = None,
) -> tuple[tuple[float, float, float], float]:
    """The thresholds with the best accuracy; `accuracy` takes the number of basic questions of each main question.

    Candidates are by default those around the statistics of the scores and the papers' own. Ties keep the first.
    """
    tried = list(candidates) if candidates is not None else [THRESHOLDS, *ScoreStatistics.of(scores).candidates()]
    seen: dict[bytes, float] = {}
    best, best_accuracy = tried[0], -np.inf
    for thresholds in tried:
        counts = count_appended(scores, thresholds)
        key = counts.tobytes()
        if key not in seen:
            seen[key] = accuracy(counts)
        if seen[key] > best_accuracy:
            best, best_accuracy = thresholds, seen[key]
    return best, best_accuracy
