"""How well a question generator asks: Table 3 of Cycle-Consistency for Robust VQA, and samples with different noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pfungst.core import Example, PfungstError, Table
from pfungst.core.types import Progress
from pfungst.experiments.base import Experiment, argument, option

if TYPE_CHECKING:
    from pfungst.training.cycle import Writer

SHOWN = 5
"""Examples in the table of samples."""


@dataclass(frozen=True)
class QuestionsConfig:
    """Table 3: how well the question generator of a cycle-trained model asks, and what it asks."""

    model: Path = argument()
    """Folder that pfungst train MODEL --cycle wrote."""
    data: str = option("world", "--data", "-d")
    """Data set whose questions are asked."""
    samples: int = 3
    """Questions drawn with different noise."""
    meteor: bool = True
    """METEOR too, whose word lists take a while."""
    limit: int | None = 500
    """Only the first so many questions."""
    images: Path | None = None
    """Folder or archive of the images, where it is not beside the data."""
    skip_bad: bool = False
    """Leave bad records out and count them."""
    device: str = "cpu"
    """cpu, cuda, cuda:1, mps."""
    seed: int = 0
    """Seed of every random choice."""


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

    model: str
    scores: Mapping[str, float]
    """BLEU-1..4, ROUGE-L, METEOR, CIDEr of the greedy questions."""
    n: int
    distinct: float
    """Share of the drawn questions of an example that differ from each other, on average."""
    samples: tuple[Asked, ...]


def evaluate_generator(writer: Writer, data: Sequence[Example], config: QuestionsConfig) -> Generation:
    """Ask about every image and its right answer, and compare with what people (or templates) asked.

    Where the data hold rephrasing groups, all wordings of a group are references of its original.
    """
    from pfungst.scores import generation_scores

    references: dict[str, list[str]] = {}
    originals: list[Example] = []
    for example in data:
        if example.group and example.group != example.id:
            references.setdefault(example.group, []).append(example.question)
        else:
            originals.append(example)
            references.setdefault(example.id, []).insert(0, example.question)
    originals = originals[: config.limit]
    if not originals:
        raise PfungstError("There is no question to compare generated ones with.")
    written = writer.write(originals, 1 + config.samples, config.seed, true_answer=True)
    scores = generation_scores(
        [texts[0] for texts in written], [references[one.id] for one in originals], meteor=config.meteor
    )
    drawn = [len(set(texts[1:])) / len(texts[1:]) for texts in written if len(texts) > 1]
    return Generation(
        writer.trained.name,
        scores,
        len(originals),
        sum(drawn) / len(drawn) if drawn else float("nan"),
        tuple(
            Asked(one.id, one.question, one.target or "", tuple(texts))
            for one, texts in zip(originals, written, strict=True)
        ),
    )


def run(config: QuestionsConfig, out: Path, *, progress: Progress) -> Generation:
    """Write questions and compare them."""
    from pfungst.data import load
    from pfungst.training.cycle import Writer

    data = load(config.data, images=config.images, skip_bad=config.skip_bad)
    progress("generated questions", 0, 1)
    found = evaluate_generator(Writer.load(str(config.model), config.device), data, config)
    progress("generated questions", 1, 1)
    return found


def tables(result: Generation) -> list[Table]:
    """Table 3, and the first examples."""
    scores = tuple(f"{value:.3f}" for value in result.scores.values())
    shown = [
        (asked.question, asked.answer, "with noise" if number else "without noise", text)
        for asked in result.samples[:SHOWN]
        for number, text in enumerate(asked.written)
    ]
    return [
        Table(f"Question generation, n = {result.n}", ("model", *result.scores), ((result.model, *scores),)),
        Table(
            "Samples",
            ("question", "answer", "drawn", "generated question"),
            tuple(shown),
            f"{result.distinct:.0%} of the drawn questions of an example differ from each other.",
        ),
    ]


EXPERIMENT = Experiment("questions", QuestionsConfig, run, tables)
