"""Does a ranker keep the rules? Run it on your own class before you trust its rankings."""

from __future__ import annotations

import numpy as np

from pfungst.core import PfungstError
from pfungst.core.types import no_progress
from pfungst.probes.noise.ranking import Ranker

_THINGS = ("car", "truck", "cat", "dog", "table", "phone", "tree", "boat")
_POOL = [f"{start} {thing}?" for thing in _THINGS for start in ("How old is the", "What color is the", "Where is the")]
_MAIN = ["How old is the bicycle?", _POOL[3], "Is there a dog on the table?"]
_EXCLUDED = [None, 3, None]
_K = 5


def check_ranker(ranker: Ranker) -> list[str]:
    """What is wrong with a ranker, in sentences; empty when it keeps the rules."""
    if not isinstance(getattr(ranker, "name", None), str) or not ranker.name:
        return ["The ranker has no name: `name` must be a non-empty string."]
    if not callable(getattr(ranker, "top", None)):
        return ["The ranker lacks the method top(main, pool, k, excluded, progress)."]
    try:
        indices, scores, gaps = (np.asarray(part) for part in ranker.top(_MAIN, _POOL, _K, _EXCLUDED, no_progress))
        again = np.asarray(ranker.top(_MAIN, _POOL, _K, _EXCLUDED, no_progress)[0])
        alone = np.asarray(ranker.top(_MAIN[1:2], _POOL, _K, _EXCLUDED[1:2], no_progress)[0])
    except PfungstError as error:
        return [f"top() could not rank {len(_POOL)} plain questions: {error}"]
    except Exception as error:
        return [f"top() must return indices, scores and gaps, but failed with {type(error).__name__}: {error}"]
    shape = (len(_MAIN), _K)
    if indices.shape != shape or scores.shape != shape or gaps.shape != (len(_MAIN),):
        return [
            f"top() must give indices and scores of shape {shape} and gaps of shape ({len(_MAIN)},), "
            f"not {indices.shape}, {scores.shape} and {gaps.shape}."
        ]
    problems = []
    if not np.issubdtype(indices.dtype, np.integer) or not ((indices >= 0) & (indices < len(_POOL))).all():
        problems.append("The indices must be whole numbers that name places in the pool.")
    if any(len(set(row.tolist())) < _K for row in indices):
        problems.append("A pool question is ranked twice for one main question.")
    if _EXCLUDED[1] in indices[1]:
        problems.append("The excluded question (the main question itself) was ranked.")
    if not np.isfinite(scores).all() or (np.diff(scores) > 0).any():
        problems.append("The scores must be known numbers, best first.")
    if not np.array_equal(indices, again):
        problems.append("The same questions got a different ranking the second time.")
    if not np.array_equal(indices[1], alone[0]):
        problems.append("A main question got a different ranking when it was ranked alone.")
    return problems
