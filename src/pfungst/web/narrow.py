"""The narrow columns of a run in memory: which of its answers are wanted, how many there are, and in which order.

A million answers take about 60 MB. What is wide (questions, replies, choices) stays in the database.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pfungst.web.reading import SEARCHED
from pfungst.web.wanted import Wanted

Mask = NDArray[np.bool_]
Rows = NDArray[np.int64]
Floats = NDArray[np.float64]

CODED = {"probe": "probe", "variant": "variant", "flip": "flip", "kind": "answer_type", "question": "question_type"}
"""Fields of `Wanted` that ask for one value, and their columns."""
_NUMBERS = ("score", "clean_score", "confidence")


@dataclass(frozen=True)
class Narrow:
    """Arrays with one entry for each answer of a run; the place in them is the answer's number."""

    codes: Mapping[str, NDArray[np.int32]]
    names: Mapping[str, Mapping[str, int]]
    """Column -> value -> code."""
    score: Floats
    clean_score: Floats
    confidence: Floats
    """NaN where it is not known, in all three."""
    length: NDArray[np.int32]
    """Of the reply, in characters."""
    unread: Mask
    texts: Mapping[str, NDArray[np.int32]]
    """Column of SEARCHED -> number of the text, among the distinct ones."""

    def rows(self, wanted: Wanted, found: Sequence[Mapping[str, Mask]], among: Rows | None = None) -> Rows:
        """The wanted answers, in their order.

        found: for every word, by column, which of the distinct texts it is in
        among: only these answers
        """
        masks = [
            self.codes[column] == self.names[column].get(getattr(wanted, field), -1)
            for field, column in CODED.items()
            if getattr(wanted, field)
        ]
        if wanted.outcome:
            masks.append(_OUTCOMES[wanted.outcome](self))
        for word in found:
            masks.append(np.logical_or.reduce([word[column][self.texts[column]] for column in SEARCHED]))
        if among is not None:
            masks.append(np.zeros(len(self.score), np.bool_))
            masks[-1][among] = True
        return np.flatnonzero(np.logical_and.reduce(masks)) if masks else self._all

    def known(self, rows: Rows) -> tuple[int, float]:
        """How many of these answers have a known score, and the sum of these scores."""
        if rows is self._all:
            return self._known
        scores = self.score[rows]
        scores = scores[~np.isnan(scores)]
        return len(scores), float(scores.sum())

    @cached_property
    def _all(self) -> Rows:
        return np.arange(len(self.score))

    @cached_property
    def _known(self) -> tuple[int, float]:
        return self.known(self._all.copy())

    def key(self, sort: str, rows: Rows) -> Floats:
        """What the rows are sorted by, smallest first; what is not known comes last."""
        return np.nan_to_num(_KEYS[sort](self, rows), nan=np.inf, posinf=np.inf, neginf=-np.inf)


def first(key: Floats, count: int) -> Rows:
    """Places of the `count` smallest in order, equals as they stand: the same on every page, without sorting all."""
    if count < len(key):
        last = np.partition(key, count)[count]
        below = np.flatnonzero(key < last)
        places = np.concatenate([below, np.flatnonzero(key == last)[: count - len(below)]])
    else:
        places = np.arange(len(key))
    return places[np.lexsort((places, key[places]))]


_OUTCOMES: Mapping[str, Callable[[Narrow], Mask]] = {
    "wrong": lambda one: one.score == 0,
    "right": lambda one: one.score > 0,
    "partly": lambda one: (one.score > 0) & (one.score < 1),
    "unread": lambda one: one.unread,
    "unknown": lambda one: np.isnan(one.score),
}
_KEYS: Mapping[str, Callable[[Narrow, Rows], Floats]] = {
    "sure": lambda one, rows: -one.confidence[rows],
    "unsure": lambda one, rows: one.confidence[rows],
    "loss": lambda one, rows: one.score[rows] - one.clean_score[rows],
    "long": lambda one, rows: -one.length[rows].astype(np.float64),
}


class Gathering:
    """Makes the narrow columns while the rows of a run are read, batch by batch."""

    def __init__(self) -> None:
        self._parts: dict[str, list[Any]] = {}
        self._names: dict[str, dict[str, int]] = {column: {} for column in CODED.values()}

    def add(self, batch: Any, hashes: Mapping[str, NDArray[np.uint64]]) -> None:
        """batch: an Arrow table with the columns of SCHEMA; hashes: of its texts, by column of SEARCHED."""
        made: dict[str, Any] = dict(hashes)
        for column, names in self._names.items():
            coded = pc.dictionary_encode(batch[column].combine_chunks())
            known = [names.setdefault(value, len(names)) for value in coded.dictionary.to_pylist()]
            made[column] = np.array(known, np.int32)[np.asarray(coded.indices)]
        for column in _NUMBERS:
            made[column] = np.asarray(pc.fill_null(batch[column].cast(pa.float64()), float("nan")))
        made["length"] = np.asarray(pc.utf8_length(batch["reply"])).astype(np.int32)
        made["unread"] = np.asarray(batch["unread"]).astype(np.bool_)
        for name, part in made.items():
            self._parts.setdefault(name, []).append(part)

    def done(self, known: Mapping[str, NDArray[np.uint64]]) -> Narrow:
        """known: the distinct hashes of the texts, in order, by column of SEARCHED."""

        def whole(name: str, kind: Any) -> Any:
            return np.concatenate([np.zeros(0, kind), *self._parts.get(name, ())]).astype(kind)

        texts = {name: np.searchsorted(known[name], whole(name, np.uint64)).astype(np.int32) for name in SEARCHED}
        return Narrow(
            {column: whole(column, np.int32) for column in self._names}, self._names,
            whole("score", np.float64), whole("clean_score", np.float64), whole("confidence", np.float64),
            whole("length", np.int32), whole("unread", np.bool_), texts,
        )  # fmt: skip
