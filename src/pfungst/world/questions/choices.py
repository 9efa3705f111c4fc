"""Options for a multiple choice, from what the question could have been answered with."""

from __future__ import annotations

import hashlib
from random import Random

from pfungst.world.constants import ATTRIBUTES, MAX_OBJECTS
from pfungst.world.questions.balance import possible_answers
from pfungst.world.scene import Scene

CHOICES = 4
"""Options where the kind of answer has that many: the target and three decoys, as in Visual7W."""


def choices_for(answer: str, kind: str, scene: Scene, seed: str) -> tuple[str, ...]:
    """The options for one question, the target among them, in an order fixed by `seed`.

    - `bool`, `size`, `material`, `shape`: all there are (2, 2, 2, 3)
    - `color`: the target and three others, those of objects in the scene first
    - `integer`: four counts in a row, the target at a random place among them

    All phrasings of one question should be given the same `seed`, so that they differ in their wording alone.
    """
    rng = Random(hashlib.sha256(f"choices {seed}".encode()).digest())
    if kind == "integer":
        target = int(answer)
        lowest = target - rng.randrange(min(CHOICES, target + 1))
        lowest = min(lowest, max(MAX_OBJECTS, target) - CHOICES + 1)
        options = [str(lowest + step) for step in range(CHOICES)]
    elif kind == "color":
        shown = {one.color for one in scene.objects}
        others = [color for color in ATTRIBUTES["color"] if color != answer]
        rng.shuffle(others)
        others.sort(key=lambda color: color not in shown)
        options = [answer, *others[: CHOICES - 1]]
    else:
        options = list(possible_answers(kind))
    rng.shuffle(options)
    return tuple(options)
