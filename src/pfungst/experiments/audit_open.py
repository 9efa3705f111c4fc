"""How far the question alone gets on open questions: what a data set's answers give away without its images.

Learnt on training questions, asked about other images, judged by the metric of the data set. Three answers, from the
bluntest on: the most common answer of all, the most common one for the type of question, and a network that reads the
words of the question and nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pfungst.core import Answer, Example, Image
from pfungst.core.flips import normalise
from pfungst.core.stats import Interval, interval_of
from pfungst.core.types import Progress, no_progress
from pfungst.experiments.study import cell
from pfungst.scores.metrics import get_metric

Judge = Callable[[Example, Answer], float]
MOST_ANSWERS = 3000
"""Answers that the network can give, the most frequent ones (VQA papers take 1,000 to 3,129)."""
_TYPES = 6
"""Most answer types that get a column."""


@dataclass(frozen=True)
class OpenRow:
    """One way to answer without the image."""

    name: str
    score: Interval
    by_type: Mapping[str, Interval]
    """Answer type -> score, where the data set has types."""
    note: str = ""


@dataclass(frozen=True)
class OpenAudit:
    """What the question alone gets."""

    metric: str
    train: int
    test: int
    shared: int
    """Training questions left out because they are about an image of the test."""
    reach: Interval
    """What the best answer that training questions have would score: nobody who only knows these answers gets more."""
    rows: tuple[OpenRow, ...]

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Columns and rows, in percent."""
        types = list(dict.fromkeys(name for row in self.rows for name in row.by_type))
        rows = [
            (row.name, cell(row.score), *(cell(row.by_type[t]) if t in row.by_type else "" for t in types))
            for row in self.rows
        ]
        return ("open questions", "all", *types), rows

    def verdict(self) -> str:
        best = max(self.rows, key=lambda row: row.score.value)
        first = self.rows[0]
        more = f"; {first.name} alone gets {cell(first.score)}" if best is not first else ""
        return (
            f"Open questions: {cell(best.score)} by the metric {self.metric} without the image ({best.name}){more}. "
            f"Answers of the training questions reach {cell(self.reach)} at most."
        )


def audit_open(
    train: Sequence[Example],
    test: Sequence[Example],
    metric: str,
    *,
    learn: bool = True,
    seed: int = 0,
    device: str = "cpu",
    progress: Progress = no_progress,
) -> OpenAudit | None:
    """Answer the test questions from the training questions alone; None where nothing is left to learn from.

    Training questions about images of the test are left out. learn: train the network too (needs torch).
    """
    judge = get_metric(metric)
    apart = other_images(train, test)
    learnt, asked = ([one for one in part if one.target and one.target.strip()] for part in (apart, test))
    if not learnt or not asked:
        return None
    images = [one.image_id or one.id for one in asked]
    types = [name for name, _ in Counter(one.answer_type for one in asked if one.answer_type).most_common(_TYPES)]

    def row(name: str, answers: Sequence[str], note: str) -> OpenRow:
        scores = [judge(one, Answer(text)) for one, text in zip(asked, answers, strict=True)]
        by_type = {}
        for kind in types if len(types) > 1 else ():
            here = [at for at, one in enumerate(asked) if one.answer_type == kind]
            by_type[kind] = interval_of([scores[at] for at in here], [images[at] for at in here])
        return OpenRow(name, interval_of(scores, images), by_type, note)

    common, priors = priors_of(learnt, judge)
    rows = [
        row(f"most common answer ({common[:40]})", [common] * len(asked), "the same answer to every question"),
        row("most common of the question type", [priors.get(question_type(one), common) for one in asked],
            f"{len(priors)} types of question"),
    ]  # fmt: skip
    if learn:
        from pfungst.experiments.audit_training import answer_from_words

        answers, note = answer_from_words(learnt, asked, judge, seed=seed, device=device, progress=progress)
        rows.append(row("question only, learnt", answers, note))
    known = set(map(normalise, known_answers(learnt)))
    best = [max((score for name, score in worth(one, judge).items() if name in known), default=0.0) for one in asked]
    reach = interval_of(best, images)
    return OpenAudit(metric, len(learnt), len(asked), len(train) - len(apart), reach, tuple(rows))


def most_common(counts: Mapping[str, float]) -> str:
    """The most frequent text; of equals the first in the alphabet."""
    return min(counts, key=lambda text: (-counts[text], text))


def other_images(train: Sequence[Example], test: Sequence[Example]) -> list[Example]:
    """The training examples whose image is none of the test's. An id that names another image there is no match."""
    asked: dict[str, Image | None] = {one.image_id: one.image for one in test if one.image_id}
    same: dict[str, bool] = {}

    def met(one: Example) -> bool:
        if one.image_id not in asked:
            return False
        if one.image_id not in same:
            here, there = one.image, asked[one.image_id]
            same[one.image_id] = here is None or there is None or here.digest == there.digest
        return same[one.image_id]

    return [one for one in train if not met(one)]


def question_type(example: Example) -> str:
    """The type that the data set gives, else the first two words."""
    return example.question_type or " ".join(example.question.lower().split()[:2])


def priors_of(examples: Sequence[Example], judge: Judge) -> tuple[str, dict[str, str]]:
    """The most common answer, and that of every question type. An answer counts what it is worth to a question."""
    spelled = {normalise(text): text for text in reversed(known_answers(examples))}
    total: dict[str, float] = {}
    by_type: dict[str, dict[str, float]] = {}
    for one in examples:
        here = by_type.setdefault(question_type(one), {})
        for name, value in worth(one, judge).items():
            if name in spelled:
                total[spelled[name]] = total.get(spelled[name], 0.0) + value
                here[spelled[name]] = here.get(spelled[name], 0.0) + value
    common = most_common(total or Counter(str(one.target) for one in examples))
    return common, {kind: most_common(counts) for kind, counts in by_type.items() if counts}


def known_answers(examples: Sequence[Example]) -> list[str]:
    """The answers that training questions have, most frequent first, each in its most frequent spelling."""
    spelled: dict[str, Counter[str]] = {}
    for one in examples:
        spelled.setdefault(normalise(one.target), Counter())[str(one.target)] += 1
    ranked = sorted(spelled, key=lambda name: (-spelled[name].total(), name))[:MOST_ANSWERS]
    return [most_common(spelled[name]) for name in ranked]


def worth(example: Example, judge: Judge) -> dict[str, float]:
    """What each answer that somebody gave is worth, by its normal form; 0 for all others."""
    texts = {normalise(text): text for text in (*example.answers, str(example.target))}
    scores = {name: judge(example, Answer(text)) for name, text in texts.items()}
    return {name: score for name, score in scores.items() if score > 0}
