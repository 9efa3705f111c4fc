"""METEOR of one pair of sentences, compiled: all matches, the best choice among them, and its score.

A match is packed into one integer that sorts as METEOR lists them: reference word, module, and inside the module the
order in which it finds them. Fields from the lowest bit, with their widths:

    exact, stem, synonym     hypothesis word 14
    paraphrase               hypothesis length 3, hypothesis word 14, table entry 23, reference length 3
    the same, reversed       reference length 3, table entry 23, hypothesis length 3, hypothesis word 14
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pfungst.text.compiled import Array, compiled

ALPHA, BETA, GAMMA, DELTA = 0.85, 0.2, 0.6, 0.75
"""METEOR 1.5, English, ranking task: weight of recall, of fragmentation (two), of content words."""
WEIGHTS = (1.0, 0.6, 0.8, 0.6)
"""Exact, stem, synonym, paraphrase."""
BEAM = 40
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


@compiled
def _settle(matches: Array, first: Array, reference: int, hypothesis: int) -> Array:
    """The match of each reference word that competes with no other, -1 elsewhere."""
    cover_reference = np.zeros(reference, dtype=np.int64)
    cover_hypothesis = np.zeros(hypothesis, dtype=np.int64)
    for m in range(len(matches)):
        for k in range(matches[m, 1], matches[m, 1] + matches[m, 2]):
            cover_reference[k] += 1
        for k in range(matches[m, 3], matches[m, 3] + matches[m, 4]):
            cover_hypothesis[k] += 1
    settled = np.full(reference, -1, dtype=np.int64)
    for i in range(reference):
        m = first[i]
        if first[i + 1] - m != 1:
            continue
        alone = True
        for k in range(i, i + matches[m, 2]):
            alone = alone and cover_reference[k] == 1
        for k in range(matches[m, 3], matches[m, 3] + matches[m, 4]):
            alone = alone and cover_hypothesis[k] == 1
        if alone:
            settled[i] = m
    return settled


@compiled
def _place(state: Array, order: Array, size: int, value: int, chunks: int, distance: int) -> tuple[int, int]:
    """Rank and slot of a new path among the sorted paths, behind its equals; rank BEAM if it falls off."""
    rank = size
    while rank > 0:
        k = order[rank - 1]
        if state[k, 0] > value or (state[k, 0] == value and (
            state[k, 1] < chunks or (state[k, 1] == chunks and state[k, 2] <= distance)
        )):  # fmt: skip
            break
        rank -= 1
    if rank == BEAM:
        return BEAM, -1
    slot = size if size < BEAM else order[BEAM - 1]
    for k in range(min(size, BEAM - 1), rank, -1):
        order[k] = order[k - 1]
    order[rank] = slot
    return rank, slot


@compiled
def search(matches: Array, first: Array, reference: int, hypothesis: int) -> Array:
    """METEOR's beam search: the match chosen at each reference word, -1 for none.

    A path is better with more words covered (exact matches count 1 a side, others half a word, each rounded down),
    then with fewer chunks, then by distance, then by order of discovery. METEOR adds the distance of a new match to the
    path it leaves instead of the one it begins; the ranking depends on it, so it is done here too.
    State: value, chunks, distance, end of the last match in the hypothesis or -1, next free reference word.
    """
    settled = _settle(matches, first, reference, hypothesis)
    covered = np.zeros(reference, dtype=np.bool_)
    begun = np.zeros((hypothesis + 63) // 64, dtype=np.uint64)
    for i in range(reference):
        m = settled[i]
        if m >= 0:
            for k in range(i, i + matches[m, 2]):
                covered[k] = True
            for j in range(matches[m, 3], matches[m, 3] + matches[m, 4]):
                begun[j >> 6] |= np.uint64(1) << np.uint64(j & 63)
    state, after = np.zeros((BEAM, 5), dtype=np.int64), np.zeros((BEAM, 5), dtype=np.int64)
    used, used_after = np.zeros((BEAM, len(begun)), dtype=np.uint64), np.zeros((BEAM, len(begun)), dtype=np.uint64)
    order, order_after = np.zeros(BEAM, dtype=np.int64), np.zeros(BEAM, dtype=np.int64)
    parent, chosen = np.zeros((reference, BEAM), dtype=np.int32), np.zeros((reference, BEAM), dtype=np.int32)
    state[0, 3] = -1
    for k in range(len(begun)):
        used[0, k] = begun[k]
    size = 1
    for now in range(reference):
        size_after = 0
        for rank in range(size):
            path = order[rank]
            value, chunks, distance = state[path, 0], state[path, 1], state[path, 2]
            end, free = state[path, 3], state[path, 4]
            options = first[now + 1] - first[now]
            if covered[now] or now < free:
                options = 0
            for option in range(options + 1):
                m = -1
                if option < options:
                    m = first[now] + option
                    clash = False
                    for i in range(now, now + matches[m, 2]):
                        clash = clash or covered[i]
                    for j in range(matches[m, 3], matches[m, 3] + matches[m, 4]):
                        clash = clash or (used[path, j >> 6] >> np.uint64(j & 63)) & np.uint64(1)
                    if clash:
                        continue
                elif now >= free:
                    m = settled[now]
                new_value, new_chunks, new_distance, new_end, new_free = value, chunks, distance, end, free
                if m >= 0:
                    step = abs(now - matches[m, 3])
                    if option < options:
                        distance += step
                    else:
                        new_distance += step
                    if matches[m, 0] == 0:
                        new_value += 2
                    else:
                        new_value += matches[m, 2] // 2 + matches[m, 4] // 2
                    if end != -1 and matches[m, 3] != end:
                        new_chunks += 1
                    new_end = matches[m, 3] + matches[m, 4]
                    new_free = now + matches[m, 2]
                elif now >= free:
                    if end != -1:
                        new_chunks += 1
                        new_end = -1
                    new_free = now + 1
                new_rank, slot = _place(after, order_after, size_after, new_value, new_chunks, new_distance)
                if new_rank == BEAM:
                    continue
                size_after = min(size_after + 1, BEAM)
                after[slot, 0], after[slot, 1], after[slot, 2] = new_value, new_chunks, new_distance
                after[slot, 3], after[slot, 4] = new_end, new_free
                for k in range(len(begun)):
                    used_after[slot, k] = used[path, k]
                if option < options:
                    for j in range(matches[m, 3], matches[m, 3] + matches[m, 4]):
                        used_after[slot, j >> 6] |= np.uint64(1) << np.uint64(j & 63)
                parent[now, slot], chosen[now, slot] = path, m
        state, after = after, state
        used, used_after = used_after, used
        order, order_after = order_after, order
        size = size_after
    best, best_chunks = 0, 0
    for rank in range(size):
        path = order[rank]
        chunks = state[path, 1] + (state[path, 3] != -1)
        if rank == 0 or (state[path, 0] == state[best, 0] and (
            chunks < best_chunks or (chunks == best_chunks and state[path, 2] < state[best, 2])
        )):  # fmt: skip
            best, best_chunks = path, chunks
    taken = np.full(reference, -1, dtype=np.int64)
    for now in range(reference - 1, -1, -1):
        taken[now] = chosen[now, best]
        best = parent[now, best]
    return taken


@compiled
def align(ref: Array, hyp: Array, function: Array, keys: Array, size: int) -> Any:
    """Score of the best alignment by these matches."""
    if size == 0:
        return 0.0
    matches = unpack(keys, size)
    first = np.zeros(len(ref) + 1, dtype=np.int64)
    for m in range(size):
        first[matches[m, 1] + 1] += 1
    for i in range(len(ref)):
        first[i + 1] += first[i]
    taken = search(matches, first, len(ref), len(hyp))
    counts = np.zeros((4, 2, 2), dtype=np.int64)
    chunks, end, free = 0, -1, 0
    for i in range(len(ref)):
        m = taken[i]
        if m < 0:
            if i >= free:
                end = -1
            continue
        for k in range(i, i + matches[m, 2]):
            counts[matches[m, 0], 1, int(function[ref[k]])] += 1
        for k in range(matches[m, 3], matches[m, 3] + matches[m, 4]):
            counts[matches[m, 0], 0, int(function[hyp[k]])] += 1
        chunks += matches[m, 3] != end
        end = matches[m, 3] + matches[m, 4]
        free = i + matches[m, 2]
    test_function, reference_function = 0, 0
    for word in hyp:
        test_function += function[word]
    for word in ref:
        reference_function += function[word]
    return score(len(hyp), len(ref), test_function, reference_function, counts, chunks)


@compiled
def score(test: int, reference: int, test_function: int, reference_function: int, counts: Array, chunks: int) -> Any:
    """The score in full precision, each step in METEOR's order. counts[module, side, is function word]."""
    weighted = np.zeros(2)
    total = np.zeros(2, dtype=np.int64)
    for function in range(2):
        share = 1.0 - DELTA if function else DELTA
        for side in range(2):
            for module in range(4):
                weighted[side] += counts[module, side, function] * WEIGHTS[module] * share
                total[side] += counts[module, side, function]
    if total[0] + total[1] == 0:
        return 0.0
    precision = weighted[0] / (DELTA * (test - test_function) + (1.0 - DELTA) * test_function)
    recall = weighted[1] / (DELTA * (reference - reference_function) + (1.0 - DELTA) * reference_function)
    mean = 1.0 / (((1.0 - ALPHA) / precision) + (ALPHA / recall))
    if total[0] == test and total[1] == reference and chunks == 1:
        return mean
    return max(mean * (1.0 - GAMMA * (chunks / ((total[0] + total[1]) / 2)) ** BETA), 0.0)
