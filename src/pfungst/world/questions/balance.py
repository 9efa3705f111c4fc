"""Answers in balance: the rejection rule of the published generator.

A data set where "yes" answers two questions in three can be passed blind. Every family keeps count of its answers, and
an answer that leads too far is refused until others have caught up.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pfungst.world.constants import ATTRIBUTES, MAX_OBJECTS

SECOND_FACTOR = 1.1
"""The most frequent answer may lead the second by this factor ..."""
MEDIAN_FACTOR, MEDIAN_FLOOR = 5.0, 5
"""... and the median, but at least 5, by this one. Both as in the published generator."""
RESET_EVERY = 250
"""Scenes after which counting starts anew, as in the published generator."""


def possible_answers(kind: str) -> tuple[str, ...]:
    """All answers of a kind (`bool`, `integer` or an attribute), as texts."""
    if kind == "bool":
        return ("yes", "no")
    if kind == "integer":
        return tuple(str(count) for count in range(MAX_OBJECTS + 1))
    return ATTRIBUTES[kind]


@dataclass
class AnswerCounts:
    """How often each answer of a family was given so far."""

    counts: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, answers: Iterable[str]) -> AnswerCounts:
        return cls(dict.fromkeys(answers, 0))

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def allows(self, answer: str) -> bool:
        """Whether one more of this answer keeps the balance."""
        count = self.counts.get(answer, 0)
        ranked = sorted(self.counts.values())
        second = ranked[-2] if len(ranked) > 1 else count
        median = max(ranked[len(ranked) // 2] if ranked else 0, MEDIAN_FLOOR)
        return count <= SECOND_FACTOR * second and count <= MEDIAN_FACTOR * median

    def add(self, answer: str) -> None:
        self.counts[answer] = self.counts.get(answer, 0) + 1
