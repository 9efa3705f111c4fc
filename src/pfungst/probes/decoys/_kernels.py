"""The compiled inner loops of decoy making. Imported only where they run: compilers load slowly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

F = TypeVar("F", bound=Callable[..., Any])


def _compiled(function: F) -> F:
    return cast(F, numba.njit(function, cache=True, nogil=True))


@_compiled
def contained(letters: Any, starts: Any, one: int, other: int) -> bool:
    """Whether the letters of one answer stand, in one piece, in the other's."""
    if starts[one + 1] - starts[one] > starts[other + 1] - starts[other]:
        one, other = other, one
    size = starts[one + 1] - starts[one]
    for at in range(starts[other], starts[other + 1] - size + 1):
        same = 0
        while same < size and letters[at + same] == letters[starts[one] + same]:
            same += 1
        if same == size:
            return True
    return False


@_compiled
def contained_pairs(letters: Any, starts: Any, ones: Any, others: Any) -> npt.NDArray[np.bool_]:
    result = np.empty(len(ones), np.bool_)
    for k in range(len(ones)):
        result[k] = contained(letters, starts, ones[k], others[k])
    return result


@_compiled
def mix(seed: int, one: int, other: int) -> np.uint64:
    """A well-stirred number of three: the same on every machine (the finaliser of splitmix64, twice)."""
    x = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(one)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = (x ^ (x >> np.uint64(31))) + np.uint64(other) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@_compiled
def mix_table(seed: int, ones: Any, columns: int) -> npt.NDArray[np.uint64]:
    """`mix` of every one with 0 .. columns - 1: (ones, columns)."""
    result = np.empty((len(ones), columns), np.uint64)
    for k in range(len(ones)):
        for column in range(columns):
            result[k, column] = mix(seed, ones[k], column)
    return result


@_compiled
def collect(
    triplets: Any,
    rows: Any,
    neighbours: Any,
    groups: Any,
    targets: Any,
    book: Any,
    avoid: Any,
    only: Any,
    limit: int,
    skip: int,
    seed: int,
    found: Any,
    ranks: Any,
) -> None:
    """Distinct candidate answers of each triplet, in the order in which its neighbours are walked.

    `neighbours[rows[q]]` are the groups (questions, or images) of triplet `triplets[q]`, nearest first, -1 at the end.
    `groups` is (starts, members): the triplets of a group. Triplets of one group are equally near; where the walk
    enters the circle of them is drawn from `seed`, so that none is favoured. `book` is (classes, letters, starts) of
    the answers; `avoid` (starts, classes) more answers that must not be taken; `only` (starts, classes), where not
    empty, the only ones that may. At most `limit` triplets are walked, the first `skip` without taking any.
    Fills `found` (answer numbers) and `ranks` (how many triplets had been walked), both (triplets, candidates) and
    -1 before.
    """
    starts, members = groups
    classes, letters, letter_starts = book
    avoid_starts, avoided = avoid
    only_starts, allowed = only
    seen = np.full(classes.max() + 1, -1, np.int32)
    may = np.full(classes.max() + 1 if len(only_starts) else 0, -1, np.int32)
    for q in range(len(triplets)):
        triplet = triplets[q]
        target = targets[triplet]
        seen[classes[target]] = q
        if len(avoid_starts):
            for at in range(avoid_starts[triplet], avoid_starts[triplet + 1]):
                seen[avoided[at]] = q
        if len(only_starts):
            for at in range(only_starts[triplet], only_starts[triplet + 1]):
                may[allowed[at]] = q
        count = 0
        walked = 0
        for column in range(neighbours.shape[1]):
            group = neighbours[rows[q], column]
            if group < 0 or count == found.shape[1] or walked >= limit:
                break
            first = starts[group]
            size = starts[group + 1] - first
            turn = np.int64(mix(seed, triplet, group) % np.uint64(size))
            for step in range(size):
                if walked >= limit or count == found.shape[1]:
                    break
                other = members[first + (turn + step) % size]
                if other == triplet:
                    continue
                walked += 1
                answer = targets[other]
                if walked <= skip or seen[classes[answer]] == q:
                    continue
                seen[classes[answer]] = q
                if len(only_starts) and may[classes[answer]] != q:
                    continue
                if contained(letters, letter_starts, answer, target):
                    continue
                found[q, count] = answer
                ranks[q, count] = walked
                count += 1


_STRIDE = 64
"""Similarities compared with the threshold at once: the loop without a way out is the one that becomes vector code."""


@_compiled
def scan(similarities: Any, offset: int, keep: int, kept: Any, first: int, last: int) -> None:
    """Remember the `keep` largest similarities of each row, seen block by block.

    `similarities` (rows, block) belong to candidates `offset`, ... `kept` is (thresholds, counts, values, ids): rows of
    buffers larger than `keep`, thinned out when full. Works on rows first .. last - 1.
    """
    thresholds, counts, values, ids = kept
    room = values.shape[1]
    for row in range(first, last):
        threshold = thresholds[row]
        count = counts[row]
        for start in range(0, similarities.shape[1], _STRIDE):
            stop = min(start + _STRIDE, similarities.shape[1])
            above = 0
            for column in range(start, stop):
                above += similarities[row, column] > threshold
            if above == 0:
                continue
            for column in range(start, stop):
                if similarities[row, column] > threshold:
                    values[row, count] = similarities[row, column]
                    ids[row, count] = offset + column
                    count += 1
                    if count == room:
                        threshold = _thin(values[row], ids[row], room, keep)
                        count = keep
        thresholds[row] = threshold
        counts[row] = count


@_compiled
def _thin(values: Any, ids: Any, count: int, keep: int) -> Any:
    """Move the `keep` largest to the front (the earlier of equal ones); returns the smallest of them."""
    bar = np.partition(values[:count], count - keep)[count - keep]
    above = 0
    for at in range(count):
        above += values[at] > bar
    equal = keep - above
    put = 0
    for at in range(count):
        if values[at] > bar or (values[at] == bar and equal > 0):
            equal -= values[at] == bar
            values[put] = values[at]
            ids[put] = ids[at]
            put += 1
    return bar


@_compiled
def rank(vectors: Any, queries: Any, keep: int, kept: Any, found: Any, similarities: Any, first: int, last: int) -> None:
    """The remembered candidates in order: most similar first, of equal ones the first in the data.

    Similarities are computed anew, one by one in double precision, so that the order does not depend on how a matrix
    product was cut into blocks.
    """
    _, counts, values, ids = kept
    for row in range(first, last):
        count = counts[row]
        if count > keep:
            _thin(values[row], ids[row], count, keep)
            count = keep
        order = np.sort(ids[row, :count])
        exact = np.empty(count, np.float32)
        for at in range(count):
            total = 0.0
            for part in range(vectors.shape[1]):
                total += np.float64(queries[row, part]) * np.float64(vectors[order[at], part])
            exact[at] = -np.float32(total)
        for place, at in enumerate(np.argsort(exact, kind="mergesort")):
            found[row, place] = order[at]
            similarities[row, place] = -exact[at]
