"""What became of an answer when the question was disturbed: the words that reports and `pfungst show` use."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pfungst.scores import same_answer

RIGHT_WRONG, LESS_RIGHT, WRONG_RIGHT = "right to wrong", "right to less right", "wrong to right"
WRONG_WRONG, WRONG, CHANGED = "wrong to other wrong", "wrong and unchanged", "changed, truth unknown"
STILL_RIGHT = "right without the evidence"
KINDS = (RIGHT_WRONG, LESS_RIGHT, STILL_RIGHT, WRONG_WRONG, WRONG_RIGHT, WRONG, CHANGED)


def kind_of(scores: Sequence[float], answers: Sequence[str], removes: bool = False) -> tuple[str, int] | None:
    """What became of the first answer, and the place of the variant that shows it; None where there is nothing to see.

    removes: the variants take the evidence away, and it is suspicious to stay right.
    """
    clean, rest = scores[0], list(range(1, len(scores)))
    known = [at for at in rest if not math.isnan(scores[at])]
    if math.isnan(clean) or (rest and not known):
        changed = next((at for at in rest if not same_answer(answers[0], answers[at])), None)
        return None if changed is None else (CHANGED, changed)
    if removes:
        still = next((at for at in known if clean > 0 and scores[at] > 0), None)
        return None if still is None else (STILL_RIGHT, still)
    if clean > 0:
        least = min(known, key=lambda at: scores[at], default=0)
        if scores[least] >= clean:
            return None
        return (RIGHT_WRONG if scores[least] <= 0 else LESS_RIGHT), least
    best = max(known, key=lambda at: scores[at], default=0)
    if scores[best] > 0:
        return WRONG_RIGHT, best
    other = next((at for at in known if not same_answer(answers[0], answers[at])), None)
    return (WRONG, 0) if other is None else (WRONG_WRONG, other)
