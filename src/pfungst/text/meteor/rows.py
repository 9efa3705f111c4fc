"""METEOR of main questions against the whole pool, compiled: all scores, or the best k by aligning few pairs."""

from __future__ import annotations

import numpy as np

from pfungst.text.compiled import Array, compiled
from pfungst.text.meteor.align import align
from pfungst.text.meteor.bounds import Opened, bound_all, open_main, tighten
from pfungst.text.meteor.index import MASK, Links, Sentences, Words
from pfungst.text.meteor.matches import find_matches

BUCKETS = 1024
"""Bounds are counted in as many classes to find the first candidates without sorting the pool."""


@compiled
def _workspace(words: Words, links: Links) -> tuple[Opened, Array, Array]:
    """What is written on for every main question anew: what it offers, matches, and segments for `tighten`."""
    opened = Opened(
        np.zeros(len(words.exact), dtype=np.uint8),
        np.zeros((len(words.exact), 4), dtype=np.uint64),
        np.zeros(len(links.length), dtype=np.uint64),
        np.zeros(len(links.length), dtype=np.int32),
    )
    return opened, np.empty(256, dtype=np.int64), np.zeros((4, MASK + 2), dtype=np.int64)


@compiled
def _score(ref: Array, j: int, words: Words, pool: Sentences, links: Links, head: Array, entry: Array, keys: Array,
) -> tuple[float, Array]:  # fmt: skip
    hyp = pool.words[pool.starts[j] : pool.starts[j + 1]]
    begin, end = pool.phrase_starts[j], pool.phrase_starts[j + 1]
    keys, size = find_matches(
        ref, hyp, words.exact, words.stem, words.synonym_starts, words.synonym_words, words.phrase,
        pool.phrase_place[begin:end], pool.phrase[begin:end], links.length, head, entry, keys,
    )  # fmt: skip
    return align(ref, hyp, words.function, keys, size), keys


@compiled
def score_rows(
    first: int, last: int, words: Words, main: Sentences, pool: Sentences, links: Links, limits: Array, scores: Array,
) -> None:  # fmt: skip
    """Bound and score of all pairs with the main questions from first to last, (rows, pool)."""
    opened, keys, work = _workspace(words, links)
    for row in range(first, last):
        bounds = limits[row - first]
        entry = open_main(row, main, words, links, opened)
        bound_all(row, main, pool, links, opened, bounds)
        ref = main.words[main.starts[row] : main.starts[row + 1]]
        for j in range(len(bounds)):
            scores[row - first, j] = 0.0
            if bounds[j] > 0:
                scores[row - first, j], keys = _score(ref, j, words, pool, links, opened.head, entry, keys)
                bounds[j] = tighten(bounds[j], row, j, main, pool, links, opened, work)


@compiled
def _insert(places: Array, scores: Array, size: int, place: int, score: float) -> int:
    """Keep the best, ties by the smaller place."""
    k = size
    while k > 0 and (scores[k - 1] < score or (scores[k - 1] == score and places[k - 1] > place)):
        if k < len(places):
            places[k], scores[k] = places[k - 1], scores[k - 1]
        k -= 1
    if k < len(places):
        places[k], scores[k] = place, score
    return min(size + 1, len(places))


@compiled
def _first_limit(bounds: Array, k: int) -> float:
    """A bound that at least k questions reach, and few more."""
    counts = np.zeros(BUCKETS + 1, dtype=np.int64)
    for bound in bounds:
        if bound >= 0:
            counts[min(int(bound * BUCKETS), BUCKETS)] += 1
    bucket, many = BUCKETS + 1, 0
    while bucket > 0 and many < k:
        bucket -= 1
        many += counts[bucket]
    return bucket / BUCKETS


@compiled
def top_rows(
    first: int, last: int, words: Words, main: Sentences, pool: Sentences, links: Links, excluded: Array,
    places: Array, scores: Array,
) -> int:  # fmt: skip
    """The best pool questions of the main questions from first to last into places and scores (main, k).

    Candidates are aligned from the highest bound downwards until the bound falls below the k-th score: nothing behind
    it can be among the best. Returns the number of pairs aligned. excluded: a pool place for each main question, or -1.
    """
    opened, keys, work = _workspace(words, links)
    bounds, below = np.empty(len(pool.starts) - 1), np.empty(len(pool.starts) - 1)
    chosen = np.empty(len(bounds), dtype=np.int64)
    k = places.shape[1]
    aligned = 0
    for row in range(first, last):
        entry = open_main(row, main, words, links, opened)
        bound_all(row, main, pool, links, opened, bounds)
        ref = main.words[main.starts[row] : main.starts[row + 1]]
        if excluded[row] >= 0:
            bounds[excluded[row]] = -1.0
        size, high = 0, np.inf
        low = _first_limit(bounds, k)
        while True:
            many = 0
            for j in range(len(bounds)):
                if low <= bounds[j] < high and bounds[j] > 0:
                    tight = tighten(bounds[j], row, j, main, pool, links, opened, work)
                    chosen[many], below[many] = j, -tight
                    many += 1
            for c in np.argsort(below[:many]):
                j = chosen[c]
                if size == k and -below[c] < scores[row, k - 1]:
                    break
                value, keys = _score(ref, j, words, pool, links, opened.head, entry, keys)
                aligned += 1
                size = _insert(places[row], scores[row], size, j, value)
            if low == 0 or (size == k and low <= scores[row, k - 1]):
                break
            high = low
            low = scores[row, k - 1] if size == k else 0.0
        if size < k or scores[row, k - 1] == 0:
            for j in range(len(bounds)):
                if bounds[j] == 0:
                    size = _insert(places[row], scores[row], size, j, 0.0)
    return aligned
