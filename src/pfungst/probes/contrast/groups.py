"""Contrast groups of a data set: which questions look alike but are not answered alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pfungst.core import Dataset, Example
from pfungst.core.flips import normalise
from pfungst.probes import measure
from pfungst.scores import same_answer


@dataclass(frozen=True, slots=True)
class Member:
    """A question of a group: `q1i0` is the second question of the group, about its first image."""

    example: Example
    question: int
    image: int

    @property
    def name(self) -> str:
        return f"q{self.question}i{self.image}"


def published(data: Dataset, missing: frozenset[str] = frozenset()) -> Iterator[list[Member]]:
    """The contrast groups that the data set itself names; those with one right answer alone are none.

    Groups that a limit cut are left out, unless it cut all of them: half a group is easier to get right.
    """
    known = (e for e in data if e.contrast and e.target is not None and e.id not in missing)
    groups = measure.grouped(known, lambda example: example.contrast)
    sizes = Counter(e.contrast for e in data.whole if e.contrast and e.target is not None and e.id not in missing)
    uncut = [examples for name, examples in groups.items() if len(examples) >= sizes[name]]
    for examples in uncut or groups.values():
        members = _members(examples)
        if differ([member.example for member in members]):
            yield members


def same_question(data: Dataset, seed: int, missing: frozenset[str] = frozenset()) -> Iterator[list[Member]]:
    """Pairs of one question about two images with different right answers, in any data set. Each question is in one
    pair at most; who is paired with whom is drawn from the seed. The images need not look alike."""
    asked: dict[str, dict[str, list[Example]]] = {}
    for example in data.originals:
        if example.target is not None and example.image_id and example.id not in missing:
            answers = asked.setdefault(plain(example.question), {})
            answers.setdefault(normalise(example.target), []).append(example)
    rng = np.random.default_rng(seed)
    for answers in asked.values():
        buckets = sorted(answers.values(), key=len, reverse=True)
        shuffled = [[bucket[i] for i in rng.permutation(len(bucket))] for bucket in buckets]
        others = sum(map(len, shuffled[1:]))
        row = [example for bucket in (shuffled[0][:others], *shuffled[1:]) for example in bucket]
        half = len(row) // 2
        # no answer fills more than half of the row, so two examples half a row apart have two answers
        for first, second in zip(row[:half], row[half:]):
            if first.image_id != second.image_id and differ([first, second]):
                yield _members([first, second])


def differ(examples: Sequence[Example]) -> bool:
    """Whether the right answers are not all the same."""
    first, *others = (example.target or "" for example in examples)
    return any(not same_answer(first, other) for other in others)


def plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _members(examples: Sequence[Example]) -> list[Member]:
    """The questions of a group, numbered by question and by image in the order they come; each pair once."""
    questions: dict[str, int] = {}
    images: dict[str, int] = {}
    found: dict[tuple[int, int], Member] = {}
    for example in examples:
        question = questions.setdefault(plain(example.question), len(questions))
        image = images.setdefault(example.image_id, len(images))
        found.setdefault((question, image), Member(example, question, image))
    return list(found.values())
