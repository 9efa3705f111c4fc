"""Metrics by name: how one answer to one example is judged, what they are made of, and whether one of your own keeps
the rules."""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial, wraps
from typing import Any

from pfungst.core import Answer, Example, PfungstError
from pfungst.core.code import describe, load_code, names_code
from pfungst.core.flips import normalise, same_answer
from pfungst.core.registry import Registry
from pfungst.scores.vqa import Variant, vqa_accuracy


def exact_match(prediction: object, truth: object) -> float:
    """1.0 if prediction and truth are the same answer, else 0.0: `exact_match("Yes.", True)` is 1.0."""
    return float(same_answer(prediction, truth))


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
