"""Which examples of a data set are asked about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pfungst.core import Dataset, Example, PfungstError, UsageError


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
