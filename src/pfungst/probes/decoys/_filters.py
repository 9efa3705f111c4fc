"""Which answers are too close to be told apart: the ambiguity filters.

A filter is anything with a `fingerprint` and `similar(ones, others) -> bool array` over numbers of an answer book. The
containment of strings is always checked; these come on top.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pfungst.core import ProbeError
from pfungst.probes.decoys._answers import AnswerBook

THRESHOLD = 0.9
"""WUP-based similarity from which a decoy is ambiguous (Sect. 4.1 of 001_e067043fdf3face1.txt)."""

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
    """WUPS of the two answers is at or above the threshold: the paper's filter."""

    def __init__(self, threshold: float = THRESHOLD) -> None:
        if not 0.0 < threshold:
            raise ProbeError(f"A WUP threshold of {threshold} would call all answers similar: give one above 0.")
        self.threshold = threshold
        self.fingerprint = f"wup>={threshold:g}"

    def prepare(self, book: AnswerBook) -> Prepared:
        return _Wup(book, self.threshold)


class _Wup:
    def __init__(self, book: AnswerBook, threshold: float) -> None:
        self._book, self._threshold = book, threshold

    @cached_property
    def _index(self) -> Any:
        from pfungst.text.wordnet import WupsIndex

        return WupsIndex(self._book.texts)

    def similar(self, ones: npt.NDArray[Any], others: npt.NDArray[Any]) -> Bools:
        # Many questions share target and candidate ("red", "blue"): each distinct pair is looked up once.
        pairs = np.minimum(ones, others).astype(np.int64) * len(self._book) + np.maximum(ones, others)
        distinct, back = np.unique(pairs, return_inverse=True)
        values = self._index.wups(distinct // len(self._book), distinct % len(self._book))
        return np.asarray((values >= self._threshold)[back])


class EmbeddingFilter:
    """The answers' vectors have a cosine at or above the threshold, whatever WordNet says.

    The paper's own failure is "lady" against "woman" (WUP 0.632, below "cat" against "dog", 0.857). A cosine of word
    vectors alone does not repair it: words that contrast (`red`, `blue`) stand as close as words that mean the same.
    So two answers count as similar here only if, besides, they are seldom told apart: `human` says how often an
    annotator who disagrees with the target says the other one, learnt from the examples with several human answers
    (see `confusions`). Without human answers the cosine decides alone.
    """

    def __init__(
        self,
        encoder: Any,
        threshold: float = THRESHOLD,
        human: dict[tuple[str, str], float] | None = None,
        human_threshold: float = 0.02,
    ) -> None:
        self.encoder, self.threshold, self.human, self.human_threshold = encoder, threshold, human, human_threshold
        known = 0 if human is None else len(human)
        self.fingerprint = f"cosine>={threshold:g} {encoder.fingerprint} {known} {human_threshold:g}"

    def prepare(self, book: AnswerBook) -> Prepared:
        return _Embedding(book, self)


class _Embedding:
    def __init__(self, book: AnswerBook, settings: EmbeddingFilter) -> None:
        from pfungst.scores._exact import normalise
        from pfungst.text import encode

        vectors = np.array(encode(book.texts, settings.encoder), np.float32)
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        self._vectors = np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)
        self._settings, self._classes = settings, book.classes
        self._human: set[tuple[int, int]] | None = None
        if settings.human is not None:
            named = {normalise(text): int(one) for text, one in zip(book.texts, book.classes, strict=True)}
            self._human = {
                (named[a], named[b])
                for (a, b), share in settings.human.items()
                if share >= settings.human_threshold and a in named and b in named
            }

    def similar(self, ones: npt.NDArray[Any], others: npt.NDArray[Any]) -> Bools:
        result = np.empty(len(ones), np.bool_)
        for at in range(0, len(ones), 1 << 16):
            part = slice(at, at + (1 << 16))
            cosines = np.einsum("ij,ij->i", self._vectors[ones[part]], self._vectors[others[part]])
            result[part] = cosines >= self._settings.threshold
        if self._human is not None:
            for at in np.flatnonzero(result):
                one, other = int(self._classes[ones[at]]), int(self._classes[others[at]])
                result[at] = (one, other) in self._human or (other, one) in self._human
        return result


def ambiguous(
    book: AnswerBook, filters: Sequence[Prepared], ones: npt.NDArray[Any], others: npt.NDArray[Any]
) -> Bools:
    """Whether two answers are the same, contain each other, or are similar to any filter: (pairs,)."""
    result = book.same(ones, others) | book.contained(ones, others)
    for one in filters:
        open_ = np.flatnonzero(~result)
        if len(open_):
            result[open_] = one.similar(ones[open_], others[open_])
    return result
