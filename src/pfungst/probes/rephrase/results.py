"""What the answers to rephrasings say, beside consensus: seen and held-out wordings, people's judgements, stability.

Judgements come from `pfungst study results` of a study `validate` or `rephrase` (`validated.jsonl`), or from any table
with the same columns. They travel in the notes of the trials, so a case of the report can show them.

Stability is a confidence that costs a black box a few questions and needs no truth: the share of the rephrasings that
get the answer of the original. Beside it stands the player's own confidence, where it states one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pfungst.core import AnsweredTrial, DataError, Dataset, Finding, ProbeError, Reading, Table, Trial
from pfungst.core.flips import alike
from pfungst.core.stats import Floats, Labels, resampled
from pfungst.probes import measure, reading
from pfungst.probes.rephrase.generators import plain
from pfungst.rows import cells
from pfungst.rows.fields import Bad
from pfungst.rows.source import open_source
from pfungst.scores import risk_coverage
from pfungst.scores.selective import RISKS

WORDINGS = "wordings"
"""Name of a trial's note: the wording of every variant, in order."""
ALL_WORDINGS = "all rephrasings"
TITLES = {"train": "seen wordings", "heldout": "held-out wordings", "forms": "new forms of seen words"}


def wording_rows(trials: Sequence[AnsweredTrial], seed: int) -> tuple[Table | None, tuple[Finding, ...]]:
    """Accuracy and loss of the rephrasings of either kind; nothing where the data do not say which is which.

    A group counts in a row when it has a rephrasing of that kind, and is compared with its own original.
    """
    told = [(one, one.trial.notes.get(WORDINGS, ())) for one in trials]
    rows: list[tuple[object, ...]] = []
    found: list[Finding] = []
    for kind, title in TITLES.items():
        some = [
            (one, [at for at, name in enumerate(names) if at and name == kind])
            for one, names in told
            if kind in names[1:]
        ]
        if not some:
            continue
        count, first, accuracy, drop = measure.compared(some, title, seed)
        rows.append((title, count, len(some), first, accuracy, drop))
        found += [accuracy, drop]
    if not rows:
        return None, ()
    table = Table(
        "Seen and held-out wordings",
        ("rephrasings", "how many", "groups", "accuracy of their originals", "accuracy", "drop"),
        tuple(rows),
        "Seen: worded as the training questions of the data set are. Held-out: in words and sentences kept from them. "
        "New forms: in sentences kept from them, but in their words.",
    )
    return table, tuple(found)


def word_rows(trials: Sequence[AnsweredTrial], seed: int) -> tuple[Table | None, tuple[Finding, ...], str]:
    """Accuracy and loss of the rephrasings whose words the player all knows, and of the others, for either kind of
    wording; nothing where the player does not tell."""
    every = list(reading.told(trials))
    if not every:
        return None, (), reading.UNTOLD
    (read,) = reading.read(trials, lambda _: ALL_WORDINGS, seed)
    of_kind: dict[str, list[reading.Part]] = {}
    for kind, title in TITLES.items():
        of_kind[title] = [(one, some) for one, places in every if (some := _worded(one, places, kind))]
    rows: list[tuple[object, ...]] = []
    found: list[Finding] = list(reading.findings([read]))
    said: list[str] = []
    for title, worded in (of_kind | {ALL_WORDINGS: every}).items():
        for words, fits in (("all words known", _known), ("some word unknown", _unknown)):
            part = list(reading.parts(worded, fits))
            if not part:
                continue
            count, first, accuracy, drop = measure.compared(part, f"{title}, {words}", seed)
            rows.append((title, words, count, len(part), first, accuracy, drop))
            found += [accuracy, drop]
            if title == ALL_WORDINGS:
                which = "whose words it all knows" if fits is _known else "with an unknown word"
                said.append(f"{measure.with_interval(accuracy)} of {count:,} rephrasings {which}")
    table = Table(
        "Known and unknown words",
        ("rephrasings", "words", "how many", "groups", "accuracy of their originals", "accuracy", "drop"),
        tuple(rows),
        "Unknown: the player has no entry of its own for it. Every row is compared with the originals of its own "
        f"groups. Cut because they are longer than the player reads: {measure.percent(read.cut.value)}.",
    )
    return table, tuple(found), f"It answers {', and '.join(said)} correctly."


def _worded(trial: AnsweredTrial, places: Sequence[int], kind: str) -> list[int]:
    names = trial.trial.notes.get(WORDINGS)
    return [at for at in places if names and names[at] == kind]


def _known(one: Reading) -> bool:
    return one.unknown == 0


def _unknown(one: Reading) -> bool:
    return one.unknown > 0


FILE = "validated.jsonl"
"""In the folder that `pfungst study results --out` writes."""
VALIDATED = "validated"
"""Name of a trial's note: what people said about every variant, in order; None where nobody was asked."""
COLUMNS = ("original", "question", "text", "judged", "meaning", "answer", "grammar", "valid")


@dataclass(frozen=True, slots=True)
class Votes:
    """One rephrasing in the eyes of people: how many judged it, and how many of them found no fault."""

    judged: int
    meaning: int
    answer: int
    grammar: int
    valid: int
    """Found no fault at all."""

    def most(self, field: str) -> bool:
        """Whether at least half of the people say so."""
        return 2 * int(getattr(self, field)) >= self.judged

    def __add__(self, other: Votes) -> Votes:
        return Votes(*(a + b for a, b in zip(asdict(self).values(), asdict(other).values(), strict=True)))


Judged = Mapping[tuple[str, str], Mapping[str, Votes]]
"""Id and words of an original -> words of its rephrasings -> votes."""


def read_validated(place: str) -> Judged:
    """The judgements in a file, or in the folder of the results of a study."""
    path = Path(place)
    if path.is_dir():
        path = path / FILE
    if not path.is_file():
        raise DataError.at(path, "", "there is no such file.", "`pfungst study results STUDY --out FOLDER` writes it.")
    source = open_source(path)
    missing = [name for name in COLUMNS if name not in source.columns]
    if missing:
        raise DataError.at(
            path, "", f"there is no column {', '.join(missing)}.", f"Judged rephrasings have {', '.join(COLUMNS)}."
        )
    found: dict[tuple[str, str], dict[str, Votes]] = {}
    for where, row in source.rows:
        try:
            original, question, text = (cells.text(row[name], f"the {name}") for name in COLUMNS[:3])
            votes = _votes(row)
        except (Bad, KeyError) as error:
            raise DataError.at(path, where, f"this is not a judged rephrasing ({error}).") from None
        of = found.setdefault((original, plain(question)), {})
        # Several studies, or several people who had the same idea.
        of[plain(text)] = of[plain(text)] + votes if plain(text) in of else votes
    if not found:
        raise DataError.at(path, "", "nobody has judged a rephrasing yet.")
    return found


def _votes(row: Mapping[str, Any]) -> Votes:
    counts = []
    for name in COLUMNS[3:]:
        count = cells.text(row[name], f"the column {name}").strip()
        if not (count.isascii() and count.isdecimal() and len(count) < 10):
            raise Bad(f"the column {name} counts people, and {count!r} is not a count")
        counts.append(int(count))
    if not 0 < counts[0] >= max(counts[1:]):
        raise Bad(f"{counts[0]} people judged it, but {max(counts[1:])} of them agree")
    return Votes(*counts)


def check_judged(judged: Judged, data: Dataset, place: str) -> None:
    """Whether people judged rephrasings of these questions at all."""
    if not any((one.id, plain(one.question)) in judged for one in data):
        raise ProbeError(
            f"People judged rephrasings of {len(judged)} questions in {place}, but none of these is among the "
            f"{len(data)} questions of {data.name}. Examine the data set that the study was made from, all of it: a "
            f"study draws its questions at random."
        )


def noted(trial: Trial, judged: Judged) -> list[dict[str, int] | None]:
    """The note of a trial, whose first variant is the original."""
    first, *rest = trial.variants
    known = judged.get((trial.example_id, plain(first.query.question)), {})
    votes = [known.get(plain(one.query.question)) for one in rest]
    return [None, *(None if one is None else asdict(one) for one in votes)]


def validated_rows(trials: Sequence[AnsweredTrial], seed: int) -> tuple[Table | None, tuple[Finding, ...], str]:
    """Table, findings and a sentence; nothing where people were not asked."""
    told = [(one, [Votes(**row) if row else None for row in one.trial.notes[VALIDATED]])
            for one in trials if VALIDATED in one.trial.notes]  # fmt: skip
    if not told:
        return None, (), ""
    if not any(vote is not None for _, votes in told for vote in votes):
        return None, (), " None of these rephrasings is among those that people judged."
    shares = {field: _share(told, field, words, seed) for field, words in SHARES.items()}
    found = list(shares.values())
    rows: list[tuple[object, ...]] = []
    losses: dict[str, Finding] = {}
    for title, field, keeps in SUBSETS:
        some = [(one, [at for at, vote in enumerate(votes) if at and keeps(vote)]) for one, votes in told]
        some = [(one, places) for one, places in some if places]
        if not some:
            continue
        count, first, accuracy, drop = measure.compared(some, title, seed)
        rows.append((title, count, len(some), shares[field] if field else "", first, accuracy, drop))
        losses[title] = drop
        if title != ALL:  # all rephrasings have their findings already
            found += [accuracy, drop]
    table = Table(
        "What people say about the rephrasings",
        ("rephrasings", "how many", "groups", "share of the judged", "accuracy of their originals", "accuracy", "drop"),
        tuple(rows),
        "By the majority of those who judged a rephrasing. Valid: without fault in meaning, answer or grammar; "
        "refused: with some fault. Every row is compared with the originals of its own groups.",
    )
    meaning = shares["meaning"]
    sentence = f" People say that {measure.with_interval(meaning)} of {meaning.n} rephrasings keep the meaning"
    if UNREFUSED in losses:
        sentence += f"; without those they refuse, rephrasing costs {measure.with_interval(losses[UNREFUSED])}"
    return table, tuple(found), sentence + "."


def _share(told: Sequence[tuple[AnsweredTrial, Sequence[Votes | None]]], field: str, words: str, seed: int) -> Finding:
    pairs = [
        (float(vote.most(field)), measure.cluster(one)) for one, votes in told for vote in votes if vote is not None
    ]
    return measure.mean("share", [value for value, _ in pairs], [name for _, name in pairs], seed, words)


SHARES = {
    "meaning": "rephrasings of the same meaning",
    "answer": "rephrasings of the same answer",
    "grammar": "rephrasings of correct grammar",
    "valid": "valid rephrasings",
}
ALL, UNREFUSED = "all", "all but the refused"
SUBSETS: tuple[tuple[str, str, Callable[[Votes | None], bool]], ...] = (
    (ALL, "", lambda vote: True),
    (UNREFUSED, "", lambda vote: vote is None or vote.most("valid")),
    ("judged", "", lambda vote: vote is not None),
    ("same meaning", "meaning", lambda vote: vote is not None and vote.most("meaning")),
    ("same answer", "answer", lambda vote: vote is not None and vote.most("answer")),
    ("correct grammar", "grammar", lambda vote: vote is not None and vote.most("grammar")),
    ("valid", "valid", lambda vote: vote is not None and vote.most("valid")),
    ("refused", "", lambda vote: vote is not None and not vote.most("valid")),
)
"""Rows of the table: title, whose share stands beside it, which rephrasings."""


DRAWS = 300
"""Of the bootstrap: every draw sorts all answers."""
NAMES = ("AUGRC", *(f"coverage at {risk:.0%} risk" for risk in RISKS))


def stability(trial: AnsweredTrial) -> float:
    """Share of the rephrasings that get the answer of the original; 0 where the original's reply cannot be read."""
    first, *rest = trial.answers
    return sum(alike(first, answer) == 1.0 for answer in rest) / len(rest)


def stability_rows(trials: Sequence[AnsweredTrial], seed: int) -> tuple[Table, tuple[Finding, ...]]:
    """The table, and the findings of the row `stability`: AUGRC, coverage at 1, 5 and 10% risk."""
    known = [one for one in trials if len(one.answers) > 1 and not math.isnan(one.scores[0])]
    correct = np.array([one.scores[0] for one in known], np.float64)
    clusters = measure.clusters(known)
    stable = _measured(np.array([stability(one) for one in known]), correct, clusters, seed, "stability")
    rows: list[tuple[object, ...]] = [("stability", *stable)]
    own = [one.answers[0].confidence for one in known]
    if own and all(value is not None for value in own):
        sure = np.array([value for value in own if value is not None], np.float64)
        rows.append(("its own confidence", *_measured(sure, correct, clusters, seed, "own confidence")))
    rows.append(("none (a coin)", *_measured(np.zeros(len(known)), correct, clusters, seed, "none")))
    table = Table(
        "Stability as confidence",
        ("confidence", *NAMES),
        tuple(rows),
        "Stability: share of the rephrasings that get the original's answer. AUGRC: mean risk of silent failures, "
        "lower is better. Coverage: share of the questions answered when the least sure are left out until no more "
        "than that share of the answers is wrong.",
    )
    return table, stable


def _measured(confidence: Floats, correct: Floats, clusters: Labels, seed: int, condition: str) -> tuple[Finding, ...]:
    found = resampled(lambda rows: _numbers(confidence[rows], correct[rows]), clusters, seed=seed, draws=DRAWS)
    return tuple(measure.finding(name, one, condition) for name, one in zip(NAMES, found, strict=True))


def _numbers(confidence: Floats, correct: Floats) -> list[float]:
    curve = risk_coverage(confidence, correct)
    return [curve.augrc, *(curve.coverage_at(risk) for risk in RISKS)]
