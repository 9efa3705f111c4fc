"""Does a metric keep the rules? For authors of metrics, before a run is judged by theirs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pfungst.core import Answer, Example

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
