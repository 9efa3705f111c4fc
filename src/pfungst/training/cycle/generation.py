"""How well a question generator asks: Table 3 of 003_43f488cf6d651ec9.txt, and samples with different noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pfungst.core import Dataset, Example, PfungstError
from pfungst.training.cycle.rephrase import Writer


@dataclass(frozen=True)
class Asked:
    """What was generated for one example."""

    example_id: str
    question: str
    answer: str
    written: tuple[str, ...]
    """The first is greedy and without noise, the others were drawn with different noise."""


@dataclass(frozen=True)
class Generation:
    """A row of Table 3, and what stands behind it."""

    scores: Mapping[str, float]
    """BLEU-1..4, ROUGE-L, METEOR, CIDEr of the greedy questions."""
    n: int
    distinct: float
    """Share of the drawn questions of an example that differ from each other, on average."""
    samples: tuple[Asked, ...]


def evaluate_generator(
    writer: Writer,
    data: Dataset | Sequence[Example],
    *,
    samples: int = 3,
    limit: int | None = None,
    seed: int = 0,
    meteor: bool = True,
) -> Generation:
    """Ask about every picture and its right answer, and compare with what people (or templates) asked.

    Where the data hold rephrasing groups, all wordings of a group are references of its original.
    """
    from pfungst.scores import generation_scores

    references: dict[str, list[str]] = {}
    originals: list[Example] = []
    for one in data:
        if one.group and one.group != one.id:
            references.setdefault(one.group, []).append(one.question)
        else:
            originals.append(one)
            references.setdefault(one.id, []).insert(0, one.question)
    originals = originals[:limit]
    if not originals:
        raise PfungstError("There is no question to compare generated ones with.")
    written = writer.write(originals, 1 + samples, seed, true_answer=True)
    scores = generation_scores(
        [texts[0] for texts in written], [references[one.id] for one in originals], meteor=meteor
    )
    drawn = [len(set(texts[1:])) / len(texts[1:]) for texts in written if len(texts) > 1]
    return Generation(
        scores,
        len(originals),
        sum(drawn) / len(drawn) if drawn else float("nan"),
        tuple(
            Asked(one.id, one.question, one.target or "", tuple(texts))
            for one, texts in zip(originals, written, strict=True)
        ),
    )
