"""Wu-Palmer over many pairs at once, compiled. Imported only by the batch functions, because compilers load slowly.

Arguments of all kernels: `net` is (above, min_depth, max_depth, to_root, nouns) over synset numbers, `terms`
is (starts, senses, is_word) over the terms compared, a sense being (synset, where its ancestors start and stop, minimal
depth): what a pair needs lies side by side, because waiting for memory takes most of the time. They are unpacked once a
kernel and handed on one by one: counting references to all these arrays for every pair took five times as long as the
pair.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from pfungst.text.compiled import compiled
from pfungst.text.wordnet import wu_palmer

_rule = numba.njit(wu_palmer, inline="always")


@compiled
def term_pairs(net: Any, terms: Any, ones: Any, others: Any, result: Any) -> None:
    """Similarity of terms number `ones` to terms number `others`, the best pair of senses, into `result` (pairs,).

    Equal words are 1, whether WordNet knows them or not. Ancestors are sorted, so two lists are walked side by side
    until they meet; the steps have no branch that could be guessed wrongly.
    """
    above, min_depth, max_depth, to_root, nouns = net
    first, senses, is_word = terms
    for k in range(len(ones)):
        left, right = ones[k], others[k]
        if left == right and is_word[left]:
            result[k] = 1.0
            continue
        best = 0.0
        for a in range(first[left], first[left + 1]):
            for b in range(first[right], first[right + 1]):
                i, i_stop, at, stop = senses[a, 1], senses[a, 2], senses[b, 1], senses[b, 2]
                here, there = above[i] >> 8, above[at] >> 8
                while here != there:
                    i += here < there
                    at += there < here
                    if i == i_stop or at == stop:
                        at = stop
                        break
                    here, there = above[i] >> 8, above[at] >> 8
                far = above[i] & 255 if at < stop else -1
                value = _rule(
                    senses[a, 0], senses[b, 0], far, at, stop, above, senses[a, 3], min_depth, max_depth, to_root, nouns
                )
                best = max(best, value)
        result[k] = best


@compiled
def element_pairs(answers: Any, ones: Any, others: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The pairs of elements that the pairs of answers need, in the order in which `combine` reads them."""
    starts, elements, whole = answers
    count = 0
    for k in range(len(ones)):
        if whole[ones[k]] != whole[others[k]]:
            size = (starts[ones[k] + 1] - starts[ones[k]]) * (starts[others[k] + 1] - starts[others[k]])
            count += 2 * size
    left = np.empty(count, np.int64)
    right = np.empty(count, np.int64)
    at = 0
    for k in range(len(ones)):
        if whole[ones[k]] != whole[others[k]]:
            for one, other in ((ones[k], others[k]), (others[k], ones[k])):
                for a in range(starts[one], starts[one + 1]):
                    for b in range(starts[other], starts[other + 1]):
                        left[at] = elements[a]
                        right[at] = elements[b]
                        at += 1
    return left, right


@compiled
def combine(
    answers: Any, ones: Any, others: Any, left: Any, right: Any, values: Any, threshold: float, weight: float
) -> npt.NDArray[np.float64]:
    """WUPS of pairs of answers from the similarities `values` of their elements, `left` and `right`."""
    starts, _, whole = answers
    result = np.ones(len(ones))
    at = 0
    for k in range(len(ones)):
        if whole[ones[k]] != whole[others[k]]:
            for one, other in ((ones[k], others[k]), (others[k], ones[k])):
                product = 1.0
                for _a in range(starts[one], starts[one + 1]):
                    best = 0.0
                    for _b in range(starts[other], starts[other + 1]):
                        below = left[at] != right[at] and values[at] < threshold
                        best = max(best, values[at] * weight if below else values[at])
                        at += 1
                    product *= best
                result[k] = min(result[k], product)
    return result
