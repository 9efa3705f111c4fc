"""Answers of one word or a few: exact match, multiple choice, yes/no, and how far the texts of two answers overlap."""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from pfungst.core import PfungstError
from pfungst.core.flips import normalise, same_answer


def exact_match(prediction: object, truth: object) -> float:
    """1.0 if prediction and truth are the same answer, else 0.0: `exact_match("Yes.", True)` is 1.0."""
    return float(same_answer(prediction, truth))


def choice_accuracy(
    predictions: Sequence[str] | Sequence[Sequence[float]],
    targets: Sequence[str],
    choices: Sequence[Sequence[str]] | None = None,
) -> float:
    """Share of multiple-choice questions answered right, in [0, 1]; NaN if there are none.

    `predictions` are texts, right if they equal the target after `normalise`, or scores, one a choice in the order of
    `choices`: then the highest score chooses. Where several choices share the highest score the question counts
    1/ties if the target is among them, what choosing between them at random would give. NaN scores never win.
    """
    if len(predictions) != len(targets) or (choices is not None and len(choices) != len(targets)):
        raise PfungstError(
            f"choice_accuracy needs one target and one set of choices per prediction: {len(predictions)} predictions, "
            f"{len(targets)} targets" + ("." if choices is None else f", {len(choices)} sets of choices.")
        )
    if not targets:
        return math.nan
    total = 0.0
    for at, (prediction, target) in enumerate(zip(predictions, targets)):
        if isinstance(prediction, str):
            total += normalise(prediction) == normalise(target)
        elif choices is None:
            raise PfungstError(
                f"Prediction {at} is a list of scores: choice_accuracy needs the choices they belong to."
            )
        else:
            total += choice_by_scores(cast("Sequence[float]", prediction), choices[at], target)
    return total / len(targets)


def choice_by_scores(scores: Sequence[float], choices: Sequence[str], target: str) -> float:
    """1 if the highest score belongs to the target, 1/ties if it shares it, else 0."""
    if len(scores) != len(choices):
        raise PfungstError(f"There are {len(scores)} scores for {len(choices)} choices; there must be one per choice.")
    known = [score for score in scores if not math.isnan(score)]
    if not known:
        return 0.0
    highest = max(known)
    best = [choice for score, choice in zip(scores, choices) if score == highest]
    right = sum(normalise(choice) == normalise(target) for choice in best)
    return right / len(best)


@dataclass(frozen=True, slots=True)
class YesNo:
    """Yes/no questions, with yes as the positive class. Fractions in [0, 1], NaN where undefined (0/0)."""

    accuracy: float
    precision: float
    """Of the answers yes, the share that is right."""
    recall: float
    """Of the questions whose answer is yes, the share answered yes."""
    f1: float
    yes_ratio: float
    """Share of questions answered yes: a player that always agrees has 1."""
    n: int
    """Questions whose truth is yes or no."""
    unclear: int
    """Answers among them that are neither yes nor no: wrong, and neither a yes nor a no."""
    skipped: int
    """Questions whose truth is neither yes nor no: left out."""


def yes_no(predictions: Sequence[object], truths: Sequence[object]) -> YesNo:
    """Precision, recall, F1 and yes-ratio of yes/no questions.

    An answer is a yes or a no if it is that word after `normalise` or begins with it, followed by a comma, full stop or
    colon ("Yes, there is a dog."). Anything else is unclear and never guessed at.
    """
    if len(predictions) != len(truths):
        raise PfungstError(
            f"yes_no needs one truth per prediction: {len(predictions)} predictions, {len(truths)} truths."
        )
    asked = [(spoken(prediction), truth) for prediction, truth in zip(predictions, map(normalise, truths))]
    pairs = [(prediction, truth) for prediction, truth in asked if truth in ("yes", "no")]
    right_yes = pairs.count(("yes", "yes"))
    said_yes = sum(prediction == "yes" for prediction, _ in pairs)
    true_yes = sum(truth == "yes" for _, truth in pairs)
    return YesNo(
        accuracy=_ratio(right_yes + pairs.count(("no", "no")), len(pairs)),
        precision=_ratio(right_yes, said_yes),
        recall=_ratio(right_yes, true_yes),
        f1=_ratio(2 * right_yes, said_yes + true_yes),
        yes_ratio=_ratio(said_yes, len(pairs)),
        n=len(pairs),
        unclear=sum(prediction == "" for prediction, _ in pairs),
        skipped=len(asked) - len(pairs),
    )


def spoken(answer: object) -> str:
    """`"yes"`, `"no"`, or `""` where the answer is neither."""
    text = normalise(answer)
    first = re.split(r"[,.:;!]", text, maxsplit=1)[0].strip()
    return first if first in ("yes", "no") else ""


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


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
