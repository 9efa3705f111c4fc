"""What people do with the same groups: one annotator against the others who answered the same question.

The ceiling beside which a player's numbers stand. Annotators of two questions are other people, so a group is answered
by one annotator for each of its questions, drawn independently; all of them are averaged over, none is drawn.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pfungst.core import Example, Finding, Table
from pfungst.probes import measure
from pfungst.probes.contrast.overlap import Units
from pfungst.scores.vqa import ENOUGH, process, tidy

NAME = "one annotator"
SINGLE, QUESTION, SAME = "one question", "a question about all its images", "same answer about two images"
Counts = Mapping[str, int]
"""Answer -> how many people gave it, of one question."""


def answers_of(example: Example) -> dict[str, int]:
    """The answers of the annotators, as VQA compares them; empty where fewer than two people answered."""
    return dict(Counter(process(tidy(one)) for one in example.answers)) if len(example.answers) > 1 else {}


def score(counts: Counts) -> float:
    """What one annotator scores against the others, by VQA's rule min(matches / 3, 1)."""
    return sum(count * min((count - 1) / ENOUGH, 1) for count in counts.values()) / sum(counts.values())


def right(counts: Counts) -> float:
    """How often at least one other annotator says the same: right as everywhere, a score above 0."""
    return sum(count for count in counts.values() if count > 1) / sum(counts.values())


def same(first: Counts, second: Counts) -> float:
    """How often an annotator of one question and one of the other say the same."""
    shared = sum(count * second.get(answer, 0) for answer, count in first.items())
    return shared / (sum(first.values()) * sum(second.values()))


def ceiling(notes: Sequence[Mapping[str, Any]], units: Units) -> list[Finding]:
    """What people reach. notes : of each group; `people` holds the answers about every image of its one question."""
    values: dict[str, list[float]] = {SINGLE: [], QUESTION: [], SAME: []}
    places: dict[str, list[int]] = {name: [] for name in values}
    for at, told in enumerate(notes):
        people: Sequence[Counts] = told.get("people", ())
        if not people:
            continue
        first, second = people
        for name, some in (
            (SINGLE, [score(first), score(second)]),
            (QUESTION, [math.prod(map(right, people))]),
            (SAME, [same(first, second)]),
        ):
            values[name] += some
            places[name] += [at] * len(some)
    found = [measure.finding(NAME, units.pick(places[name]).mean(some), name) for name, some in values.items()]
    return [one for one in found if one.n]


def table(found: Sequence[Finding]) -> Table:
    """The ceiling for a report."""
    return Table(
        "What people reach",
        ("what", NAME, "n"),
        tuple((one.condition, one, one.n) for one in found),
        "One annotator against the others of the same question: min(matches / 3, 1) for one question; two images: "
        "right where another annotator says the same. Each image has annotators of its own.",
    )


def sentence(found: Sequence[Finding]) -> str:
    """The ceiling in words; empty where there is none."""
    if not found:
        return ""
    single, question, alike = (measure.with_interval(one) for one in found)
    return (
        f" One annotator, against the others: {single} of single questions, {question} of the questions about both "
        f"images, and the same answer about both in {alike}."
    )
