"""What there is to say about a judge at the end of a run: the section "The judge" of the report.

It holds what an accuracy or a drop by a judge is worth: its bounds where judgements are missing, and its correction.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from pfungst.core import Answer, AnsweredTrial, Finding, Findings, Player, Table, Variant
from pfungst.core.stats import Interval, interval_of
from pfungst.core.types import POINTS
from pfungst.probes import measure
from pfungst.scores.agreement import Agreement, agreement, cohen_kappa, corrected_accuracy, corrected_drop, proportion

if TYPE_CHECKING:
    from pfungst.players.judging.judge import Judge, Label

NAME = "judge"
TWICE, PEOPLE = "asked twice", "people"
"""Conditions: the judge against itself, and against human labels."""


@dataclass(frozen=True)
class Judged:
    """One answer that was to be judged."""

    probe: str
    trial: AnsweredTrial
    variant: Variant
    first: bool
    """Whether this is the clean condition of its trial."""
    answer: Answer
    key: str
    """Names the judgement; answers that say the same to the same question share one."""

    @property
    def condition(self) -> str:
        return self.variant.name

    @property
    def cluster(self) -> str:
        return measure.cluster(self.trial)


@dataclass(frozen=True)
class Evidence:
    """All judgements of a run, and what they are held against."""

    judge: Judge
    answers: tuple[Judged, ...]
    seed: int

    @cached_property
    def distinct(self) -> dict[str, Judged]:
        """One answer for every judgement."""
        found: dict[str, Judged] = {}
        for one in self.answers:
            found.setdefault(one.key, one)
        return found

    @cached_property
    def missing(self) -> Counter[str]:
        """Answers without a judgement, by reason."""
        reasons = ("no reply" if why is None else why for why in map(self.judge.judged, self.keys))
        return Counter(why for why in reasons if isinstance(why, str))

    @property
    def keys(self) -> list[str]:
        return [one.key for one in self.answers]

    def twice(self) -> list[tuple[bool, bool, str]]:
        """First and second verdict and image of every judgement that has both."""
        found = []
        for key, one in self.distinct.items():
            again = self.judge.key(one.trial, one.variant, one.answer, take=1)
            pair = (self.judge.judged(key), self.judge.judged(again) if again is not None else None)
            if isinstance(pair[0], bool) and isinstance(pair[1], bool):
                found.append((pair[0], pair[1], one.cluster))
        return found

    @cached_property
    def people(self) -> People:
        """The judge held against the labels."""
        said: dict[str, set[bool]] = {}
        used: set[int] = set()
        changed: set[int] = set()
        for one in self.answers:
            for label in self._labels(one):
                if not label.fits(one.answer.reply):
                    changed.add(id(label))
                    continue
                used.add(id(label))
                said.setdefault(one.key, set()).add(label.right)
        sure = {key: next(iter(words)) for key, words in said.items() if len(words) == 1}
        pairs = [(self.judge.judged(key), right, self.distinct[key].cluster) for key, right in sure.items()]
        known = [(verdict, right, image) for verdict, right, image in pairs if isinstance(verdict, bool)]
        held = None
        if known:
            held = agreement([v for v, *_ in known], [r for _, r, _ in known], [i for *_, i in known], seed=self.seed)
        total, stale = sum(map(len, self.judge.labels.values())), len(changed - used)
        unused = (
            (total - len(used) - stale, "belong to no answer of this run"),
            (stale, "were given to another reply"),
            (len(said) - len(sure), "answers are labelled both right and wrong"),
            (len(pairs) - len(known), "labelled answers have no judgement"),
        )
        told = "; ".join(f"{count} {words}" for count, words in unused if count)
        return People(held, total, f"Of {total} labels some were not used: {told}." if told else "")

    def _labels(self, one: Judged) -> Iterator[Label]:
        for label in self.judge.labels.get(one.trial.example.id, ()):
            fitting = label.condition == one.condition if label.condition else one.first
            if fitting and label.probe in ("", one.probe):
                yield label


@dataclass(frozen=True)
class People:
    """The judge against human labels, and the labels that could not be used."""

    held: Agreement | None
    labels: int
    sentence: str
    """What became of labels that were not used; empty where all were."""


def findings(judge: Judge, trials: Mapping[str, Sequence[AnsweredTrial]], player: Player, seed: int) -> Findings:
    """The rows, tables and words about a judge."""
    evidence = Evidence(judge, tuple(_judged(judge, trials)), seed)
    people = evidence.people if judge.labels else None
    held = people.held if people is not None else None
    gone = sum(evidence.missing.values())
    missing = _finding("missing", proportion(gone, len(evidence.answers)))
    again = _twice(evidence)
    against = _against(held)
    accuracies, accuracy_rows = accuracy_table(trials, held, evidence.answers, seed)
    drops, drop_rows = drop_table(trials, held, evidence.answers, seed)
    own = _own_probability(evidence)
    tables = [
        _said(evidence, own),
        *([Table("Asked twice", ("n", "same verdict", "Cohen's kappa"), ((again[0].n, *again),))] if again else []),
        *([_people_table(people, against)] if people is not None and held is not None else []),
        accuracies,
        *([drops] if drops.rows else []),
    ]
    rows = (missing, *own, *again, *against, *accuracy_rows, *drop_rows)
    words = _verdict(judge, player, evidence, again, people, against, accuracy_rows)
    return Findings(NAME, rows, words, tables=tuple(tables))


def _judged(judge: Judge, trials: Mapping[str, Sequence[AnsweredTrial]]) -> Iterator[Judged]:
    for probe, answered in trials.items():
        for trial in answered:
            for place, (variant, answer) in enumerate(zip(trial.trial.variants, trial.answers, strict=True)):
                key = judge.key(trial, variant, answer)
                if key is not None:
                    yield Judged(probe, trial, variant, place == 0, answer, key)


def _finding(name: str, interval: Interval, condition: str = "", unit: str = "%") -> Finding:
    return replace(measure.finding(name, interval, condition), unit=unit)


def _twice(evidence: Evidence) -> tuple[Finding, ...]:
    pairs = evidence.twice()
    if not pairs:
        return ()
    images = [image for *_, image in pairs]
    same = interval_of([float(a == b) for a, b, _ in pairs], images)
    kappa = cohen_kappa([a for a, *_ in pairs], [b for _, b, _ in pairs], images, seed=evidence.seed)
    return _finding("same verdict", same, TWICE), _finding("kappa", kappa, TWICE, "")


def _against(held: Agreement | None) -> tuple[Finding, ...]:
    if held is None:
        return ()
    return (
        _finding("sensitivity", held.sensitivity),
        _finding("specificity", held.specificity),
        _finding("same verdict", held.share, PEOPLE),
        _finding("kappa", held.kappa, PEOPLE, ""),
    )


def _own_probability(evidence: Evidence) -> tuple[Finding, ...]:
    told = [(evidence.judge.confidence(key), one.cluster) for key, one in evidence.distinct.items()]
    known = [(value, image) for value, image in told if value is not None]
    if not known:
        return ()
    return (_finding("own probability", interval_of([v for v, _ in known], [i for _, i in known])),)


def _said(evidence: Evidence, own: Sequence[Finding]) -> Table:
    words = Counter(verdict for verdict in map(evidence.judge.judged, evidence.keys) if isinstance(verdict, bool))
    reasons = ("no reply", "neither word", "both words")
    return Table(
        "What the judge said",
        ("answers", "judgements", "right", "wrong", *reasons, *(["its own probability"] if own else [])),
        ((len(evidence.answers), len(evidence.distinct), words[True], words[False],
          *(evidence.missing[reason] for reason in reasons), *own),),
        "Answers that say the same to the same question share one judgement. No reply, neither word and both words are "
        "missing judgements: they count as unknown, never as right or wrong.",
    )  # fmt: skip


def _people_table(people: People, against: Sequence[Finding]) -> Table:
    held = people.held
    assert held is not None
    return Table(
        "Held against people",
        ("labels used", "right", "called right", "wrong", "called wrong", "sensitivity", "specificity", "same verdict",
         "Cohen's kappa"),
        ((held.n, held.right, held.right_called_right, held.wrong, held.wrong_called_wrong, *against),),
        people.sentence,
    )  # fmt: skip


def _verdict(
    judge: Judge,
    player: Player,
    evidence: Evidence,
    again: Sequence[Finding],
    people: People | None,
    against: Sequence[Finding],
    accuracies: Sequence[Finding],
) -> str:
    told = [f"{judge.player.name} judged {len(evidence.answers):,} answers."]
    if same_model(judge.player, player):
        told.append(
            "It is the model that gave the answers: models favour what they said themselves, so let another one judge."
        )
    gone = sum(evidence.missing.values())
    if gone:
        reasons = ", ".join(f"{reason}: {count:,}" for reason, count in evidence.missing.most_common())
        told.append(f"{gone:,} judgements are missing ({reasons}) and left out of all numbers.")
    if again:
        told.append(
            f"Asked twice, it gave the same verdict in {measure.with_interval(again[0])} of {again[0].n:,} cases "
            f"(kappa {_plain(again[1])})."
        )
    if people is None:
        told.append(
            "Without human labels (labels=FILE) nobody knows how often it is wrong: its numbers are an opinion."
        )
    elif people.held is None:
        told.append(f"None of the {people.labels} human labels belongs to an answer that was judged.")
    else:
        told.append(
            f"Against {people.held.n:,} human labels: sensitivity {measure.with_interval(against[0])}, specificity "
            f"{measure.with_interval(against[1])}, kappa {_plain(against[3])}."
        )
        why = people.held.no_correction
        corrected = [row for row in accuracies if row.name == "corrected accuracy" and not math.isnan(row.value)]
        if why:
            told.append(f"No correction is possible: {why}.")
        elif corrected:
            told.append(
                f"Corrected for its errors, {corrected[0].condition} is {measure.with_interval(corrected[0])} right."
            )
        else:
            told += [f"N{row.how[1:]}." for row in accuracies if row.how.startswith("no correction: ")][:1]
        if people.sentence:
            told.append(people.sentence)
    return " ".join(told)


def same_model(judge: Player, player: Player) -> bool:
    """Whether a judge judges itself, as far as names tell: `Qwen/Qwen3-VL` and `qwen3-vl` are one model."""
    if judge.fingerprint == player.fingerprint:
        return True
    names = [one.name.rpartition("/")[2].casefold().strip() for one in (judge, player)]
    return names[0] == names[1] != ""


def _plain(one: Finding) -> str:
    if math.isnan(one.value):
        return "undefined: only one word was said"
    return f"{one.value:.2f}" if math.isnan(one.low) else f"{one.value:.2f} [{one.low:.2f}, {one.high:.2f}]"


def accuracy_table(
    trials: Mapping[str, Sequence[AnsweredTrial]], held: Agreement | None, answers: Sequence[Judged], seed: int
) -> tuple[Table, list[Finding]]:
    """Every accuracy, and the findings that other probes do not have."""
    judged = {(one.probe, one.condition, id(one.trial)) for one in answers}
    rows, found = [], []
    for probe, condition in conditions(trials):
        some = measure.having(trials[probe], condition)
        plain = measure.accuracy(some, condition, seed)
        scores, clusters = measure.scores(some, condition), measure.clusters(some)
        gone = [math.isnan(s) and (probe, condition, id(t)) in judged for s, t in zip(scores, some, strict=True)]
        known = [score for score in scores if not math.isnan(score)]
        name, cells = f"{probe}: {condition}", []
        if any(gone):
            n = len(known) + sum(gone)
            bounds = (sum(known) / n, (sum(known) + sum(gone)) / n)
            cells = [Finding(f"accuracy if missing are {word}", value, n, condition=name)
                     for word, value in zip(("wrong", "right"), bounds)]  # fmt: skip
        corrected = []
        if held is not None:
            interval = corrected_accuracy(scores, clusters, held, seed=seed)
            corrected = [measure.finding("corrected accuracy", interval, name)]
        rows.append((probe, condition, plain.n, plain, sum(gone), *(cells or ("", "")), *corrected))
        found += [*cells, *corrected]
    columns = ("probe", "condition", "n", "judged right", "missing", "if missing are wrong", "if missing are right")
    return Table("Accuracy by the judge", _with_correction(columns, held), tuple(rows), _note(held)), found


def drop_table(
    trials: Mapping[str, Sequence[AnsweredTrial]], held: Agreement | None, answers: Sequence[Judged], seed: int
) -> tuple[Table, list[Finding]]:
    """Every drop from the clean condition."""
    judged = {(one.probe, one.condition, id(one.trial)) for one in answers}
    rows, found = [], []
    for probe, clean, condition in _pairs(trials):
        some = measure.having(measure.having(trials[probe], clean), condition)
        plain = measure.drop(some, clean, condition, seed)
        pairs = [tuple(_range(t.of(one)[1], (probe, one, id(t)) in judged) for one in (clean, condition)) for t in some]
        # The least drop there can be: missing clean answers wrong, missing disturbed ones right; and the other way.
        usable = [(a, b) for a, b in pairs if a is not None and b is not None]
        gone = sum(a[0] != a[1] or b[0] != b[1] for a, b in usable)
        name, cells = f"{probe}: {condition}", []
        if gone:
            least = sum(a[0] - b[1] for a, b in usable) / len(usable)
            most = sum(a[1] - b[0] for a, b in usable) / len(usable)
            cells = [Finding(f"{word} drop with missing counted", value, len(usable), condition=name, unit=POINTS)
                     for word, value in (("least", least), ("largest", most))]  # fmt: skip
        corrected = []
        if held is not None:
            scores = (measure.scores(some, clean), measure.scores(some, condition))
            interval = corrected_drop(*scores, measure.clusters(some), held, seed=seed)
            corrected = [measure.finding("corrected drop", interval, name, unit=POINTS)]
        rows.append((probe, condition, plain.n, plain, gone, *(cells or ("", "")), *corrected))
        found += [*cells, *corrected]
    columns = ("probe", "condition", "n", "drop", "missing", "least possible", "largest possible")
    return Table("Drops by the judge", _with_correction(columns, held), tuple(rows), _note(held)), found


def conditions(trials: Mapping[str, Sequence[AnsweredTrial]]) -> list[tuple[str, str]]:
    """Probe and condition, in the order they were asked."""
    found = {(probe, v.name): None for probe, some in trials.items() for trial in some for v in trial.trial.variants}
    return list(found)


def _pairs(trials: Mapping[str, Sequence[AnsweredTrial]]) -> list[tuple[str, str, str]]:
    found: dict[tuple[str, str, str], None] = {}
    for probe, some in trials.items():
        for trial in some:
            clean, *others = (variant.name for variant in trial.trial.variants)
            found.update(((probe, clean, other), None) for other in others)
    return list(found)


def _range(score: float, judged: bool) -> tuple[float, float] | None:
    """The scores an answer may have: its own, any where the judgement is missing, none where the truth is unknown."""
    if not math.isnan(score):
        return score, score
    return (0.0, 1.0) if judged else None


def _with_correction(columns: tuple[str, ...], held: Agreement | None) -> tuple[str, ...]:
    return (*columns, "corrected") if held is not None else columns


def _note(held: Agreement | None) -> str:
    if held is None:
        return ""
    if held.no_correction:
        return f"No correction is possible: {held.no_correction}."
    return (
        "Corrected: Rogan and Gladen's estimate, with sensitivity and specificity from the human labels. It holds "
        "where the judge errs here as often as on the labelled answers."
    )
