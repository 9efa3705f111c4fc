"""Words that training may have shown and words kept from it, told apart."""

from __future__ import annotations

from collections.abc import Sequence

from pfungst.core import AnsweredTrial, Finding, Table
from pfungst.probes import measure

NOTE = "wordings"
"""Name of a trial's note: the wording of every variant, in order."""
TITLES = {"train": "seen wordings", "heldout": "held-out wordings"}


def wording_rows(trials: Sequence[AnsweredTrial], seed: int) -> tuple[Table | None, tuple[Finding, ...]]:
    """Accuracy and loss of the rephrasings of either kind; nothing where the data do not say which is which.

    A group counts in a row when it has a rephrasing of that kind, and is compared with its own original.
    """
    told = [(one, one.trial.notes.get(NOTE, ())) for one in trials]
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
        count, first, accuracy, drop = compared(some, title, seed)
        rows.append((title, count, len(some), first, accuracy, drop))
        found += [accuracy, drop]
    if not rows:
        return None, ()
    table = Table(
        "Seen and held-out wordings",
        ("rephrasings", "how many", "groups", "accuracy of their originals", "accuracy", "drop"),
        tuple(rows),
        "Seen: worded as the training questions of the data set are. Held-out: in words and sentences kept from them.",
    )
    return table, tuple(found)


def compared(
    some: Sequence[tuple[AnsweredTrial, Sequence[int]]], title: str, seed: int
) -> tuple[int, Finding, Finding, Finding]:
    """How many rephrasings, accuracy of the originals, accuracy of the rephrasings, drop.

    some: groups, each with the places of those of its rephrasings that count
    """
    groups = measure.clusters([one for one, _ in some])
    scores, settled = (
        [sum(row[at] for at in places) / len(places) for row, (_, places) in zip(rows, some, strict=True)]
        for rows in ([one.scores for one, _ in some], [measure.settled(one) for one, _ in some])
    )
    original = [one.scores[0] for one, _ in some]
    accuracy = measure.mean("accuracy", scores, groups, seed, title)
    drop = measure.difference("drop", original, scores, groups, seed, title, (original, settled))
    first = measure.mean("accuracy", original, groups, seed, f"originals of {title}")
    return sum(len(row) for _, row in some), first, accuracy, drop
