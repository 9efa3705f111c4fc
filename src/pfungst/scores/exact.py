"""Exact match, multiple choice, yes/no."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
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
