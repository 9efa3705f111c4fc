"""The probes `noise` and `vqabq`: ranked basic questions appended to the main question.

A Novel Framework for Robustness Analysis; Assessing the Robustness of VQA. The hypothesis of `noise`, seven levels of
it: the less similar the appended questions, the larger the noise, so accuracy should fall from the first partition to
the last; R_score (Eq. 8) says how little it falls at the first.

`vqabq`: do good basic questions help? (Section 4 (iii) of Assessing the Robustness of VQA) All main questions are asked
with 0, 1, 2 and 3 basic questions, so that every choice of thresholds can be judged from the stored answers.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, repeat

import numpy as np
import numpy.typing as npt

from pfungst.core import (
    AnsweredTrial,
    Dataset,
    Example,
    Figure,
    Finding,
    Findings,
    ProbeError,
    Table,
    Trial,
    UsageError,
    Variant,
)
from pfungst.core.stats import Floats, compare_paired, holm, interval_of
from pfungst.core.types import BEYOND, POINTS
from pfungst.probes import measure, reading
from pfungst.probes.noise.appending import (
    PARTITIONS,
    THRESHOLDS,
    ScoreStatistics,
    append,
    count_appended,
    partition_names,
    search_thresholds,
    split,
)
from pfungst.probes.noise.bqd import pool_questions
from pfungst.probes.noise.ranked import RankingProbe
from pfungst.probes.noise.ranking import Pool
from pfungst.probes.noise.same import SAME
from pfungst.scores.robustness import robustness

SURE = 0.05
"""Of the corrected p-value of a pair of partitions, for its order to be certain."""
KEEPS = "the answer: the main question still stands first, and a reader knows which is meant (not yet shown to people)"
CONTROLS = {
    "repeat": "the question itself again",
    "filler": "sentences that ask nothing",
    "random": "questions of the pool, drawn at random",
}
"""Variants with as many words appended as the first partition has: what they cost is not due to the ranking."""
FILLER = "This is only a remark. Nothing is asked here. It can be left aside. There is no more to it."
Texts = npt.NDArray[np.object_]
LEFT_OUT = "left out"
"""Name of a trial's note: how many questions of the pool ask the same and were left out."""
TYPES = (("other", "Other"), ("number", "Num"), ("yes/no", "Y/N"))


@dataclass(frozen=True)
class Noise(RankingProbe):
    """Basic questions appended to the question, 7 partitions of 3: accuracy per noise level, R_score."""

    partitions: int = PARTITIONS
    words: int = 0
    """Cut the question after this many words (26 in the papers); 0: never."""
    controls: str = "first"
    """Appended instead, with as many words: the question itself, sentences that ask nothing, random questions.
    `first`: as long as the first partition. `all`: random questions as long as each further partition, too. `none`."""
    same: float = SAME
    fit: bool = False
    """Count only the questions that the player read whole, with whatever was appended."""
    name: str = "noise"

    def check_data(self, data: Dataset) -> None:
        if self.partitions < 1 or self.k < self.partitions:
            raise UsageError(f"{self.k} basic questions cannot make {self.partitions} partitions.")
        if self.controls not in ("first", "all", "none"):
            raise UsageError(f"controls is {self.controls!r}; it can be first, all or none.")
        super().check_data(data)

    def trials(self, data: Dataset, seed: int) -> Iterator[Trial]:
        self.check_data(data)
        rankings = self.rankings(data)
        others = self._others(data) if self.controls != "none" else repeat(np.array([], dtype=object))
        for number, (example, other) in enumerate(zip(data.originals, others, strict=False)):
            query = measure.clean_query(example)
            variants = [Variant("clean", query)]
            notes: dict[str, object] = {LEFT_OUT: rankings[0][number].left_out}
            for ranker, rows in zip(self._rankers(), rankings, strict=True):
                notes[ranker] = {"scores": rows[number].scores, "gap": rows[number].gap}
                parts = split(rows[number].questions, self.partitions)
                for level, (name, basic) in enumerate(zip(self._variants(ranker), parts, strict=True), 1):
                    noisy = replace(query, question=append(example.question, basic, self.words))
                    variants.append(Variant(name, noisy, level=level))
            ours = split(rankings[0][number].questions, self.partitions)
            for name, text in self._controls(example, ours, other, seed):
                control = replace(query, question=append(example.question, [text], self.words))
                variants.append(Variant(name, control, role="control"))
            yield Trial(example.id, tuple(variants), KEEPS, notes)

    def _others(self, data: Dataset) -> Iterator[Texts]:
        """For each question those of the pool that ask for something else."""
        pool = Pool.of(pool_questions(self.pool, data, self.pool_type, self.pool_limit))
        questions = np.array(pool.questions, dtype=object)
        for hidden in pool.excluded([example.question for example in data.originals], self.same, self.known(data)):
            yield np.delete(questions, hidden)

    def _controls(
        self, example: Example, parts: Sequence[Sequence[str]], others: Texts, seed: int
    ) -> Iterator[tuple[str, str]]:
        """Name and text of each control of one question; others: what the random questions are drawn from."""
        if self.controls == "none":
            return
        lengths = [len(" ".join(part).split()) for part in parts]
        yield "repeat", _as_long([example.question], lengths[0])
        yield "filler", _as_long([FILLER], lengths[0])
        if not len(others):
            raise ProbeError(
                f"The pool has no question but {example.question!r:.80} to draw the control `random` from: name "
                "another (pool=DATA), or ask without controls (controls=none)."
            )
        rng = np.random.default_rng([seed, zlib.crc32(example.id.encode())])
        for number, length in enumerate(lengths if self.controls == "all" else lengths[:1]):
            drawn = others[rng.integers(len(others), size=length)].tolist()
            yield " ".join(["random", *([str(number + 1)] if number else [])]), _as_long(drawn, length)

    def findings(self, trials: Sequence[AnsweredTrial], seed: int) -> Findings:
        trials, fitting = self._fitting(trials)
        clean = measure.accuracy(trials, "clean", seed)
        curves = [_Curve.of(ranker, self._variants(ranker), trials, seed) for ranker in self._rankers()]
        # Holm over all partitions of all rankers: one family.
        family = iter(measure.corrected([one for curve in curves for one in curve.drops]))
        curves = [replace(curve, drops=[next(family) for _ in curve.drops]) for curve in curves]
        controls = _Controls.of(curves[0].variants, trials, seed)
        if controls is not None:
            noted = replace(curves[0].drops[0], note=controls.sentence())
            curves[0] = replace(curves[0], drops=[noted, *curves[0].drops[1:]])
        first = curves[0]
        left_out = self._left_out(trials)
        tables = [_partition_table(curve, trials, self.pool_type, seed) for curve in curves]
        tables[0] = replace(tables[0], note=f"{tables[0].note} {left_out}".strip())
        if len(curves) > 1:
            tables.append(_ranker_table(curves))
        if controls is not None:
            tables.insert(0, controls.table())
        reads = reading.read(trials, str, seed)
        if reads:
            tables.insert(0 if controls is None else 1, reading.table(reads, "appended"))
        else:
            tables[0] = replace(tables[0], note=f"{tables[0].note} {reading.UNTOLD}".strip())
        words = next((one.sentence() for one in reads if one.title == first.variants[0]), "")
        said = " ".join(filter(None, (_verdict(self, clean, first, controls), words, fitting, left_out)))
        return Findings(
            self.name,
            (
                clean, *(one for curve in curves for one in curve.findings()),
                *(controls.findings() if controls else ()), *reading.findings(reads),
            ),
            said, clean, first.levels[0], first.drops[0],
            tuple(tables), _figures(clean, curves), measure.worst(trials, "clean", first.variants[0]),
        )  # fmt: skip

    def lost(self, trial: AnsweredTrial) -> float:
        """What the drop is the mean of."""
        first = self._variants(self._rankers()[0])[0]
        return math.nan if self.fit and _is_cut(trial) else trial.scores[0] - trial.of(first)[1]

    def _fitting(self, trials: Sequence[AnsweredTrial]) -> tuple[Sequence[AnsweredTrial], str]:
        """The trials that count, and how many do not."""
        if not self.fit:
            return trials, ""
        if not any(any(trial.readings) for trial in trials):
            return trials, f"{reading.UNTOLD} So none was left out."
        fits = [not _is_cut(trial) for trial in trials]
        if not any(fits):
            raise ProbeError(
                f"The player reads none of the {len(fits):,} questions whole, with all that is appended: append fewer "
                f"basic questions (k={self.partitions}), or ask without fit=yes. The answers are kept."
            )
        some = f"{fits.count(False):,} of {len(fits):,} questions were left out because the player did not read them "
        return measure.chosen(trials, fits), f"{some}whole, with all that was appended."

    def _left_out(self, trials: Sequence[AnsweredTrial]) -> str:
        """How many questions of the pool were no noise; nothing where nobody counted."""
        counts = [one.trial.notes[LEFT_OUT] for one in trials if one.trial.notes.get(LEFT_OUT) is not None]
        if not counts or not (self.same or any(counts)):
            return ""
        some = sum(count > 0 for count in counts)
        share = "" if self.ranked else f", or have at least {self.same:.0%} of the content words in common"
        return (
            f"Questions of the pool that ask the same (other wordings, the same program{share}) were left out: "
            f"{sum(counts) / len(counts):.1f} on average, some for {some:,} of {len(counts):,} questions."
        )

    def _rankers(self) -> list[str]:
        # A ranking that was given is one ranking, whoever made it.
        return self.rankers[:1] if self.ranked else self.rankers

    def _variants(self, ranker: str) -> list[str]:
        prefix = f"{ranker} " if len(self._rankers()) > 1 else ""
        return [prefix + name for name in partition_names(self.partitions)]


def _is_cut(trial: AnsweredTrial) -> bool:
    return any(one is not None and one.cut > 0 for one in trial.readings)


def _as_long(texts: Sequence[str], words: int) -> str:
    """As many words of these texts, over and over. What is cut ends as a whole text does."""
    every = " ".join(texts).split()
    taken = (every * (words // len(every) + 1))[:words]
    end = every[-1][-1]
    return " ".join(taken).rstrip(".,;?") + (end if not end.isalnum() else "")


@dataclass(frozen=True)
class _Controls:
    """What texts of equal length cost, and what the ranked questions cost beyond each of them and beyond their mean."""

    losses: dict[str, Finding]
    beyond: dict[str, Finding]
    headline: Finding

    @classmethod
    def of(cls, variants: Sequence[str], trials: Sequence[AnsweredTrial], seed: int) -> _Controls | None:
        """None where the trials have none, as those of earlier runs."""
        if not all(len(measure.having(trials, name)) for name in CONTROLS):
            return None
        clusters = measure.clusters(trials)
        against = dict.fromkeys(CONTROLS, variants[0])
        for number, level in enumerate(variants[1:], 2):
            if len(measure.having(trials, f"random {number}")):
                against[f"random {number}"] = level
        scores = {name: measure.scores(trials, name) for name in (*against, *against.values())}

        def beyond(control: Floats, level: str, about: str) -> Finding:
            name = "beyond control" if about in against else BEYOND
            return measure.difference(name, control, scores[level], clusters, seed, f"{level}, {about}")

        # Not called drops: they are corrected as a family of their own, and disturb by their form alone.
        costs = [replace(measure.drop(trials, "clean", name, seed), name="cost of control") for name in against]
        losses = measure.corrected(costs)
        apart = measure.corrected([beyond(scores[name], level, name) for name, level in against.items()])
        mean = np.mean([scores[name] for name in CONTROLS], 0)
        return cls(
            dict(zip(against, losses, strict=True)),
            dict(zip(against, apart, strict=True)),
            beyond(mean, variants[0], "mean of controls"),
        )

    def findings(self) -> tuple[Finding, ...]:
        return (self.headline, *self.beyond.values(), *self.losses.values())

    def sentence(self) -> str:
        """To be said wherever the loss is shown."""
        costs = "; ".join(f"{CONTROLS[name]}: {measure.with_interval(self.losses[name])}" for name in CONTROLS)
        return (
            f"Other texts of as many words cost as well ({costs}). Beyond their mean the ranked questions cost "
            f"{measure.with_interval(self.headline)}."
        )

    def table(self) -> Table:
        about = {
            name: f"random questions, as long as {one.condition.split(',')[0]}" for name, one in self.beyond.items()
        }
        rows = [(name, (about | CONTROLS)[name], self.losses[name], one) for name, one in self.beyond.items()]
        return Table(
            "Controls of equal length",
            ("control", "appended instead", "drop", "what the ranked questions cost beyond it"),
            (*rows, ("mean", "mean of the three", "–", self.headline)),
            "Each has as many words as the ranked questions it is compared with, and asks nothing that they ask.",
        )


@dataclass(frozen=True)
class _Curve:
    """Accuracy over the noise levels of one ranker."""

    ranker: str
    variants: list[str]
    levels: list[Finding]
    drops: list[Finding]
    robustness: Finding
    corrected: Finding
    fall: Finding
    trend: Finding
    inversions: Finding
    gaps: list[float]

    @classmethod
    def of(cls, ranker: str, variants: list[str], trials: Sequence[AnsweredTrial], seed: int) -> _Curve:
        gaps = [(one.trial.notes.get(ranker) or {}).get("gap") for one in trials]
        return cls(
            ranker,
            variants,
            [measure.accuracy(trials, name, seed) for name in variants],
            [measure.drop(trials, "clean", name, seed) for name in variants],
            *_robustness(variants[0], trials),
            *_order(ranker, variants, trials),
            [gap for gap in gaps if gap is not None],
        )

    def findings(self) -> tuple[Finding, ...]:
        shape = (self.robustness, self.corrected, self.fall, self.trend, self.inversions)
        return (*self.levels, *self.drops, *shape)


def _robustness(first: str, trials: Sequence[AnsweredTrial]) -> tuple[Finding, Finding]:
    """R_score as in the papers, and corrected for chance; both with the interval of the first."""
    found = robustness(measure.scores(trials, "clean"), measure.scores(trials, first), measure.clusters(trials))
    note = f"A player that loses nothing would score {found.by_chance:.2f} on these questions, by chance."
    score = replace(measure.finding("R_score", found.score, first, unit=""), note=note)
    how = f"loss less what chance adds to it; {score.how}"
    return score, replace(score, name="R_score corrected", value=found.corrected, how=how, note="")


def _order(ranker: str, variants: Sequence[str], trials: Sequence[AnsweredTrial]) -> tuple[Finding, Finding, Finding]:
    """Change of accuracy per level, rank correlation of level and accuracy, and inversions.

    The last two count pairs of levels, most of which no run can tell apart: the interval has every order of a pair that
    is not certain, so that it holds the order of the true accuracies.
    """
    columns = np.asarray([measure.scores(trials, name) for name in variants])
    columns[:, np.isnan(columns).any(0)] = np.nan
    clusters = measure.clusters(trials)
    places = np.arange(len(columns)) - (len(columns) - 1) / 2
    weights = (
        places / float(places @ places) if len(places) > 1 else np.array([math.nan])
    )  # of one level nothing is known
    most = float(np.abs(weights).sum()) / 2
    fall = interval_of(weights @ columns, clusters, bounds=(-most, most))
    about = f"{ranker}: partition and accuracy"
    found = measure.finding("change per level", fall, about, unit=POINTS)
    pairs = [compare_paired(columns[b], columns[a], clusters) for a, b in combinations(range(len(columns)), 2)]
    certain = np.array(holm([one.p for one in pairs])) < SURE
    values = np.array([one.value for one in pairs])
    signs = np.where(np.abs(values) > measure.TINY, np.sign(values), 0 * values)
    rises, falls = (np.where(certain, signs == sign, False).sum() for sign in (1, -1))
    how = f"order of the {len(pairs)} pairs, each certain where its p is below {SURE} after Holm"

    def counted(name: str, value: float, low: float, high: float, condition: str) -> Finding:
        if math.isnan(fall.low) or not pairs:
            low = high = math.nan
        return replace(
            found, name=name, value=value, low=low, high=high, at_least=low, at_most=high, condition=condition, how=how,
            p=None, unit="",
        )  # fmt: skip

    count, unknown = max(1, len(pairs)), bool(np.isnan(values).any())
    tau = float(signs.mean()) if pairs else math.nan
    risen = math.nan if unknown else float((signs > 0).sum())
    return (
        found,
        counted("rank correlation", tau, 2 * rises / count - 1, 1 - 2 * falls / count, about),
        counted("inversions", risen, float(rises), float(len(pairs) - falls), f"{ranker}: of {len(pairs)} pairs"),
    )


def _partition_table(curve: _Curve, trials: Sequence[AnsweredTrial], pool_type: str, seed: int) -> Table:
    note = "Layout of the papers' Table 2. The ranking is effective if accuracy falls from the first to the last row."
    if curve.gaps:
        note += f" Certified duality gap: median {np.median(curve.gaps):.1e}, largest {max(curve.gaps):.1e}."
    rows = [_row(trials, name, seed, lost) for name, lost in zip(curve.variants, curve.drops, strict=True)]
    return Table(
        f"Accuracy by partition ({curve.ranker}, pool: {pool_type})",
        ("partition", *(label for _, label in TYPES), "All", "diff (All)"),
        (*rows, _row(trials, "clean", seed, None)),
        note,
    )


def _ranker_table(curves: Sequence[_Curve]) -> Table:
    return Table(
        "Which ranking is effective?",
        ("ranker", "First", "Last", "R_score", "change per level", "rank correlation", "inversions"),
        tuple((c.ranker, c.levels[0], c.levels[-1], c.robustness, c.fall, c.trend, c.inversions) for c in curves),
        "Rank correlation of partition number and accuracy: -1 where every noisier partition is less accurate.",
    )


def _row(trials: Sequence[AnsweredTrial], variant: str, seed: int, lost: Finding | None) -> tuple[object, ...]:
    cells: list[object] = ["Original" if variant == "clean" else variant]
    kinds = measure.by_kind(trials, "answer_type")
    for kind, _ in TYPES:
        some = kinds.get(kind)
        cells.append(measure.accuracy(some, variant, seed) if some else "–")
    return (*cells, measure.accuracy(trials, variant, seed), lost if lost is not None else "–")


def _figures(clean: Finding, curves: Sequence[_Curve]) -> tuple[Figure, ...]:
    names = partition_names(len(curves[0].levels))
    accuracy = tuple(measure.series(curve.ranker, ("MQ only", *names), (clean, *curve.levels)) for curve in curves)
    decrement = tuple(measure.series(curve.ranker, names, curve.drops) for curve in curves)
    return (
        Figure("Accuracy by noise level", "line", accuracy, "partition", "accuracy"),
        Figure("Accuracy decrement by noise level", "line", decrement, "partition", "decrement, points", POINTS),
    )


def _verdict(probe: Noise, clean: Finding, curve: _Curve, controls: _Controls | None) -> str:
    effective = "falls" if curve.fall.high < 0 else "does not clearly fall"
    score, lost = curve.robustness, curve.drops[0]
    ends = "" if math.isnan(score.low) else f" [{score.low:.2f}, {score.high:.2f}]"
    each = probe.k // probe.partitions
    appended = "most similar question" if each == 1 else f"{each} most similar questions"
    told = (
        f"With the {appended} of the pool appended, accuracy goes from "
        f"{measure.percent(clean.value)} to {measure.percent(curve.levels[0].value)}, a drop of "
        f"{measure.with_interval(lost)}; R_score {score.value:.2f}{ends}, {curve.corrected.value:.2f} corrected for "
        f"chance. {score.note}"
    )
    if controls is not None:
        told = f"{told} {controls.sentence()}"
    if math.isnan(curve.fall.value):
        return told
    return (
        f"{told} Over the {probe.partitions} levels accuracy {effective} with the noise level "
        f"({measure.with_interval(curve.fall)} per level; rank correlation {curve.trend.value:.2f})."
    )


HELPS = "the answer: the main question still stands first, before similar ones (not yet shown to people)"
VARIANTS = ("clean", "1 BQ", "2 BQ", "3 BQ")


@dataclass(frozen=True)
class Vqabq(RankingProbe):
    """Basic questions appended only where their scores pass the thresholds (Algorithm 1): do they help?"""

    k: int = 3
    s1: float = THRESHOLDS[0]
    s2: float = THRESHOLDS[1]
    s3: float = THRESHOLDS[2]
    words: int = 0
    name: str = "vqabq"

    def check_data(self, data: Dataset) -> None:
        if not self.ranked and len(self.rankers) != 1:
            raise UsageError(f"VQABQ takes one ranker, not {self.ranker!r}.")
        if self.k < 3:
            raise UsageError(f"VQABQ appends up to three basic questions, so k must be at least 3, not {self.k}.")
        super().check_data(data)

    def trials(self, data: Dataset, seed: int) -> Iterator[Trial]:
        self.check_data(data)
        for example, row in zip(data.originals, self.rankings(data)[0], strict=True):
            query = measure.clean_query(example)
            variants = [Variant("clean", query)] + [
                Variant(
                    name,
                    replace(query, question=append(example.question, row.questions[:count], self.words)),
                    level=count,
                )
                for count, name in enumerate(VARIANTS[1:], start=1)
            ]
            yield Trial(example.id, tuple(variants), HELPS, {"scores": row.scores, "gap": row.gap})

    def findings(self, trials: Sequence[AnsweredTrial], seed: int) -> Findings:
        scores = np.asarray([one.trial.notes["scores"][:3] for one in trials], dtype=np.float64)
        right = np.asarray([measure.scores(trials, name) for name in VARIANTS])
        groups = measure.clusters(trials)
        thresholds = (self.s1, self.s2, self.s3)
        counts = count_appended(scores, thresholds)
        chosen = _choose(right, counts)
        before = measure.accuracy(trials, "clean", seed)
        after = measure.mean("accuracy", chosen, groups, seed, "VQABQ")
        settled = np.asarray([measure.settled(one) for one in trials]).T
        both = (settled[0], _choose(settled, counts))
        drop = measure.difference("drop", right[0], chosen, groups, seed, "VQABQ", both)
        found, _ = search_thresholds(scores, lambda many: _mean(_choose(right, many)))
        best = _choose(right, count_appended(scores, found))
        statistics = ScoreStatistics.of(scores)
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
