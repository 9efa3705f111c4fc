"""VQABQ as a probe: do good basic questions help? (Section 4 (iii) of Assessing the Robustness of VQA)

All main questions are asked with 0, 1, 2 and 3 basic questions, so that every choice of thresholds can be judged from
the stored answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pfungst.core import (
    AnsweredTrial,
    Dataset,
    Figure,
    Findings,
    Probe,
    Progress,
    Table,
    Trial,
    UsageError,
    Variant,
)
from pfungst.probes import measure
from pfungst.probes.noise import vqabq
from pfungst.probes.noise.cache import check_rankable, rank_for, rankers_of
from pfungst.probes.noise.partitions import append
from pfungst.probes.noise.probe import TYPES
from pfungst.probes.noise.ranking import GAP, LAMBDA

KEEPS = "the answer: the main question stands unchanged at the front of similar questions"
VARIANTS = ("clean", "1 BQ", "2 BQ", "3 BQ")


@dataclass(frozen=True)
class Vqabq(Probe):
    """Basic questions appended only where their scores pass the thresholds (Algorithm 1): do they help?"""

    ranker: str = "lasso"
    encoder: str = ""
    pool: str = ""
    pool_type: str = "all"
    pool_limit: int = 0
    """Only the first N questions of the pool; 0: all. A limit on the exam does not make the pool smaller."""
    ranked: str = ""
    s1: float = vqabq.THRESHOLDS[0]
    s2: float = vqabq.THRESHOLDS[1]
    s3: float = vqabq.THRESHOLDS[2]
    words: int = 0
    lam: float = LAMBDA
    tol: float = GAP
    name: str = "vqabq"
    k: int = 3
    keep_main_questions: bool = False

    def check_data(self, data: Dataset) -> None:
        if not self.ranked and len(rankers_of(self)) != 1:
            raise UsageError(f"VQABQ takes one ranker, not {self.ranker!r}.")
        if self.k < 3:
            raise UsageError(f"VQABQ appends up to three basic questions, so k must be at least 3, not {self.k}.")
        check_rankable(self, data)

    def prepare(self, data: Dataset, seed: int, progress: Progress) -> None:
        """Rank the pool."""
        rank_for(self, data, progress)

    def trials(self, data: Dataset, seed: int) -> Iterator[Trial]:
        self.check_data(data)
        for example, row in zip(data.originals, rank_for(self, data)[0], strict=True):
            query = measure.clean_query(example)
            variants = [Variant("clean", query)] + [
                Variant(
                    name,
                    replace(query, question=append(example.question, row.questions[:count], self.words)),
                    level=count,
                )
                for count, name in enumerate(VARIANTS[1:], start=1)
            ]
            yield Trial(example.id, tuple(variants), KEEPS, {"scores": row.scores, "gap": row.gap})

    def findings(self, trials: Sequence[AnsweredTrial], seed: int) -> Findings:
        scores = np.asarray([one.trial.notes["scores"][:3] for one in trials], dtype=np.float64)
        right = np.asarray([measure.scores(trials, name) for name in VARIANTS])
        groups = measure.clusters(trials)
        thresholds = (self.s1, self.s2, self.s3)
        counts = vqabq.count_appended(scores, thresholds)
        chosen = _choose(right, counts)
        before = measure.accuracy(trials, "clean", seed)
        after = measure.mean("accuracy", chosen, groups, seed, "VQABQ")
        settled = np.asarray([measure.settled(one) for one in trials]).T
        both = (settled[0], _choose(settled, counts))
        drop = measure.difference("drop", right[0], chosen, groups, seed, "VQABQ", both)
        found, _ = vqabq.search_thresholds(scores, lambda many: _mean(_choose(right, many)))
        best = _choose(right, vqabq.count_appended(scores, found))
        statistics = vqabq.ScoreStatistics.of(scores)
        table5 = Table(
            "Scores of the ranked questions",
            ("", "score1", "score2/score1", "score3/score2"),
            (("avg", *statistics.mean), ("std", *statistics.std)),
            "Layout of Table 5.",
        )
        totals = np.bincount(counts, minlength=4)
        table6 = Table(
            "How many basic questions are appended",
            ("", "0 BQ", "1 BQ", "2 BQ", "3 BQ"),
            (("# Q", *totals.tolist()), ("share", *(f"{100 * share:.2f}%" for share in totals / len(trials)))),
            f"Layout of Table 6, thresholds {thresholds}.",
        )
        table7 = Table(
            "Accuracy",
            ("(s1, s2, s3)", "", *(label for _, label in TYPES), "All"),
            (
                (str(thresholds), "before", *_by_type(trials, right[0], "before", seed)),
                (str(thresholds), "after", *_by_type(trials, chosen, "VQABQ", seed)),
                (_text(found), "after, best of the search", *_by_type(trials, best, "best", seed)),
            ),
            "Layout of Table 7. The search is over avg - std, avg, avg + std and the papers' thresholds, on the "
            "examined questions themselves: its accuracy is optimistic.",
        )
        accuracies = [measure.accuracy(trials, name, seed) for name in VARIANTS]
        series = measure.series("accuracy", VARIANTS, accuracies)
        gain = replace(drop, value=0.0 - drop.value, low=0.0 - drop.high, high=0.0 - drop.low)
        verdict = (
            f"Algorithm 1 appends basic questions to {int((counts > 0).sum())} of {len(trials)} questions; accuracy "
            f"changes by {measure.with_interval(gain)}."
        )
        figure = Figure("Accuracy when basic questions are appended to all", "bar", (series,), "", "accuracy")
        return Findings(
            self.name, (*accuracies, after, drop), verdict, before, after, drop, (table5, table6, table7), (figure,),
            measure.worst(trials, "clean", "1 BQ"),
        )  # fmt: skip


def _choose(right: npt.NDArray[np.float64], counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The score of each question with its number of basic questions."""
    return np.asarray(right[counts, np.arange(len(counts))])


def _by_type(
    trials: Sequence[AnsweredTrial], right: npt.NDArray[np.float64], condition: str, seed: int
) -> tuple[object, ...]:
    """Accuracy on Other, Num, Y/N and all questions; a dash where there are none of a type."""
    groups = measure.clusters(trials)
    types = [one.example.answer_type for one in trials]

    def over(places: Sequence[int]) -> object:
        if not places:
            return "–"
        return measure.mean("accuracy", right[places], [groups[i] for i in places], seed, condition)

    kinds = [[i for i, kind in enumerate(types) if kind == wanted] for wanted, _ in TYPES]
    return tuple(over(places) for places in (*kinds, list(range(len(trials)))))


def _mean(scores: npt.NDArray[np.float64]) -> float:
    known = scores[~np.isnan(scores)]
    return float(known.mean()) if len(known) else float("nan")


def _text(thresholds: Sequence[float]) -> str:
    return "(" + ", ".join(f"{value:.2f}" for value in thresholds) + ")"
