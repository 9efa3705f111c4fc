"""The compiled inner loops of decoy making. Imported only where they run: compilers load slowly."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pfungst.text.compiled import GOLDEN, Bits, compiled, stir


@compiled
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


@compiled
def contained_pairs(letters: Any, starts: Any, ones: Any, others: Any) -> npt.NDArray[np.bool_]:
    result = np.empty(len(ones), np.bool_)
    for k in range(len(ones)):
        result[k] = contained(letters, starts, ones[k], others[k])
    return result


@compiled
def mix(seed: int, one: int, other: int) -> Bits:
    """A well-stirred number of three."""
    return stir(stir(np.uint64(seed) * GOLDEN + np.uint64(one)) + np.uint64(other) * GOLDEN)


@compiled
def mix_table(seed: int, ones: Any, columns: int) -> npt.NDArray[np.uint64]:
    """`mix` of every one with 0 .. columns - 1: (ones, columns)."""
    result = np.empty((len(ones), columns), np.uint64)
    for k in range(len(ones)):
        for column in range(columns):
            result[k, column] = mix(seed, ones[k], column)
    return result


@compiled
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


@compiled
def scan(similarities: Any, highest: Any, offset: int, keep: int, kept: Any) -> None:
    """Remember the `keep` largest similarities of each query, seen block by block.

    `similarities` (candidates, queries) belong to candidates `offset`, ...; `highest` (candidates / stride, queries)
    holds the maximum of each stride of candidates, because almost all strides hold nothing that counts. `kept` is
    (thresholds, counts, values, ids): rows of buffers larger than `keep`, thinned out when full.
    """
    thresholds, counts, values, ids = kept
    room = values.shape[1]
    stride = similarities.shape[0] // highest.shape[0]
    for block in range(highest.shape[0]):
        for query in range(similarities.shape[1]):
            if not highest[block, query] > thresholds[query]:
                continue
            for at in range(block * stride, (block + 1) * stride):
                if similarities[at, query] > thresholds[query]:
                    count = counts[query]
                    values[query, count] = similarities[at, query]
                    ids[query, count] = offset + at
                    counts[query] = count + 1
                    if count + 1 == room:
                        thresholds[query] = _thin(values[query], ids[query], room, keep)
                        counts[query] = keep


@compiled
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


@compiled
def finish(vectors: Any, queries: Any, keep: int, kept: Any, found: Any, cosines: Any) -> None:
    """The remembered candidates, in no order, with their cosines: `found` and `cosines` (queries, keep).

    Cosines are computed anew, one by one in double precision, so that they do not depend on how a matrix product was
    cut into blocks.
    """
    _, counts, values, ids = kept
    for row in range(len(queries)):
        count = counts[row]
        if count > keep:
            _thin(values[row], ids[row], count, keep)
            count = keep
        for at in range(count):
            total = 0.0
            for part in range(vectors.shape[1]):
                total += np.float64(queries[row, part]) * np.float64(vectors[ids[row, at], part])
            found[row, at] = ids[row, at]
            cosines[row, at] = total
