"""Model-mined decoys: what a given player confuses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from pfungst.core import Asker, Example, Player, Query
from pfungst.core.flips import normalise
from pfungst.core.scoring import read_answer
from pfungst.core.store import AnswerStore
from pfungst.core.types import Progress, no_progress
from pfungst.scores.matchers import get_matcher

_OPPOSITE = {"yes": "no", "no": "yes"}
MOST = 12
"""Most candidates per example."""


def mine(
    player: Player,
    examples: Sequence[Example],
    *,
    store: AnswerStore | None = None,
    most: int = MOST,
    progress: Progress = no_progress,
) -> dict[str, tuple[str, ...]]:
    """Ask a player without choices, and collect its mistakes as candidates: example id -> answers, best first.

    First what the player itself said wrongly here; then what it says wrongly most often where the same answer is
    right; then the answers in whose place it wrongly says this one. Nothing that a human said here is a candidate, but
    "no" for "yes" and the other way around.
    Pass the result to `build(examples, ("mined", ...), mined=...)`, on other players' exams too: a decoy mined from one
    player is hard for its like. Unlike all other kinds, mined decoys need not be targets of the split, so check their
    neutrality (`rules`). What `store` knows is not asked again.
    """
    asked = [one for one in examples if one.target is not None and one.target.strip()]
    queries = [Query(example.question, example.image, (), example.scene) for example in asked]
    asker = Asker(player, store, progress=progress)
    replies = asker.answers(queries, "asking for mistakes")
    reading = asker.player.matcher
    said = [answer.text for answer in replies]
    if reading:  # a sentence with the right answer in it is no mistake
        read = get_matcher(reading)
        said = [
            "" if (got := read_answer(answer, replace(one, choices=()), read, False)).unread else got.text
            for one, answer in zip(asked, replies, strict=True)
        ]
    instead: dict[str, Counter[str]] = {}
    mistaken: dict[str, Counter[str]] = {}
    spelled: dict[str, str] = {}
    for one, text in zip(asked, said, strict=True):
        right, wrong = normalise(one.target), normalise(text)
        spelled.setdefault(right, str(one.target))
        if text.strip() and wrong != right:
            spelled.setdefault(wrong, text.strip())
            instead.setdefault(right, Counter())[wrong] += 1
            mistaken.setdefault(wrong, Counter())[right] += 1
    found = {}
    for one, text in zip(asked, said, strict=True):
        right = normalise(one.target)
        human = {right, *map(normalise, one.answers)} - {_OPPOSITE.get(right, "")}
        order = [normalise(text), *_frequent(instead.get(right)), *_frequent(mistaken.get(right))]
        names = [name for name in dict.fromkeys(order) if name and name not in human and name in spelled]
        found[one.id] = tuple(spelled[name] for name in names[:most])
    return found


def _frequent(counts: Counter[str] | None) -> list[str]:
    """Most frequent first; ties go by the alphabet, so that the order of the data set does not matter."""
    return [] if counts is None else sorted(counts, key=lambda name: (-counts[name], name))
