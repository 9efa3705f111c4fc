"""The rephrase probe: every wording of a question must get the same right answer.

Cycle-Consistency for Robust VQA, Section 4: CS(k) is the share of the subsets of k wordings that are all answered
correctly (Eq. 2 and 3). Works on any data set whose examples carry a `group` (VQA-Rephrasings, the world), and on every
other with rephrasings that a generator writes (`pfungst.probes.rephrase.generators`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import ClassVar

from pfungst.core import (
    AnsweredTrial,
    Dataset,
    Figure,
    Finding,
    Findings,
    Probe,
    ProbeError,
    Table,
    Trial,
    UsageError,
    Variant,
)
from pfungst.core.flips import alike
from pfungst.core.stats import Labels
from pfungst.probes import measure
from pfungst.probes.measure import agreement, failures, worst_of_n
from pfungst.probes.rephrase.generators import get_rephraser
from pfungst.probes.rephrase.results import (
    VALIDATED,
    WORDINGS,
    check_judged,
    noted,
    read_validated,
    stability_rows,
    validated_rows,
    word_rows,
    wording_rows,
)

KEEPS = "the answer: all wordings of a group ask the same thing about the same image"
LARGEST_K = 4
"""CS(1) to CS(4), Table 1."""
THRESHOLDS = {"any": 0.0, "0.3": 0.3, "exact": 1.0}


@dataclass(frozen=True)
class Rephrase(Probe):
    """The same question in other words: consensus scores CS(1) to CS(4), ORI, REP, agreement, flips."""

    correct: str = "any"
    """When an answer counts as correct: `any` score above 0 (the paper), `0.3` or more, or `exact` (1)."""
    generator: str = ""
    """Where the wordings come from: the groups of the data set, or `rules`, `world`, `model:PLAYER`, `vqg:FOLDER`."""
    count: int = 3
    """Maximum number of rephrasings that a generator writes per question."""
    least: float | None = None
    """Smallest cosine of the sentence vectors of a rephrasing and its original; the generator's own by default."""
    encoder: str = "skip-thoughts"
    """Encoder of these vectors."""
    validated: str = ""
    """What people said about the rephrasings: the results of a study `validate`, a folder or its validated.jsonl."""
    name: str = "rephrase"
    wordings: ClassVar[bool] = True

    def check_data(self, data: Dataset) -> None:
        """Whether the settings make sense, and there are groups of wordings or a generator that writes them."""
        self._check(data)
        if self.validated:
            check_judged(read_validated(self.validated), data, self.validated)

    def _check(self, data: Dataset) -> None:
        self._is_correct(1.0)
        if self.count < 1:
            raise UsageError(f"The setting count must be at least 1, not {self.count}.")
        if not self.generator and not data.wordings:
            raise ProbeError(
                f"The probe rephrase needs questions in several wordings, but {data.name} has none: its examples have "
                "no group of two or more with one answer. Let a generator write some: rephrase:generator=rules."
            )

    def trials(self, data: Dataset, seed: int) -> Iterator[Trial]:
        self._check(data)
        made = self._generated(data, seed) if self.generator else self._grouped(data)
        judged = read_validated(self.validated) if self.validated else {}
        for trial in made:
            notes = {VALIDATED: noted(trial, judged)} if self.validated else {}
            yield replace(trial, notes={**trial.notes, **notes})

    def _grouped(self, data: Dataset) -> Iterator[Trial]:
        for members in data.wordings:
            yield Trial(
                members[0].id,
                tuple(
                    Variant("clean" if number == 0 else f"rephrasing {number}", measure.clean_query(member), member.id)
                    for number, member in enumerate(members)
                ),
                KEEPS,
                {WORDINGS: [member.wording for member in members]} if any(m.wording for m in members[1:]) else {},
            )

    def _generated(self, data: Dataset, seed: int) -> Iterator[Trial]:
        writer = get_rephraser(self.generator, least=self.least, encoder=self.encoder)
        originals = data.originals.examples
        kind = str(getattr(writer, "wording", ""))
        made = 0
        for example, texts in zip(originals, writer.rephrase(originals, self.count, seed), strict=True):
            if not texts:
                continue
            made += 1
            clean = measure.clean_query(example)
            yield Trial(
                example.id,
                (
                    Variant("clean", clean),
                    *(Variant(f"rephrasing {i}", replace(clean, question=text)) for i, text in enumerate(texts, 1)),
                ),
                writer.keeps,
                {WORDINGS: [example.wording, *([kind] * len(texts))]} if kind else {},
            )
        if not made:
            raise ProbeError(
                f"The generator {self.generator} found no wording that it trusts to keep the answer, for any of the "
                f"{len(originals)} questions of {data.name}."
            )

    def findings(self, trials: Sequence[AnsweredTrial], seed: int) -> Findings:
        known = [one for one in trials if not any(math.isnan(score) for score in one.scores)]
        right = [[self._is_correct(score) for score in one.scores] for one in known]
        groups = measure.clusters(known)
        largest = min(LARGEST_K, max((len(row) for row in right), default=0))
        scores = [self._consensus(k, right, groups, seed) for k in range(1, largest + 1)]
        original = measure.accuracy(trials, "clean", seed)
        everyone = measure.clusters(trials)
        _, _, rep, drop = measure.compared([(one, range(1, len(one.scores))) for one in trials], "rephrasings", seed)
        agreed = measure.mean("agreement", [agreement(one) for one in trials], everyone, seed)
        consistency = measure.mean("correct-consistency", [_pairs_alike(row) for row in right], groups, seed)
        flips = measure.mean("any-flip rate", [_flips(one) for one in trials], everyone, seed)
        worst = worst_of_n(known, seed)
        table = Table(
            "Consensus",
            (*(f"CS({k})" for k in range(1, largest + 1)), "ORI", "REP"),
            ((*scores, original, rep),),
            f"Layout of Table 1 of the paper, {len(trials)} groups. Correct: score {self._rule()}.",
        )
        more = Table(
            "Consistency",
            ("agreement", "correct-consistency", "any-flip rate", "worst of n"),
            ((agreed, consistency, flips, worst),),
            "Agreement: pairs of wordings with the same answer. Correct-consistency: pairs both right or both wrong, "
            "whatever the wrong answers are. Any-flip: groups in which some wording gets another answer than the "
            "original. Worst of n: score of the worst wording.",
        )
        line = measure.series("CS(k)", range(1, largest + 1), scores)
        figure = Figure("Consensus score", "line", (line,), "k", "share of subsets all correct")
        told, kinds = wording_rows(trials, seed)
        trust, stable = stability_rows(trials, seed)
        people, judged, said = validated_rows(trials, seed)
        by_words, read, words = word_rows(trials, seed)
        return Findings(
            self.name,
            (*scores, original, rep, drop, agreed, consistency, flips, worst, *kinds, *read, *judged, *stable),
            f"{_verdict(original, rep, drop, scores, flips)} {words}{said}", original, rep, drop,
            tuple(one for one in (table, told, by_words, people, more, trust) if one is not None), (figure,),
            failures(trials),
        )  # fmt: skip

    def _consensus(self, k: int, right: Sequence[Sequence[bool]], clusters: Labels, seed: int) -> Finding:
        """CS(k) with its interval; groups of fewer than k wordings are left out."""
        values = [math.comb(sum(row), k) / math.comb(len(row), k) if len(row) >= k else math.nan for row in right]
        return measure.mean(f"CS({k})", values, clusters, seed)

    def _is_correct(self, score: float) -> bool:
        if self.correct not in THRESHOLDS:
            raise UsageError(f"The setting correct is one of {', '.join(THRESHOLDS)}, not {self.correct!r}.")
        return score > 0 if self.correct == "any" else score >= THRESHOLDS[self.correct]

    def _rule(self) -> str:
        return "above 0" if self.correct == "any" else f"at least {THRESHOLDS[self.correct]:g}"


def _pairs_alike(row: Sequence[bool]) -> float:
    pairs = list(combinations(row, 2))
    return sum(a == b for a, b in pairs) / len(pairs)


def _flips(one: AnsweredTrial) -> float:
    """1 where some wording gets another answer than the original; NaN where no pair of replies can be compared."""
    first, *rest = one.answers
    known = [same for same in (alike(first, answer) for answer in rest) if not math.isnan(same)]
    return float(0.0 in known) if known else math.nan


def _verdict(original: Finding, rep: Finding, drop: Finding, scores: Sequence[Finding], flips: Finding) -> str:
    last = scores[-1] if scores else None
    sentence = (
        f"Rephrasing costs {measure.with_interval(drop)} of accuracy ({measure.percent(original.value)} to "
        f"{measure.percent(rep.value)}) and changes the answer in {measure.with_interval(flips)} of the groups."
    )
    if last is None:
        return sentence
    return f"{sentence} All wordings are answered correctly in {measure.with_interval(last)} ({last.name})."
