"""Which examples of a data set are asked about, and which of them are one question under several ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pfungst.core import Dataset, Example, PfungstError, UsageError
from pfungst.core.errors import BrokenImage

NOTE = "repeated questions"
"""Of a data set, in `Dataset.notes`."""
OFTEN = 0.1
"""Share of the questions above which they are told of. Of COCO-QA 2% stand twice, of DAQUAR 3%, by chance."""
ALIKE = 0.9
"""Without names of images, the same words may be about another image: POPE asks the same 80 questions of 500 images.
Only where at least this share of all questions stand there equally often, they are taken as repetitions."""


def select(data: Dataset, limit: int | None = None, only: Sequence[str] = (), open_questions: bool = False) -> Dataset:
    """The first `limit` questions with all their wordings, or the examples of the ids `only`; with `open_questions`
    without the choices they offer.

    What is left remembers the whole data set, from which pools are drawn.
    """
    if open_questions:
        data = replace(data, examples=[replace(example, choices=()) for example in data.examples])
    examples: Sequence[Example] = data.examples
    if only:
        wanted = set(only)
        examples = [example for example in examples if example.id in wanted]
        missing = wanted - {example.id for example in examples}
        if missing:
            raise PfungstError(f"{data.name} has no example with the id {', '.join(sorted(missing))}.")
    if limit is not None:
        if limit < 1:
            raise UsageError(f"--limit must be at least 1, not {limit}.")
        part = data.subset(examples)
        wanted = {example.id for example in part.originals.examples[:limit]}
        wanted |= {wording.id for wordings in part.wordings if wordings[0].id in wanted for wording in wordings}
        examples = [example for example in examples if example.id in wanted]
    return data if examples is data.examples else data.subset(examples)


def select_again(data: Dataset, about: Mapping[str, Any]) -> Dataset:
    """What a run asked about, from what its exam.json says of the data."""
    how = about.get("only") or (), bool(about.get("open", False))
    part, asked = select(data, about.get("limit"), *how), about["examples"]
    if about.get("limit") is None or len(part) <= asked:
        return part
    whole = select(data, None, *how)  # the limit of earlier versions counted every wording
    return whole.subset(whole.examples[:asked])


def joined(examples: Sequence[Example]) -> tuple[Sequence[Example], str]:
    """The examples, those that are the same question in one cluster, and a sentence on them where they are many.

    The same question has the same words, options, right answer and image. Wordings of a question are none of it.
    """
    asked = [_asked(example) if example.group in ("", example.id) else None for example in examples]
    counts = Counter(key for key in asked if key is not None)
    many = {key: count for key, count in counts.items() if count > 1}
    several = sum(many.values())
    if several <= OFTEN * len(examples):
        return examples, ""
    unnamed = Counter(count for (image, *_), count in counts.items() if not image)
    usual, equal = max(unnamed.items(), key=lambda one: one[1], default=(0, 0))
    sure = 1 < usual < unnamed.total() and equal >= ALIKE * unnamed.total()
    first: dict[object, str] = {}
    found = list(examples)
    for at, (example, key) in enumerate(zip(examples, asked, strict=True)):
        if key in many and not example.image_id and (key[0] or sure):
            found[at] = replace(example, repeats=first.setdefault(key, example.id))
    if not first and not any(image for image, *_ in many):
        return examples, ""
    told = (
        f"{several:,} of {len(examples):,} questions are {len(many):,} that stand there several times under other ids."
    )
    if sure:
        return found, (
            f"{told} They name no image and are taken as repetitions: each is one cluster. If they are about different "
            "images, name those: ?image=COLUMN."
        )
    return found, f"{told} Intervals count each image once, but n counts every one of them."


def _asked(example: Example) -> tuple[str, str, str | None, tuple[str, ...]]:
    image = example.image_id
    if not image and example.image is not None:
        try:
            image = example.image.digest
        except BrokenImage:
            image = example.id
    return image, example.question, example.target, example.choices
