"""The three rules of good decoys as numbers, and the shortcut of Eq. 2."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pfungst.core import Example
from pfungst.core.flips import normalise
from pfungst.core.stats import Interval, interval_of
from pfungst.scores.metrics import choice_by_scores

if TYPE_CHECKING:
    from pfungst.probes.decoys.sets import DecoySet

SAMPLE = 500
"""Examples whose question fit is computed exactly; the fit needs all questions with the same answer."""


@dataclass(frozen=True)
class RuleScores:
    """How well a choice set keeps the rules Neutrality, QoU and IoU (Sect. 3.2)."""

    variant: str
    options: float
    """Mean number of choices, the target included."""
    chance: float
    """Accuracy of a blind pick."""
    decoys_a_target: float
    """How often a distinct target serves as decoy, on average (7.2 in Visual7W)."""
    decoys_by_chance: float
    """How often it would if all decoys were drawn evenly from the targets (10.7 in Visual7W)."""
    neutrality: float
    """1 minus the total variation distance of decoys from targets: 1 where every answer is as often a decoy, relative
    to the others, as it is a target; 0 where no decoy is ever right."""
    question_fit: Interval
    """QoU: mean cosine between the question and the most similar other question whose target the decoy is."""
    target_fit: Interval
    """The same of the target: what the decoys must come up to."""
    question_resolves: Interval
    """Share of (target, decoy) pairs that the fit decides for the target, ties half: 0.5 is unresolvable."""
    image_fit: Interval
    """IoU: share of the decoys that are the target of another question about the same image."""


def rules(decoys: DecoySet, variant: str, *, sample: int = SAMPLE, seed: int = 0) -> RuleScores:
    """Measure the rules on a choice set. Question fits are NaN where the decoys were made without vectors."""
    split = decoys.split
    numbers = decoys.numbers(variant)
    real = numbers >= 0
    classes = np.where(real, split.book.classes[numbers], -1)
    targets = split.book.classes[split.targets]
    size = int(split.book.classes.max()) + 1
    as_target = np.bincount(targets, minlength=size)
    as_decoy = np.bincount(classes[real], minlength=size)
    total = int(as_decoy.sum())
    distinct = int((as_target > 0).sum())
    distance = 0.5 * np.abs(as_target / len(targets) - as_decoy / max(1, total)).sum()
    options = 1 + real.sum(1)
    images = [one.image_id or one.id for one in split.examples]
    fits = _fits(decoys, classes, sample, seed)
    return RuleScores(
        variant=variant,
        options=float(options.mean()),
        chance=float((1 / options).mean()),
        decoys_a_target=float(as_decoy[as_target > 0].mean()),
        decoys_by_chance=total / distinct,
        neutrality=float(1 - distance) if total else float("nan"),
        question_fit=fits[0],
        target_fit=fits[1],
        question_resolves=fits[2],
        image_fit=interval_of(_image_fit(decoys, classes), images),
    )


def _image_fit(decoys: DecoySet, classes: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    real = classes >= 0
    inside = decoys.split.right_about(decoys.split.image[:, None], classes) & real
    counts = real.sum(1)
    return np.asarray(np.divide(inside.sum(1), counts, out=np.full(len(counts), np.nan), where=counts > 0))


def _fits(decoys: DecoySet, classes: npt.NDArray[np.int32], sample: int, seed: int) -> tuple[Interval, ...]:
    split = decoys.split
    if decoys.vectors is None:
        return tuple(interval_of([], []) for _ in range(3))
    targets = split.book.classes[split.targets]
    order = np.argsort(targets, kind="stable")
    starts = np.searchsorted(targets[order], np.arange(int(split.book.classes.max()) + 2))
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.permutation(len(split))[:sample])
    rows: list[tuple[float, float, float]] = []
    for number in chosen.tolist():
        question = decoys.vectors[split.question[number]]

        def fit(answer: int, triplet: int = number, question: npt.NDArray[np.float32] = question) -> float:
            others = order[starts[answer] : starts[answer + 1]]
            asked = np.unique(split.question[others[others != triplet]])
            return float((decoys.vectors[asked] @ question).max()) if len(asked) else 0.0

        target = fit(int(targets[number]))
        found = [fit(int(one)) for one in classes[number] if one >= 0]
        if found:
            wins = np.mean([1.0 if target > one + 1e-6 else 0.5 if target > one - 1e-6 else 0.0 for one in found])
            rows.append((float(np.mean(found)), target, float(wins)))
        else:
            rows.append((float("nan"),) * 3)
    images = [split.examples[number].image_id or split.examples[number].id for number in chosen.tolist()]
    return tuple(interval_of([row[column] for row in rows], images) for column in range(3))


@dataclass(frozen=True)
class AnswerRule:
    """Eq. 2: how likely an answer is right, from how often it was right before and nothing else.

    P(correct | C) = #target / (#target + #decoy / K), and 0.5 for answers never seen. K is the number of decoys; where
    it differs between examples every decoy counts 1/K of its own example.
    """

    targets: Counter[str]
    decoys: dict[str, float]

    @classmethod
    def fit(cls, examples: Sequence[Example]) -> AnswerRule:
        """Learn from multiple-choice examples with a target."""
        targets: Counter[str] = Counter()
        decoys: dict[str, float] = {}
        for one in examples:
            if one.target is None or len(one.choices) < 2:
                continue
            right = normalise(one.target)
            targets[right] += 1
            wrong = [choice for choice in map(normalise, one.choices) if choice != right]
            for choice in wrong:
                decoys[choice] = decoys.get(choice, 0.0) + 1 / len(wrong)
        return cls(targets, decoys)

    def probability(self, answer: str) -> float:
        name = normalise(answer)
        right, wrong = self.targets.get(name, 0), self.decoys.get(name, 0.0)
        return right / (right + wrong) if right + wrong else 0.5

    def picks(self, examples: Sequence[Example]) -> list[npt.NDArray[np.float64]]:
        """What the rule picks of the choices of each example: 1 for one, shares of it for several equal ones."""
        found = []
        for one in examples:
            scores = np.asarray([self.probability(choice) for choice in one.choices])
            best = (scores == scores.max(initial=-1.0)).astype(np.float64)
            found.append(best / max(1.0, best.sum()))
        return found

    def right(self, examples: Sequence[Example]) -> list[float]:
        """1 where the rule picks the target, 1/ties where it shares the first place, else 0; one an example."""
        return [
            choice_by_scores([self.probability(choice) for choice in one.choices], one.choices, str(one.target))
            if one.target is not None and one.choices
            else float("nan")
            for one in examples
        ]
