"""METEOR 1.5 of many pairs, equal to pycocoevalcap's (English, -norm), without its Java program.

The main question is the reference, the pool question the hypothesis. For the best k only a small part of the pairs is
aligned: the others have an upper bound below the k-th score. Word lists, synonyms and paraphrases are read from the
installed pycocoevalcap (extra `meteor`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from pfungst.core import Progress
from pfungst.core.types import no_progress
from pfungst.text.meteor.index import Index, build
from pfungst.text.meteor.words import lists, paraphrases

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
STEP = 4
"""Main questions a thread takes at once."""


def meteor_rows(main: Sequence[str], pool: Sequence[str]) -> Callable[[int, int], Floats]:
    """A function of (first, last): METEOR (rows, pool) of these main questions with every pool question."""
    index = _index(main, pool, no_progress)
    return lambda first, last: scores_and_bounds(index, first, last)[0]


def meteor_top(
    main: Sequence[str],
    pool: Sequence[str],
    k: int,
    excluded: Sequence[Sequence[int]],
    progress: Progress = no_progress,
) -> tuple[Longs, Floats]:
    """The k best pool questions of every main question: places and scores (main, k), best first.

    Ties go to the smaller place. excluded[i] are the pool places that main question i must not get.
    """
    return best_pairs(_index(main, pool, progress), k, excluded, progress)[:2]


def _index(main: Sequence[str], pool: Sequence[str], progress: Progress) -> Index:
    return build(main, pool, lists(), paraphrases(progress))


def scores_and_bounds(index: Index, first: int, last: int) -> tuple[Floats, Floats]:
    """Scores of all pairs (rows, pool), and the upper bounds that the search for the best relies on."""
    from pfungst.text.meteor.search import score_rows

    scores, bounds = np.zeros((2, last - first, len(index.pool.starts) - 1))

    def work(begin: int, end: int) -> None:
        score_rows(begin, end, *index, bounds[begin - first : end - first], scores[begin - first : end - first])

    for _ in _spread(work, first, last):
        pass
    return scores, bounds


def best_pairs(
    index: Index, k: int, excluded: Sequence[Sequence[int]], progress: Progress
) -> tuple[Longs, Floats, int]:
    """As `meteor_top`, with the number of pairs that were aligned."""
    from pfungst.text.meteor.search import top_rows

    mains = len(index.main.starts) - 1
    places, scores = np.zeros((mains, k), dtype=np.int64), np.zeros((mains, k))
    starts = np.cumsum([0, *map(len, excluded)], dtype=np.int64)
    hidden = np.asarray([place for places in excluded for place in places], dtype=np.int64)

    def work(begin: int, end: int) -> int:
        return int(top_rows(begin, end, *index, starts, hidden, places, scores))

    progress("ranking", 0, mains)
    aligned = 0
    for done, (_, end) in _spread(work, 0, mains):
        aligned += done
        progress("ranking", end, mains)
    return places, scores, aligned


def _spread(work: Callable[[int, int], Any], first: int, last: int) -> Iterator[tuple[Any, tuple[int, int]]]:
    """Results of work(begin, end) over slices of main questions, in order; the threads run compiled code."""
    import numba

    threads = numba.get_num_threads()
    slices = [(begin, min(begin + STEP, last)) for begin in range(first, last, STEP)]
    with ThreadPoolExecutor(threads) as pool:
        waiting: list[Future[Any]] = [pool.submit(work, *one) for one in slices]
        try:
            for future, one in zip(waiting, slices, strict=True):
                yield future.result(), one
        finally:
            for future in waiting:
                future.cancel()
