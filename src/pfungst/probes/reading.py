"""What the player read of the disturbed questions: how many were cut, which share of words it does not know, and what
is lost where nothing was cut, and where all words are known. A disturbance by words brings both with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from pfungst.core import AnsweredTrial, Finding, Reading, Table
from pfungst.probes import measure

Part = tuple[AnsweredTrial, Sequence[int]]
"""A trial, and the places of those of its variants that count."""
UNTOLD = "The player does not tell how many words it reads and which it knows."
CUT, UNKNOWN, WHOLE, KNOWN = (
    "questions cut",
    "unknown words",
    "drop of those read whole",
    "drop of those in known words",
)
"""Names of the findings."""


@dataclass(frozen=True)
class Read:
    """What the player read under one heading."""

    title: str
    asked: int
    """Disturbed questions."""
    whole_count: int
    known_count: int
    cut: Finding
    unknown: Finding
    whole: Finding
    known: Finding

    @classmethod
    def of(cls, title: str, some: Sequence[Part], heading: Callable[[str], str], seed: int) -> Read:
        groups = measure.clusters([trial for trial, _ in some])
        readings = [[reading for place in places if (reading := trial.readings[place])] for trial, places in some]
        cut = [sum(one.cut > 0 for one in row) / len(row) for row in readings]
        unknown = [sum(one.unknown / max(1, one.words) for one in row) / len(row) for row in readings]
        of_whole = measure.compared(list(parts(some, lambda one: one.cut == 0)), title, seed, heading)
        of_known = measure.compared(list(parts(some, lambda one: one.unknown == 0)), title, seed, heading)
        return cls(
            title, sum(map(len, readings)), of_whole[0], of_known[0],
            measure.mean(CUT, cut, groups, seed, title), measure.mean(UNKNOWN, unknown, groups, seed, title),
            replace(of_whole[-1], name=WHOLE), replace(of_known[-1], name=KNOWN),
        )  # fmt: skip

    def sentence(self) -> str:
        """For the verdict."""
        told = "The player read all of these questions whole"
        if self.cut.value > 0:
            told = f"{measure.percent(self.cut.value)} of these questions are longer than the player reads and were cut"
            told += _lost("those it read whole", self.whole_count, self.asked, self.whole)
        if not self.unknown.value > 0:
            return f"{told}. It knows all their words."
        lost = _lost("those whose words it all knows", self.known_count, self.asked, self.known)
        return f"{told}. {measure.percent(self.unknown.value)} of their words are unknown to it{lost}."


def _lost(which: str, count: int, asked: int, drop: Finding) -> str:
    if not count:
        return f"; there are none of {which}"
    return f"; {which} ({count:,} of {asked:,}) lose {measure.with_interval(drop)}"


def parts(some: Sequence[Part], fits: Callable[[Reading], bool]) -> Iterator[Part]:
    """The trials with those of the places at which the player's reading fits."""
    for trial, places in some:
        chosen = [at for at in places if (reading := trial.readings[at]) is not None and fits(reading)]
        if chosen:
            yield trial, chosen


def told(trials: Sequence[AnsweredTrial]) -> Iterator[Part]:
    """The trials of which the player told what it read, with the places of their disturbed variants."""
    for trial in trials:
        places = [at for at, reading in enumerate(trial.readings) if at and reading is not None]
        if places:
            yield trial, places


def read(
    trials: Sequence[AnsweredTrial], heading: Callable[[str], str], seed: int, every: str = ""
) -> tuple[Read, ...]:
    """What the player read of the variants under each heading, in the order in which these come first.

    heading: of a variant. every: title of a last row about all of them.
    """
    headings: dict[str, list[Part]] = {}
    for trial, places in told(trials):
        names = [(heading(trial.trial.variants[at].name), at) for at in places]
        for title, some in measure.grouped(names, lambda named: named[0]).items():
            headings.setdefault(title, []).append((trial, [at for _, at in some]))
        if every:
            headings.setdefault("", []).append((trial, places))
    if "" in headings:
        headings[every] = headings.pop("")
    return tuple(Read.of(title, some, heading, seed) for title, some in headings.items())


def table(reads: Sequence[Read], what: str) -> Table:
    """what: the headings."""
    return Table(
        "What the player read",
        (what, "cut", "unknown words", "read whole", "drop of these", "all words known", "drop of these"),
        tuple(
            (one.title, one.cut, one.unknown, f"{one.whole_count:,} of {one.asked:,}", one.whole,
             f"{one.known_count:,} of {one.asked:,}", one.known)
            for one in reads
        ),
        "Cut: longer than the player reads. Unknown: its share of the words of a question. Drops are those of the "
        "questions read whole, and of those whose words are all known, each against the same questions undisturbed.",
    )  # fmt: skip


def findings(reads: Sequence[Read]) -> tuple[Finding, ...]:
    return tuple(finding for one in reads for finding in (one.cut, one.unknown, one.whole, one.known))
