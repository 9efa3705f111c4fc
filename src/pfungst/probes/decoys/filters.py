"""Which answers are too close to be told apart: the ambiguity filters. And model-mined decoys: what a player confuses.

A filter is anything with a `fingerprint` and `similar(ones, others) -> bool array` over numbers of an answer book. The
containment of strings is always checked; these come on top.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pfungst.core import Asker, Example, Player, Query, UsageError
from pfungst.core.flips import normalise
from pfungst.core.scoring import read_answer
from pfungst.core.store import AnswerStore
from pfungst.core.types import Progress, no_progress
from pfungst.probes.decoys.split import AnswerBook
from pfungst.scores.matchers import get_matcher

THRESHOLD = 0.9
"""WUP-based similarity from which a decoy is ambiguous (Sect. 4.1 of Being Negative but Constructively)."""

_REMEMBERED = (1 << 22) - 3
"""Pairs of answers; a prime, which spreads them over their places."""
_NUMBERS = frozenset(
    "eleven,twelve,thirteen,fourteen,fifteen,sixteen,seventeen,eighteen,nineteen,twenty,thirty,hundred".split(",")  # noqa: SIM905
)
"""Words for numbers beyond those that `normalise` writes in digits."""

Bools = npt.NDArray[np.bool_]


class Filter(Protocol):
    """Says which pairs of answers are too similar for one to be a decoy of the other."""

    @property
    def fingerprint(self) -> str: ...

    def prepare(self, book: AnswerBook) -> Prepared: ...


class Prepared(Protocol):
    """A filter that has read the answers."""

    def similar(self, ones: npt.NDArray[Any], others: npt.NDArray[Any]) -> Bools:
        """(pairs,) of answer numbers."""
        ...


class WupFilter:
    """WUPS of the two answers is at or above the threshold: the paper's filter.

    `numbers_differ`: two different numbers are never ambiguous. The paper does not say so, but WordNet gives "two" and
    "three" 0.9 (and "2" and "3" 0.875), so by the bare rule counting questions lose the very decoys they need. False
    for the bare rule.
    """

    def __init__(self, threshold: float = THRESHOLD, numbers_differ: bool = True) -> None:
        if not threshold > 0.0:
            raise UsageError(
                f"The WUP threshold must be above 0, not {threshold}: with 0 all answers would be too similar."
            )
        self.threshold, self.numbers_differ = threshold, numbers_differ
        self.fingerprint: str = f"wup>={threshold:g}" + (", numbers differ" if numbers_differ else "")

    def prepare(self, book: AnswerBook) -> Prepared:
        return _Wup(book, self)


class _Wup:
    def __init__(self, book: AnswerBook, settings: WupFilter) -> None:
        self._book, self._threshold = book, settings.threshold
        self._number = np.fromiter((settings.numbers_differ and _is_number(one) for one in book.texts), np.bool_)

    def __getstate__(self) -> dict[str, Any]:
        # Another process remembers for itself: its arrays of this one may be read-only.
        return {name: value for name, value in self.__dict__.items() if name != "_table"}

    @cached_property
    def _table(self) -> tuple[npt.NDArray[np.int64], Bools]:
        size = min(_REMEMBERED, len(self._book) ** 2)
        return np.full(size, -1, np.int64), np.zeros(size, np.bool_)

    def similar(self, ones: npt.NDArray[Any], others: npt.NDArray[Any]) -> Bools:
        from pfungst.text import wups

        # Many questions share target and candidate ("red", "blue"): a pair is seldom computed twice.
        size = len(self._book)
        pairs = np.minimum(ones, others).astype(np.int64) * size + np.maximum(ones, others)
        keys, values = self._table
        slots = pairs % len(keys)
        result: Bools = values[slots]
        missing = np.flatnonzero(keys[slots] != pairs)
        if len(missing):
            distinct, back = np.unique(pairs[missing], return_inverse=True)
            one, other = distinct // size, distinct % size
            texts = self._book.texts
            likeness = [wups(texts[a], texts[b]) for a, b in zip(one.tolist(), other.tolist(), strict=True)]
            found = np.array(likeness) >= self._threshold
            result[missing] = (found & ~(self._number[one] & self._number[other]))[back]
            keys[slots[missing]], values[slots[missing]] = pairs[missing], result[missing]
        return result


def _plain(one: str, other: str) -> bool:
    """Both are yes, no or a number: people who disagree on those do not mean the same."""
    return all(name in ("yes", "no") or _is_number(name) for name in (one, other))


def _is_number(answer: str) -> bool:
    return answer.strip().casefold() in _NUMBERS or normalise(answer).isdecimal()


class EmbeddingFilter:
    """The answers' vectors are close, and people who are asked the same thing swap the two words.

    The paper's own failure is "lady" against "woman" (WUP 0.632, below "cat" against "dog", 0.857). A cosine of word
    vectors alone does not repair it, it is worse: with GloVe 0.58 against 0.88, because words that contrast (`red`,
    `blue`) stand in the same sentences as words that mean the same. People do tell them apart: of those who are asked
    in VQA v2 where the majority says "woman", 4.5% say "lady"; for "cat" and "dog" it is 0.8%. So with `human`
    (see `confusions`) two answers are similar if their cosine is at least `threshold` and one of the two is said in
    the other's place by at least `human_threshold` of the annotators. Yes, no and numbers are never ambiguous.
    Without `human` the cosine decides alone, with a threshold of 0.9: of use for spelling variants at most.
    """

    def __init__(
        self,
        encoder: Any,
        threshold: float | None = None,
        human: dict[tuple[str, str], float] | None = None,
        human_threshold: float = 0.02,
    ) -> None:
        self.encoder, self.human, self.human_threshold = encoder, human, human_threshold
        self.threshold: float = threshold if threshold is not None else 0.9 if human is None else 0.5
        swapped = sorted((a, b) for (a, b), share in (human or {}).items() if share >= human_threshold)
        digest = zlib.crc32(repr(swapped).encode("utf-8", "surrogatepass"))
        self.fingerprint: str = f"cosine>={self.threshold:g} {encoder.fingerprint} {digest:08x}"

    def prepare(self, book: AnswerBook) -> Prepared:
        return _Embedding(book, self)


class _Embedding:
    def __init__(self, book: AnswerBook, settings: EmbeddingFilter) -> None:
        from pfungst.text import encode
        from pfungst.text.encoders.base import unit_rows

        self._vectors = unit_rows(encode(book.texts, settings.encoder))
        self._settings, self._classes = settings, book.classes
        self._human: set[tuple[int, int]] | None = None
        if settings.human is not None:
            named = {normalise(text): int(one) for text, one in zip(book.texts, book.classes, strict=True)}
            self._human = {
                (named[a], named[b])
                for (a, b), share in settings.human.items()
                if share >= settings.human_threshold and a in named and b in named and not _plain(a, b)
            }

    def similar(self, ones: npt.NDArray[Any], others: npt.NDArray[Any]) -> Bools:
        result = np.empty(len(ones), np.bool_)
        for at in range(0, len(ones), 1 << 16):
            part = slice(at, at + (1 << 16))
            cosines = np.einsum("ij,ij->i", self._vectors[ones[part]], self._vectors[others[part]])
            result[part] = cosines >= self._settings.threshold
        if self._human is not None:
            for at in np.flatnonzero(result).tolist():
                pair = int(self._classes[ones[at]]), int(self._classes[others[at]])
                result[at] = pair in self._human or pair[::-1] in self._human
        return result


def confusions(examples: Sequence[Example]) -> dict[tuple[str, str], float]:
    """How often people who are asked the same thing say another answer than the target: (target, other) -> share.

    From examples with several human answers. "lady" and "woman" are swapped all the time, "cat" and "dog" hardly ever:
    what distance in WordNet or between vectors does not tell.
    """
    said: Counter[str] = Counter()
    instead: Counter[tuple[str, str]] = Counter()
    for one in examples:
        if one.target is None or len(one.answers) < 2:
            continue
        target = normalise(one.target)
        said[target] += len(one.answers)
        instead.update((target, name) for name in map(normalise, one.answers) if name != target)
    return {pair: count / said[pair[0]] for pair, count in instead.items()}


def ambiguous(book: AnswerBook, filters: Sequence[Prepared], ones: npt.NDArray[Any], others: npt.NDArray[Any]) -> Bools:
    """Whether two answers are the same, contain each other, or are similar to any filter: (pairs,). Yes and no never
    are, whatever a filter makes of them."""
    result = book.same(ones, others) | book.contained(ones, others)
    apart = book.polar[ones] + book.polar[others] == 3
    for one in filters:
        open_ = np.flatnonzero(~(result | apart))
        if len(open_):
            result[open_] = one.similar(ones[open_], others[open_])
    return result


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
