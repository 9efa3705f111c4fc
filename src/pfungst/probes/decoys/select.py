"""Taking decoys from candidates: the first that are told apart from the target and from each other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from pfungst.probes.decoys.filters import Prepared, ambiguous
from pfungst.probes.decoys.split import AnswerBook, Ints


def select(
    book: AnswerBook,
    filters: Sequence[Prepared] | None,
    candidates: Ints,
    targets: Ints,
    chosen: Ints,
    want: int,
) -> npt.NDArray[np.int64]:
    """Columns of `candidates` to take, (rows, want), -1 where there are not enough.

    candidates: (rows, C) answer numbers in the order of preference, -1 at the end. chosen: (rows, P) decoys that stand
    already, -1 where none does. A candidate is taken unless it is ambiguous (`filters.ambiguous`) against the target,
    a decoy that stands, or one taken before it. filters=None asks only that answers are not the same.
    """
    clash = book.same if filters is None else partial(ambiguous, book, filters)
    rows, width = candidates.shape
    picks = np.full((rows, want), -1, np.int64)
    taken = np.zeros(rows, np.int64)
    cursor = np.zeros(rows, np.int64)
    answers = np.full((rows, want), -1, np.int32)
    active = np.arange(rows) if width and want else np.zeros(0, np.int64)
    while len(active):
        here = candidates[active, cursor[active]]
        active, here = active[here >= 0], here[here >= 0]
        bad = np.zeros(len(active), np.bool_)
        columns = [targets[active]]
        columns += [chosen[active, column] for column in range(chosen.shape[1])]
        columns += [answers[active, column] for column in range(want)]
        for others in columns:
            test = np.flatnonzero(~bad & (others >= 0))
            if len(test):
                bad[test] = clash(here[test], others[test])
        good = active[~bad]
        picks[good, taken[good]] = cursor[good]
        answers[good, taken[good]] = here[~bad]
        taken[good] += 1
        cursor[active] += 1
        active = active[(taken[active] < want) & (cursor[active] < width)]
    return picks


def taken(values: npt.NDArray[Any], picks: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """`values` (rows, C) at the picked columns, -1 where nothing was picked."""
    if not values.shape[1]:
        return np.full(picks.shape, -1, values.dtype)
    found = np.take_along_axis(values, np.maximum(picks, 0), axis=1)
    return np.asarray(np.where(picks >= 0, found, -1))


def put(
    answers: Ints,
    rows: npt.NDArray[np.int64],
    found: Ints,
    more: Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]],
) -> None:
    """Put what was `found` (rows, n) into the holes (-1) of `answers`, first into first, as long as there are any.

    more: (array like `answers`, values like `found`) that go along.
    """
    for column in range(found.shape[1]):
        hole = (answers[rows] < 0).argmax(1)
        fits = np.flatnonzero((answers[rows, hole] < 0) & (found[:, column] >= 0))
        at = rows[fits], hole[fits]
        answers[at] = found[fits, column]
        for array, values in more:
            array[at] = values[fits, column]
