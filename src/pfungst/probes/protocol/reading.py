"""Replies to options with other labels than A, B, C, read by the matchers, which know these alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from pfungst.scores import same_answer
from pfungst.scores.matchers import get_matcher


@dataclass(frozen=True)
class Reader:
    """A matcher that reads replies to options of this style."""

    matcher: str
    style: str = ""

    def __call__(self, reply: str, choices: Sequence[str], kind: str) -> str | None:
        return get_matcher(self.matcher)(with_letters(reply, self.style, choices), choices, kind)


def with_letters(reply: str, style: str, choices: Sequence[str]) -> str:
    """The reply with capital letters where it names an option by the label that it was shown: `(b)`, `2)`, or, where
    options have none, the option itself.

    A label counts where it stands alone, at the start before a mark, in brackets, or after words such as `answer is`.
    """
    if style == "text":
        named = [at for at, choice in enumerate(choices[:26]) if same_answer(reply.strip(" .\n"), choice)]
        return chr(65 + named[0]) if len(named) == 1 else reply
    if style not in ("(a)", "1)") or not choices or any(reply.strip() == choice.strip() for choice in choices):
        return reply
    for pattern in _patterns(style, min(len(choices), 26)):
        reply = pattern.sub(lambda found: found[1] + _capital(found[2]) + found[3], reply)
    return reply


@lru_cache(maxsize=64)
def _patterns(style: str, count: int) -> tuple[re.Pattern[str], ...]:
    labels = [chr(97 + at) if style == "(a)" else str(at + 1) for at in range(count)]
    label = "(" + "|".join(sorted(labels, key=len, reverse=True)) + ")"
    cue = r"(?:answer|option|choice|number|letter)(?:\s+is)?(?:\s+(?:option|number|letter))?\s*:?"
    return (
        re.compile(rf"\A(\W*){label}(\W*)\Z"),
        re.compile(rf"\A(\W*){label}([).:](?!\d))"),
        re.compile(rf"(\(){label}(\))"),
        re.compile(rf"(\b{cue}\s+\W?){label}((?=\s*(?:[.,;:)!?\n]|\Z)))", re.IGNORECASE),
    )


def _capital(label: str) -> str:
    return label.upper() if label.isalpha() else chr(64 + int(label))
