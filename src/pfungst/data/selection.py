"""Which examples of a data set are asked about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pfungst.core import Dataset, Example, PfungstError, UsageError


def select(data: Dataset, limit: int | None = None, only: Sequence[str] = (), open_questions: bool = False) -> Dataset:
    """The first `limit` examples, or those of the ids `only`; with `open_questions` without the choices they offer.

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
        examples = examples[:limit]
    return data if examples is data.examples else data.subset(examples)
