"""The best pool questions for METEOR by aligning few pairs: first an upper bound for every pool question. Compiled.

The bound takes every word for matched in the best way any of the four modules offers, and all matches for one chunk: no
alignment can reach more. It is made of bit operations.
Words of a sentence are bits of a machine word; those behind the 64th count as matched.
Weights are counted in twentieths, so they are whole: a content word weighs 15 and a function word 5, of which an exact
match counts all, a synonym 12 and 4, a stem or paraphrase 9 and 3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pfungst.text.compiled import Array, Bits, compiled, ones
from pfungst.text.meteor.index import MASK, Links, Sentences, Words
from pfungst.text.meteor.score import ALPHA, BETA, GAMMA, align, find_matches

ROUNDING = 1.0 + 1e-9
"""The bound must stay one in floating-point numbers."""
EXACT, SYNONYM, OTHER = 3, 2, 1
"""Kinds of match, better ones higher; `masks[word, kind - 1]` are the words of the main question so matched."""
BUCKETS = 1024
"""Bounds are counted in as many classes to find the first candidates without sorting the pool."""


@compiled
def _weight(mask: Bits, function: Bits) -> Bits:
    """Three for every content word and one for every function word of the mask."""
    return 3 * ones(mask) - 2 * ones(mask & function)


@compiled
def _bits(first: int, many: int) -> Bits:
    """The mask of some neighbouring words, as far as they fit."""
    mask = np.uint64(0)
    for place in range(first, min(first + many, MASK)):
        mask |= np.uint64(1) << np.uint64(place)
    return mask


class Opened(NamedTuple):
    """What a main question offers to match, by word and by phrase."""

    best: Array
    """(words,) best kind of match, 0 for none."""
    masks: Array
    """(words, 3) words of the main question, by kind."""
    phrase_masks: Array
    """(phrases,) the same of phrases of several words."""
    head: Array
    """(phrases,) first row for `find_matches`, -1 for none."""


@compiled
def _offer(word: int, kind: int, bit: Bits, opened: Opened) -> None:
    opened.best[word] = max(opened.best[word], kind)
    opened.masks[word, kind - 1] |= bit


@compiled
def open_main(row: int, main: Sentences, words: Words, links: Links, opened: Opened) -> Array:
    """Write down what a main question offers to match; returns the rows that `find_matches` reads."""
    ref = main.words[main.starts[row] : main.starts[row + 1]]
    begin, end = main.phrase_starts[row], main.phrase_starts[row + 1]
    places, phrases, head = main.phrase_place[begin:end], main.phrase[begin:end], opened.head
    opened.best[:] = 0
    opened.masks[:] = 0
    opened.phrase_masks[:] = 0
    head[:] = -1
    size = 0
    for o in range(len(ref) + len(phrases)):
        phrase = words.phrase[ref[o]] if o < len(ref) else phrases[o - len(ref)]
        if phrase >= 0:
            size += links.starts[phrase + 1] - links.starts[phrase]
    entry = np.empty((size, 5), dtype=np.int64)
    at = 0
    for o in range(len(ref) + len(phrases)):
        i = o if o < len(ref) else places[o - len(ref)]
        phrase = words.phrase[ref[o]] if o < len(ref) else phrases[o - len(ref)]
        if o < len(ref):
            one = ref[o]
            bit = _bits(i, 1)
            for k in range(words.exact_starts[words.exact[one]], words.exact_starts[words.exact[one] + 1]):
                _offer(words.exact_words[k], EXACT, bit, opened)
            for k in range(words.stem_starts[words.stem[one]], words.stem_starts[words.stem[one] + 1]):
                if words.exact[words.stem_words[k]] != words.exact[one]:
                    _offer(words.stem_words[k], OTHER, bit, opened)
            for k in range(words.synonym_starts[one], words.synonym_starts[one + 1]):
                _offer(words.synonym_words[k], SYNONYM, bit, opened)
        if phrase < 0:
            continue
        covered = _bits(i, links.length[phrase])
        for link in range(links.starts[phrase], links.starts[phrase + 1]):
            other = links.other[link]
            entry[at, 0], entry[at, 1], entry[at, 2] = head[other], i, links.length[phrase]
            entry[at, 3], entry[at, 4] = links.entry[link], links.reverse[link]
            head[other] = at
            at += 1
            if links.word[other] >= 0:
                _offer(links.word[other], OTHER, covered, opened)
            else:
                opened.phrase_masks[other] |= covered
    return entry


@compiled
def bound_all(row: int, main: Sentences, pool: Sentences, links: Links, opened: Opened, bounds: Array) -> None:
    """bounds[j]: what METEOR of pool question j with the opened main question cannot exceed; 0 only where it is 0."""
    length, total, function = main.starts[row + 1] - main.starts[row], main.total[row], main.function[row]
    words, starts, phrase_starts, phrases = pool.words, pool.starts, pool.phrase_starts, pool.phrase
    phrase_place, phrase_length = pool.phrase_place, links.length
    pool_total, pool_function = pool.total, pool.function
    best, masks, phrase_masks, head = opened
    longest = 0
    for j in range(len(starts) - 1):
        longest = max(longest, starts[j + 1] - starts[j])
    factor = np.zeros(length + longest + 1)
    for many in range(1, len(factor)):
        factor[many] = 1.0 - GAMMA * min(1.0, 2.0 / many) ** BETA
    hidden = total - 5 * _weight(_bits(0, length), function) if length > MASK else 0
    for j in range(len(starts) - 1):
        exact, synonym, other = np.uint64(0), np.uint64(0), np.uint64(0)
        own_exact, own_synonym, own_other = np.uint64(0), np.uint64(0), np.uint64(0)
        begin, size = starts[j], starts[j + 1] - starts[j]
        any_match = False
        for k in range(size):
            word = words[begin + k]
            kind = best[word]
            if kind:
                any_match = True
                bit = np.uint64(1) << np.uint64(k) if k < MASK else np.uint64(0)
                if kind == EXACT:
                    own_exact |= bit
                elif kind == SYNONYM:
                    own_synonym |= bit
                else:
                    own_other |= bit
                exact |= masks[word, EXACT - 1]
                synonym |= masks[word, SYNONYM - 1]
                other |= masks[word, OTHER - 1]
        for o in range(phrase_starts[j], phrase_starts[j + 1]):
            if head[phrases[o]] >= 0:
                any_match = True
                other |= phrase_masks[phrases[o]]
                own_other |= _bits(phrase_place[o], phrase_length[phrases[o]])
        if not any_match:
            bounds[j] = 0.0
            continue
        synonym &= ~exact
        other &= ~(exact | synonym)
        weight = 5 * _weight(exact, function) + 4 * _weight(synonym, function) + 3 * _weight(other, function)
        many = ones(exact | synonym | other) + max(length - MASK, 0)
        own_synonym &= ~own_exact
        own_other &= ~(own_exact | own_synonym)
        own = pool_total[j]
        own_many = size
        if size <= MASK:
            f = pool_function[j]
            own = 5 * _weight(own_exact, f) + 4 * _weight(own_synonym, f) + 3 * _weight(own_other, f)
            own_many = ones(own_exact | own_synonym | own_other)
        precision, recall = own / pool_total[j], (weight + hidden) / total
        mean = 1.0 / ((1.0 - ALPHA) / precision + ALPHA / recall)
        if many == length and own_many == size:
            bounds[j] = mean * ROUNDING
        else:
            bounds[j] = mean * factor[many + own_many] * ROUNDING


@compiled
def _workspace(words: Words, links: Links) -> tuple[Opened, Array]:
    """What is written on for every main question anew: what it offers, and matches."""
    opened = Opened(
        np.zeros(len(words.exact), dtype=np.uint8),
        np.zeros((len(words.exact), 3), dtype=np.uint64),
        np.zeros(len(links.length), dtype=np.uint64),
        np.zeros(len(links.length), dtype=np.int32),
    )
    return opened, np.empty(256, dtype=np.int64)


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
    opened, keys = _workspace(words, links)
    for row in range(first, last):
        bounds = limits[row - first]
        entry = open_main(row, main, words, links, opened)
        bound_all(row, main, pool, links, opened, bounds)
        ref = main.words[main.starts[row] : main.starts[row + 1]]
        for j in range(len(bounds)):
            scores[row - first, j] = 0.0
            if bounds[j] > 0:
                scores[row - first, j], keys = _score(ref, j, words, pool, links, opened.head, entry, keys)


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
    first: int, last: int, words: Words, main: Sentences, pool: Sentences, links: Links, starts: Array,
    excluded: Array, places: Array, scores: Array,
) -> int:  # fmt: skip
    """The best pool questions of the main questions from first to last into places and scores (main, k).

    Candidates are aligned from the highest bound downwards until the bound falls below the k-th score: nothing behind
    it can be among the best. Returns the number of pairs aligned. excluded: pool places, those of
    main question i from starts[i] to starts[i + 1].
    """
    opened, keys = _workspace(words, links)
    bounds, below = np.empty(len(pool.starts) - 1), np.empty(len(pool.starts) - 1)
    chosen = np.empty(len(bounds), dtype=np.int64)
    k = places.shape[1]
    aligned = 0
    for row in range(first, last):
        entry = open_main(row, main, words, links, opened)
        bound_all(row, main, pool, links, opened, bounds)
        ref = main.words[main.starts[row] : main.starts[row + 1]]
        for place in excluded[starts[row] : starts[row + 1]]:
            bounds[place] = -1.0
        size, high = 0, np.inf
        low = _first_limit(bounds, k)
        while True:
            many = 0
            for j in range(len(bounds)):
                if low <= bounds[j] < high and bounds[j] > 0:
                    chosen[many], below[many] = j, -bounds[j]
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
