"""The inner loops of the all-pairs metrics, compiled. One row is one main question against the whole pool."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from pfungst.text.compiled import ones

LONGEST = 64
"""Words of a main question that fit one machine word of the bit-parallel subsequence."""
LANES = 4
"""Main questions whose subsequences are computed together."""


@njit(cache=True, parallel=True, nogil=True)
def bleu_rows(
    gram_number, gram_count, gram_order, gram_starts, post_sentence, post_count, post_starts, precision, brevity,
    lengths, orders, out
):  # fmt: skip
    """out[i, j]: BLEU-`orders` of hypothesis j against reference i.

    precision[k, c, length]: ((c + 1e-15) / (guess + 1e-9)) ** (1 / orders) for c matches of order k + 1;
    brevity[i, length].
    """
    size = len(lengths)
    for row in prange(out.shape[0]):
        hits = np.zeros((size, orders), dtype=np.uint8)
        for entry in range(gram_starts[row], gram_starts[row + 1]):
            k = gram_order[entry]
            if k >= orders:
                continue
            gram, wanted = gram_number[entry], gram_count[entry]
            for place in range(post_starts[gram], post_starts[gram + 1]):
                hits[post_sentence[place], k] += min(wanted, post_count[place])
        for j in range(size):
            length = lengths[j]
            value = 1.0
            for k in range(orders):
                value *= precision[k, hits[j, k], length]
            out[row, j] = value * brevity[row, length]


@njit(cache=True, parallel=True, nogil=True)
def cider_rows(
    gram_number, gram_weight, gram_order, gram_starts, main_norm, main_length, post_sentence, post_weight, post_starts,
    pool_inverse_norm, pool_length, penalty, out
):  # fmt: skip
    """out[i, j]: CIDEr-D. Weights are tf-idf; pool_inverse_norm[k, j] is 1 / norm, 1 where the norm is 0."""
    size = out.shape[1]
    for row in prange(out.shape[0]):
        total = np.zeros(size)
        for entry in range(gram_starts[row], gram_starts[row + 1]):
            gram, weight, k = gram_number[entry], gram_weight[entry], gram_order[entry]
            scale = weight / main_norm[k, row] if main_norm[k, row] != 0 else weight
            inverse = pool_inverse_norm[k]
            for place in range(post_starts[gram], post_starts[gram + 1]):
                j = post_sentence[place]
                total[j] += min(post_weight[place], weight) * scale * inverse[j]
        for j in range(size):
            gap = abs(pool_length[j] - main_length[row])
            out[row, j] = total[j] * penalty[gap] * 2.5  # mean over four orders, times ten


@njit(cache=True, nogil=True)
def subsequence(a, b):
    """Length of the longest common subsequence of two lists of word numbers of any length."""
    row = np.zeros(len(b) + 1, dtype=np.int32)
    for i in range(len(a)):
        diagonal = 0
        for j in range(len(b)):
            above = row[j + 1]
            row[j + 1] = diagonal + 1 if a[i] == b[j] else max(above, row[j])
            diagonal = above
    return row[len(b)]


@njit(cache=True, parallel=True, nogil=True)
def rouge_rows(main_words, main_starts, new_words, new_starts, shared, counts, order, vocabulary, score, deepest, out):
    """out[i, j]: ROUGE-L of main questions of at most LONGEST words; rows of longer ones are left alone.

    The pool is visited in dictionary order, so that equal beginnings are walked once: the p-th sentence is the pool's
    order[p], it has counts[p] words, the first shared[p] of them those of the one before, the others in new_words from
    new_starts[p] on. LANES main questions go together, which become vector instructions.
    score[subsequence, length of hypothesis, length of reference]. Bit-parallel recurrence of Hyyrö (2004).
    """
    rows = out.shape[0]
    for block in prange((rows + LANES - 1) // LANES):
        first = block * LANES
        lanes = min(LANES, rows - first)
        mask = np.zeros((vocabulary, LANES), dtype=np.uint64)
        full = np.zeros(LANES, dtype=np.uint64)
        length = np.zeros(LANES, dtype=np.int64)
        for lane in range(lanes):
            begin = main_starts[first + lane]
            length[lane] = main_starts[first + lane + 1] - begin
            for place in range(min(length[lane], LONGEST)):
                bit = np.uint64(1) << np.uint64(place)
                mask[main_words[begin + place], lane] |= bit
                full[lane] |= bit
        state = np.empty((deepest + 1, LANES), dtype=np.uint64)
        state[0] = ~np.uint64(0)
        for p in range(len(order)):
            start = new_starts[p] - shared[p]
            for depth in range(shared[p], counts[p]):
                word = new_words[start + depth]
                for lane in range(LANES):
                    now = state[depth, lane]
                    both = now & mask[word, lane]
                    state[depth + 1, lane] = (now + both) | (now - both)
            j, count = order[p], counts[p]
            for lane in range(lanes):
                if length[lane] <= LONGEST:
                    out[first + lane, j] = score[ones(~state[count, lane] & full[lane]), count, length[lane]]


@njit(cache=True, parallel=True, nogil=True)
def rouge_long_rows(rows, main_words, main_starts, words, starts, score, out):
    """The rows of main questions of more than LONGEST words."""
    for place in prange(len(rows)):
        row = rows[place]
        main = main_words[main_starts[row] : main_starts[row + 1]]
        for j in range(out.shape[1]):
            common = subsequence(main, words[starts[j] : starts[j + 1]])
            out[row, j] = score[common, starts[j + 1] - starts[j], len(main)]
