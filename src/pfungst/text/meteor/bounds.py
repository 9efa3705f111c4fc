"""Upper bounds of METEOR for every pool question, by bit operations.

The first bound takes every word for matched in the best way any of the four modules offers, and all matches for one
chunk: no alignment can reach more. The second, for the questions that the first leaves, looks which neighbours can be
in one chunk: words split into segments, c chunks lie in c segments, so for each c the heaviest c count.
Words of a sentence are bits of a machine word; those behind the 64th count as matched.
Weights are counted in twentieths, so they are whole: a content word weighs 15 and a function word 5, of which an exact
match counts all, a synonym 12 and 4, a stem or paraphrase 9 and 3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pfungst.text.compiled import Array, Bits, compiled, ones
from pfungst.text.meteor.align import ALPHA, BETA, GAMMA
from pfungst.text.meteor.index import MASK, Links, Sentences, Words

ROUNDING = 1.0 + 1e-9
"""The bound must stay one in floating-point numbers."""
EXACT, SYNONYM, OTHER = 3, 2, 1
"""Kinds of match, better ones higher; `masks[word, kind - 1]` are the words of the main question so matched."""
INNER = 3
"""`masks[word, INNER]`: words of the main question that one word can cover together with the one before."""


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
    """(words, 4) words of the main question, by kind."""
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
                opened.masks[links.word[other], INNER] |= _bits(i + 1, links.length[phrase] - 1)
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
def _segments(
    matched: Bits, joined: Bits, exact: Bits, synonym: Bits, function: Bits, weight: Array, many: Array
) -> int:
    """Weight and number of words of the c heaviest (fullest) segments into weight[c], many[c]; number of segments."""
    size = 0
    starts = matched & ~(joined & (matched << np.uint64(1)))
    while matched:
        start = matched & (~matched + np.uint64(1))
        # The words of this segment: from its start up to the next one.
        above = starts & ~(start | (start - np.uint64(1)))
        part = matched if above == 0 else matched & ((above & (~above + np.uint64(1))) - np.uint64(1))
        matched &= ~part
        first, second = part & exact, part & synonym
        own = 2 * _weight(first, function) + _weight(second, function) + 3 * _weight(part, function)
        count = ones(part)
        k = size
        while k > 0 and weight[k] < own:
            weight[k + 1] = weight[k]
            k -= 1
        weight[k + 1] = own
        k = size
        while k > 0 and many[k] < count:
            many[k + 1] = many[k]
            k -= 1
        many[k + 1] = count
        size += 1
    weight[0], many[0] = 0, 0
    for k in range(1, size + 1):
        weight[k] += weight[k - 1]
        many[k] += many[k - 1]
    return size


@compiled
def tighten(
    bound: float, row: int, j: int, main: Sentences, pool: Sentences, links: Links, opened: Opened, work: Array
) -> float:
    """The second bound of pool question j; `bound`: the first. work: integers (4, MASK + 2)."""
    length, total, function = main.starts[row + 1] - main.starts[row], main.total[row], main.function[row]
    hyp = pool.words[pool.starts[j] : pool.starts[j + 1]]
    begin, end = pool.phrase_starts[j], pool.phrase_starts[j + 1]
    places, phrases, phrase_length = pool.phrase_place[begin:end], pool.phrase[begin:end], links.length
    own_total, own_function = pool.total[j], pool.function[j]
    if length > MASK or len(hyp) > MASK:
        return bound
    one = np.uint64(1)
    exact, synonym, other, joined = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
    own_exact, own_synonym, own_other, own_joined = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
    before = np.uint64(0)
    for k in range(len(hyp)):
        word = hyp[k]
        kind = opened.best[word]
        now = np.uint64(0)
        if kind:
            bit = one << np.uint64(k)
            if kind == EXACT:
                own_exact |= bit
            elif kind == SYNONYM:
                own_synonym |= bit
            else:
                own_other |= bit
            now = opened.masks[word, 0] | opened.masks[word, 1] | opened.masks[word, 2]
            exact |= opened.masks[word, EXACT - 1]
            synonym |= opened.masks[word, SYNONYM - 1]
            other |= opened.masks[word, OTHER - 1]
            both = (before << one) & now
            joined |= both | opened.masks[word, INNER]
            if both:
                own_joined |= bit
        before = now
    for o in range(len(phrases)):
        if opened.head[phrases[o]] >= 0:
            covered, own = opened.phrase_masks[phrases[o]], _bits(places[o], phrase_length[phrases[o]])
            other |= covered
            own_other |= own
            joined |= covered | (covered << one)
            own_joined |= own | (own << one)
    synonym &= ~exact
    own_synonym &= ~own_exact
    segments = _segments(exact | synonym | other, joined, exact, synonym, function, work[0], work[1])
    own_segments = _segments(
        own_exact | own_synonym | own_other, own_joined, own_exact, own_synonym, own_function, work[2], work[3]
    )
    top = 0.0
    for chunks in range(1, max(segments, own_segments) + 1):
        c, d = min(chunks, segments), min(chunks, own_segments)
        mean = 1.0 / ((1.0 - ALPHA) / (work[2, d] / own_total) + ALPHA / (work[0, c] / total))
        if not (chunks == 1 and work[1, c] == length and work[3, d] == len(hyp)):
            mean *= 1.0 - GAMMA * (chunks / ((work[1, c] + work[3, d]) / 2)) ** BETA
        top = max(top, mean)
    return min(bound, top * ROUNDING)
