"""The Wu-Palmer rule, once: the scalar functions call it as it stands, the batch kernels compile it."""

from __future__ import annotations

from typing import Any


def wu_palmer(
    one: int,
    other: int,
    up_one: int,
    at: int,
    stop: int,
    above: Any,
    depth_one: int,
    min_depth: Any,
    max_depth: Any,
    to_root: Any,
    nouns: int,
) -> float:
    """Wu-Palmer similarity of two synsets, equal to NLTK's `one.wup_similarity(other)` to the last bit.

    `above[... : stop]` are the ancestors of `other`, itself included, sorted, each with the distance to it in its
    lowest 8 bits; the first that is an ancestor of `one` too stands at `at`, `up_one` steps above `one`; `at` is `stop`
    where there is none. `depth_one` is the minimal
    depth of `one`. Numbers below `nouns` are nouns. The rule has three turns that a textbook does not mention:

    - Of the common ancestors the one with the greatest *minimal* depth subsumes, ties by name (synsets are numbered in
      that order), but its *maximal* depth enters the formula.
    - `one` itself wins a tie, so the measure is not symmetric: woman to lady is 0.947, lady to woman 0.632.
    - Verbs have no common root, so one is simulated above them all; its name sorts before every verb of depth 0.
    """
    if at < stop:
        best = above[at] >> 8
        if best != one and depth_one == min_depth[best]:
            for later in range(at + 1, stop):
                if above[later] >> 8 == one:
                    best, up_one, at = one, 0, later
                    break
        if best < nouns or min_depth[best] > 0 or best == one:
            depth = max_depth[best] + 1
            return float(2.0 * depth / (up_one + depth + (above[at] & 255) + depth))
    return float(2.0 / (to_root[one] + to_root[other] + 2))
