"""Metrics by name: how one answer to one example is judged; and whether a metric of one's own keeps the rules."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

from pfungst.core import Answer, Example, PfungstError
from pfungst.core.code import describe, load_code, names_code
from pfungst.core.flips import normalise
from pfungst.core.registry import Registry
from pfungst.scores.exact import (
    YesNo,
    anls,
    choice_by_scores,
    contains,
    exact_match,
    relaxed,
    spoken,
    token_f1,
    token_recall,
    yes_no,
)
from pfungst.scores.vqa import Variant, vqa_accuracy

Metric = Callable[[Example, Answer], float]


def wups_accuracy(predictions: Sequence[str], truths: Sequence[str], threshold: float = 0.9) -> float:
    """WUPS at a threshold, in [0, 1]: the mean over questions of `pfungst.text.wups(prediction, truth, threshold)`.

    The measure of DAQUAR and COCO-QA (Malinowski and Fritz, 2014), at 0.9 and at 0.0. NaN if there is no question.
    """
    if len(predictions) != len(truths):
        raise PfungstError(
            f"wups_accuracy needs one truth per prediction: {len(predictions)} predictions, {len(truths)} truths."
        )
    if not truths:
        return math.nan
    wups = _wups_function()
    return sum(wups(prediction, truth, threshold) for prediction, truth in zip(predictions, truths)) / len(truths)


def _vqa(example: Example, answer: Answer, variant: Variant) -> float:
    if len(example.answers) > 1:
        return vqa_accuracy(answer.text, example.answers, variant)
    truth = _target(example)
    # Leaving out the only human would score every answer 0: take one answer for the agreement of all ten instead.
    return math.nan if truth is None else vqa_accuracy(answer.text, [truth] * 10, variant)


def _exact(example: Example, answer: Answer) -> float:
    truth = _target(example)
    return math.nan if truth is None else exact_match(answer.text, truth)


def _any(said: str, truths: Sequence[str]) -> float:
    """1 if the answer is the same as one of the right ones."""
    return max(exact_match(said, truth) for truth in truths)


def _choice(example: Example, answer: Answer) -> float:
    truth = _target(example)
    if truth is None:
        return math.nan
    said = normalise(answer.text)
    known = said in map(normalise, example.choices)
    if not known and answer.scores is not None and len(answer.scores) == len(example.choices):
        return choice_by_scores(answer.scores, example.choices, truth)
    return float(said == normalise(truth))


def _yes_no(example: Example, answer: Answer) -> float:
    truth = spoken(_target(example) or "")
    return float(spoken(answer.text) == truth) if truth else math.nan


def yes_no_scores(examples: Sequence[Example], answers: Sequence[Answer]) -> YesNo:
    """Accuracy, precision, recall, F1 and yes-ratio. Examples whose truth is neither yes nor no are left out."""
    return yes_no([answer.text for answer in answers], [_target(example) or "" for example in examples])


def _overlap(example: Example, answer: Answer, score: Callable[[str, Sequence[str]], float]) -> float:
    """The best score over all answers that people gave."""
    truth = _target(example)
    if truth is None:
        return math.nan
    return score(answer.text, tuple(dict.fromkeys((truth, *example.answers))))


def _wups(example: Example, answer: Answer, threshold: float) -> float:
    wups = _wups_function()
    if len(example.answers) > 1:
        return sum(wups(answer.text, human, threshold) for human in example.answers) / len(example.answers)
    truth = _target(example)
    return math.nan if truth is None else wups(answer.text, truth, threshold)


def _wups_function() -> Callable[[str, str, float], float]:
    """Found late, because WordNet needs numpy and most runs need neither."""
    from pfungst.text.wordnet import wups

    return wups


def _target(example: Example) -> str | None:
    """The one right answer: the target, else the most frequent human answer, the first of equals."""
    if example.target is not None or not example.answers:
        return example.target
    return Counter(example.answers).most_common(1)[0][0]


METRICS: dict[str, Metric] = {
    "vqa": partial(_vqa, variant="official"),
    "vqa-fixed": partial(_vqa, variant="fixed"),
    "vqa-paper": partial(_vqa, variant="paper"),
    "exact": _exact,
    "choice": _choice,
    "wups0.9": partial(_wups, threshold=0.9),
    "wups0.0": partial(_wups, threshold=0.0),
    "yes/no": _yes_no,
    "f1": partial(_overlap, score=token_f1),
    "recall": partial(_overlap, score=token_recall),
    "anls": partial(_overlap, score=anls),
    "contains": partial(_overlap, score=contains),
    "relaxed": partial(_overlap, score=relaxed),
    "any": partial(_overlap, score=_any),
}
"""Name -> function of an example and an answer to a score in [0, 1]; NaN where the example has no known truth."""

_REGISTRY = Registry("metric", "pfungst.metrics", METRICS)
JUDGES: dict[str, Callable[[str], Metric]] = {}
"""Metrics that ask somebody, by the word before the colon: `pfungst.players` adds `judge`, as in `judge:PLAYER`."""


def get_metric(name: str) -> Metric:
    """The metric of that name: one of `METRICS`, one that an installed package registers as a `pfungst.metrics`, or the
    function that `path/to/file.py:name` or `module:name` names; with `pfungst.players` also `judge:PLAYER`."""
    kind, _, argument = name.partition(":")
    if kind in JUDGES:
        return JUDGES[kind](argument)
    own = name not in _REGISTRY.names() and names_code(name)
    metric: Metric = load_code(name) if own else _REGISTRY.get(name)
    if not callable(metric):
        raise PfungstError(f"The metric {name!r} is not a function of example and answer.")
    return _checked(metric, name) if own else metric


def _checked(metric: Metric, name: str) -> Metric:
    """A user's own metric, held to what a metric is: a number from 0 to 1, or NaN."""

    @wraps(metric)
    def judge(example: Example, answer: Answer) -> float:
        try:
            score = float(metric(example, answer))
        except Exception as error:
            raise PfungstError(
                f"The metric {name} failed on example {example.id}: {describe(error)}. It is called with an example "
                "and an answer, and returns a number from 0 to 1."
            ) from error
        if not (0 <= score <= 1 or math.isnan(score)):
            raise PfungstError(
                f"The metric {name} gave {score} for example {example.id}. A score is a number from 0 to 1, or NaN "
                "where the right answer is unknown."
            )
        return score

    return judge


_ANSWERED = tuple(
    Example(str(number), question, answers=answers, target=answers[0], answer_type=kind, choices=choices)
    for number, (question, kind, answers, choices) in enumerate(
        [
            ("Is there a cube?", "yes/no", ("yes",) * 10, ()),
            ("How many cubes are there?", "number", ("2",) * 7 + ("3",) * 3, ()),
            ("What is it?", "other", ("a coffee cup",), ()),
            ("Which color has the cube?", "other", ("red",), ("red", "blue", "green", "gray")),
        ]
    )
)
_UNKNOWN = Example("unlabelled", "Is there a cube?")
_SAID = ("yes", "No.", "2", "", " ", "the red one, I think", "café ☕", "nan", "-1e400", "two\nlines", "x" * 5_000)


def check_metric(metric: Callable[[Example, Answer], Any]) -> list[str]:
    """What is wrong with a metric, a sentence each; an empty list means that it conforms.

    Checked are: it gives a number from 0 to 1, or NaN, for whatever a player says; the same number twice; the right
    answer scores as much as any wrong one; and where the right answer is unknown it says NaN.
    """
    problems: list[str] = []
    for example in (*_ANSWERED, _UNKNOWN):
        right = _score(metric, example, Answer(example.target or ""), problems)
        for text in (*_SAID, *example.choices):
            score = _score(metric, example, Answer(text), problems)
            if score is None or right is None:
                continue
            if example is _UNKNOWN and not math.isnan(score):
                problems.append(f"It gave {score:g} where the right answer is unknown; NaN keeps that out of averages.")
            elif score > right:
                problems.append(
                    f"To '{example.question}', {text!r:.40} scored {score:g}, more than the right answer "
                    f"'{example.target}' ({right:g})."
                )
    return list(dict.fromkeys(problems))


def _score(
    metric: Callable[[Example, Answer], Any], example: Example, answer: Answer, problems: list[str]
) -> float | None:
    """The score; None, and a sentence, where it is not one."""
    said = f"the answer {answer.text!r:.40} to '{example.question}'"
    try:
        found = [float(metric(example, answer)) for _ in range(2)]
    except Exception as error:
        problems.append(f"It failed on {said}: {type(error).__name__}: {error}")
        return None
    if found[0] != found[1] and not all(map(math.isnan, found)):
        problems.append(f"It gave {found[0]:g} and then {found[1]:g} for {said}.")
    elif not (0 <= found[0] <= 1 or math.isnan(found[0])):
        problems.append(f"It gave {found[0]:g} for {said}; a score is a number from 0 to 1, or NaN.")
    else:
        return found[0]
    return None
