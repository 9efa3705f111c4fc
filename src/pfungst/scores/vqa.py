"""VQA accuracy: how far an answer agrees with ten people."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from pfungst.core import Answer, Example, PfungstError
from pfungst.scores.vqa_text import PUBLISHED_PERIODS, process, tidy

Variant = Literal["official", "fixed", "paper"]

ENOUGH = 3
"""Matching humans for full marks."""


def vqa_accuracy(prediction: str, human_answers: Sequence[str], variant: Variant = "official") -> float:
    """VQA accuracy of one answer, in [0, 1].

    - `"official"`: the published evaluation (its last version), bug for bug. Each human is left out in turn, an answer
      scores min(matches among the others / 3, 1), and the scores are averaged. Answers are processed (punctuation,
      articles, number words, contractions) only if the human answers are not all the same: "Black." against ten times
      "black" scores 0. Only the first 32 periods of an answer are removed.
    - `"fixed"`: the same without these two bugs: answers are always processed, all periods go.
    - `"paper"`: min(matches / 3, 1) over processed answers, as the papers write it (Eq. 6 of
      Assessing the Robustness of VQA, Eq. 4 of A Novel Framework for Robustness Analysis).

    Any number of humans will do, by the same formula. With fewer than four, leaving one out puts full marks out of
    reach: at most 2/3 for three humans, 1/3 for two, 0 for one (use `exact_match` where there is one answer). Without
    human answers the result is NaN.
    """
    _check(variant)
    if isinstance(human_answers, str):
        raise PfungstError(
            f"human_answers is one text, {human_answers[:40]!r}; give a list of answers, one per person."
        )
    if not human_answers:
        return math.nan
    answer = tidy(prediction)
    humans = [tidy(human) for human in human_answers]
    if variant != "official":
        answer, humans = process(answer), [process(human) for human in humans]
    elif len(set(humans)) > 1:
        answer = process(answer, PUBLISHED_PERIODS)
        humans = [process(human, PUBLISHED_PERIODS) for human in humans]
    matches = humans.count(answer)
    if variant == "paper":
        return min(matches / ENOUGH, 1.0)
    if matches == 0 or matches > ENOUGH:
        return float(matches > 0)
    # Summed person by person, as published: another order may differ in the last bit.
    without_match, without_other = (matches - 1) / ENOUGH, min(matches / ENOUGH, 1.0)
    return sum([without_match if human == answer else without_other for human in humans]) / len(humans)


@dataclass(frozen=True, slots=True)
class VQAScores:
    """What `VQAScorer` found. Fractions in [0, 1], not rounded; NaN where nothing was scored."""

    overall: float
    per_answer_type: Mapping[str, float]
    per_question_type: Mapping[str, float]
    scores: tuple[float, ...]
    """One an answer, in the order they came; NaN where there are no human answers, and then not in any average."""

    @property
    def n(self) -> int:
        """Answers behind `overall`."""
        return sum(not math.isnan(score) for score in self.scores)

    def percent(self, digits: int = 2) -> dict[str, float | dict[str, float]]:
        """The summary as the published evaluation writes it: its keys, percent, rounded to two digits."""

        def rounded(groups: Mapping[str, float]) -> dict[str, float]:
            return {name: round(100 * value, digits) for name, value in groups.items()}

        return {
            "overall": round(100 * self.overall, digits),
            "perQuestionType": rounded(self.per_question_type),
            "perAnswerType": rounded(self.per_answer_type),
        }


@dataclass
class VQAScorer:
    """Scores answers one after another and sums up: overall, per answer type, per question type.

    >>> scorer = VQAScorer()
    >>> scorer.add("black", ["black"] * 9 + ["dark"], answer_type="other", question_type="what color")
    1.0
    >>> scorer.result().percent()["overall"]
    100.0
    """

    variant: Variant = "official"
    _scores: list[float] = field(default_factory=list, init=False, repr=False)
    _answer_types: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list), init=False, repr=False)
    _question_types: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list), init=False, repr=False)

    def __post_init__(self) -> None:
        _check(self.variant)

    def add(
        self, prediction: str, human_answers: Sequence[str], answer_type: str = "", question_type: str = ""
    ) -> float:
        """Score one answer and take it into the averages."""
        score = vqa_accuracy(prediction, human_answers, self.variant)
        self._scores.append(score)
        if not math.isnan(score):
            self._answer_types[answer_type].append(score)
            self._question_types[question_type].append(score)
        return score

    def add_all(self, examples: Iterable[Example], answers: Iterable[Answer]) -> VQAScorer:
        """Score one answer an example, in order; returns the scorer itself."""
        for example, answer in zip(examples, answers, strict=True):
            self.add(answer.text, example.answers, example.answer_type, example.question_type)
        return self

    def result(self) -> VQAScores:
        """The averages so far."""
        return VQAScores(
            overall=_mean([score for score in self._scores if not math.isnan(score)]),
            per_answer_type={name: _mean(scores) for name, scores in self._answer_types.items()},
            per_question_type={name: _mean(scores) for name, scores in self._question_types.items()},
            scores=tuple(self._scores),
        )


def _check(variant: str) -> None:
    if variant not in get_args(Variant):
        raise PfungstError(f"There is no VQA accuracy {variant!r}; the variants are official, fixed and paper.")


def _mean(scores: Sequence[float]) -> float:
    return sum(scores) / len(scores) if scores else math.nan
