"""How much of an answer's text is right: token F1 and recall, ANLS, containment, relaxed numbers.

All take one prediction and the answers that count as right, and give the best score over these, in [0, 1].
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

ANLS_THRESHOLD = 0.5
"""Below this similarity an answer counts nothing (Biten et al., Scene Text Visual Question Answering, 2019, Eq. 1)."""

RELAXED_TOLERANCE = 0.05
"""ChartQA allows numbers to be 5% off (Masry et al., 2022, section 5.1, after Methani et al., 2020)."""

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


@lru_cache(maxsize=1 << 15)
def squad_tokens(text: str) -> tuple[str, ...]:
    """The tokens that SQuAD compares: lower case, no ASCII punctuation, no articles (Rajpurkar et al., 2016)."""
    return tuple(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def token_f1(prediction: str, truths: Sequence[str]) -> float:
    """Harmonic mean of token precision and recall. Where either side has no tokens: 1 if both have none, else 0."""
    return max((_f1(squad_tokens(prediction), squad_tokens(truth)) for truth in truths), default=0.0)


def token_recall(prediction: str, truths: Sequence[str]) -> float:
    """Share of the truth's tokens that the prediction has, each as often as it stands there."""
    return max((_recall(squad_tokens(prediction), squad_tokens(truth)) for truth in truths), default=0.0)


def contains(prediction: str, truths: Sequence[str]) -> float:
    """1 if the tokens of a truth stand in the prediction, together and in order: "dog" is not in "hotdog"."""
    said = f" {' '.join(squad_tokens(prediction))} "
    return float(any(f" {' '.join(tokens)} " in said for truth in truths if (tokens := squad_tokens(truth))))


def anls(prediction: str, truths: Sequence[str], threshold: float = ANLS_THRESHOLD) -> float:
    """Average normalised Levenshtein similarity of one answer: 1 - edits / longer length, 0 from `threshold` edits on.

    Case and repeated blanks make no difference.
    """
    said = " ".join(prediction.lower().split())
    best = 0.0
    for truth in truths:
        right = " ".join(truth.lower().split())
        longer = max(len(said), len(right))
        # The length difference alone may already be too much.
        if not longer or abs(len(said) - len(right)) / longer >= threshold:
            best = max(best, float(not longer))
            continue
        distance = levenshtein(said, right) / longer
        best = max(best, 1 - distance if distance < threshold else 0.0)
    return best


def levenshtein(one: str, other: str) -> int:
    """Fewest insertions, deletions and replacements of characters that turn one text into the other."""
    start, most = 0, min(len(one), len(other))
    while start < most and one[start] == other[start]:
        start += 1
    end = 0
    while end < most - start and one[-1 - end] == other[-1 - end]:
        end += 1
    # Between what both begin and end with, the shorter text lies along the row.
    other, one = sorted((one[start : len(one) - end], other[start : len(other) - end]), key=len)
    row = list(range(len(other) + 1))
    for at, sign in enumerate(one, 1):
        diagonal, row[0] = row[0], at
        for j, target in enumerate(other, 1):
            above = row[j]
            row[j] = diagonal if sign == target else 1 + min(diagonal, above, row[j - 1])
            diagonal = above
    return row[-1]


def relaxed(prediction: str, truths: Sequence[str], tolerance: float = RELAXED_TOLERANCE) -> float:
    """1 if a numeric truth is met within the tolerance, or any other truth exactly, whatever its case.

    Numbers are read as the evaluation scripts for ChartQA do it: 12% is 0.12, "1,000" is no number, and a truth of 0
    must be met exactly.
    """
    return float(any(_relaxed(prediction.strip(), truth.strip(), tolerance) for truth in truths))


def _relaxed(prediction: str, truth: str, tolerance: float) -> bool:
    said, right = _number(prediction), _number(truth)
    if said is not None and right:
        return abs(said - right) / abs(right) <= tolerance
    return prediction.lower() == truth.lower()


def _number(text: str) -> float | None:
    try:
        return float(text.rstrip("%")) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return None


def _f1(said: tuple[str, ...], right: tuple[str, ...]) -> float:
    if not said or not right:
        return float(said == right)
    common = sum((Counter(said) & Counter(right)).values())
    return 2 * common / (len(said) + len(right))


def _recall(said: tuple[str, ...], right: tuple[str, ...]) -> float:
    if not right:
        return float(not said)
    return sum((Counter(said) & Counter(right)).values()) / len(right)
