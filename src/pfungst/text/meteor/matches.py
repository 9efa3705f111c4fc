"""All matches between a main question (reference) and a pool question (hypothesis), compiled.

A match is packed into one integer that sorts as METEOR lists them: reference word, module, and inside the module the
order in which it finds them. Fields from the lowest bit, with their widths:

    exact, stem, synonym     hypothesis word 14
    paraphrase               hypothesis length 3, hypothesis word 14, table entry 23, reference length 3
    the same, reversed       reference length 3, table entry 23, hypothesis length 3, hypothesis word 14
"""

from __future__ import annotations

import numpy as np

from pfungst.text.compiled import Array, compiled

EXACT, STEM, SYNONYM, PARAPHRASE, REVERSED = 0, 1, 2, 3, 4
"""METEOR's modules; it looks for paraphrases in both directions."""
MODULE_AT, WORD_AT = 43, 46


@compiled
def _is_synonym(one: int, two: int, starts: Array, words: Array) -> bool:
    near = words[starts[one] : starts[one + 1]]
    at = np.searchsorted(near, two)
    return bool(at < len(near) and near[at] == two)


@compiled
def _push(keys: Array, size: int, key: int) -> Array:
    if size == len(keys):
        grown = np.empty(2 * size, dtype=np.int64)
        grown[:size] = keys
        keys = grown
    keys[size] = key
    return keys


@compiled
def find_matches(
    ref: Array, hyp: Array, exact: Array, stem: Array, synonym_starts: Array, synonym_words: Array, own: Array,
    places: Array, phrases: Array, length: Array, head: Array, entry: Array, keys: Array,
) -> tuple[Array, int]:  # fmt: skip
    """All matches, packed and sorted: (keys, how many).

    places, phrases: phrases of the hypothesis of two or more words; own: the single-word phrase of each word.
    head[phrase]: first row of `entry` for a phrase of the hypothesis, or -1. A row is (next row, word of the reference,
    reference length, table entry, reversed).
    """
    size = 0
    same = len(ref) == len(hyp)
    for i in range(len(ref)):
        same = same and exact[ref[i]] == exact[hyp[i]]
    for i in range(len(ref)):
        at = i << WORD_AT
        one = ref[i]
        with_synonyms = synonym_starts[one] < synonym_starts[one + 1]
        for j in range(len(hyp)):
            two = hyp[j]
            if exact[one] == exact[two]:
                keys = _push(keys, size, at | j)
                size += 1
            elif not same:
                if stem[one] == stem[two]:
                    keys = _push(keys, size, at | (STEM << MODULE_AT) | j)
                    size += 1
                if with_synonyms and _is_synonym(one, two, synonym_starts, synonym_words):
                    keys = _push(keys, size, at | (SYNONYM << MODULE_AT) | j)
                    size += 1
    if not same:
        for o in range(len(hyp) + len(phrases)):
            j = o if o < len(hyp) else places[o - len(hyp)]
            phrase = own[hyp[o]] if o < len(hyp) else phrases[o - len(hyp)]
            row = head[phrase] if phrase >= 0 else -1
            while row >= 0:
                words, number, many = entry[row, 2], entry[row, 3], length[phrase]
                if entry[row, 4]:
                    body = (REVERSED << MODULE_AT) | (j << 29) | (many << 26) | (number << 3) | words
                else:
                    body = (PARAPHRASE << MODULE_AT) | (words << 40) | (number << 17) | (j << 3) | many
                keys = _push(keys, size, (entry[row, 1] << WORD_AT) | body)
                size += 1
                row = entry[row, 0]
    keys[:size].sort()
    return keys, size


@compiled
def unpack(keys: Array, size: int) -> Array:
    """Matches as rows (module, reference word, reference length, hypothesis word, hypothesis length)."""
    matches = np.empty((size, 5), dtype=np.int64)
    for m in range(size):
        key = keys[m]
        module = (key >> MODULE_AT) & 7
        matches[m, 0] = min(module, PARAPHRASE)
        matches[m, 1] = key >> WORD_AT
        if module < PARAPHRASE:
            matches[m, 2], matches[m, 3], matches[m, 4] = 1, key & 0x3FFF, 1
        elif module == PARAPHRASE:
            matches[m, 2], matches[m, 3], matches[m, 4] = (key >> 40) & 7, (key >> 3) & 0x3FFF, key & 7
        else:
            matches[m, 2], matches[m, 3], matches[m, 4] = key & 7, (key >> 29) & 0x3FFF, (key >> 26) & 7
    return matches
