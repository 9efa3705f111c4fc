"""How good an encoder is: can it find the paraphrase of a sentence among many?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pfungst.core import DataError
from pfungst.text.encoders.base import FloatArray, unit_rows


def paraphrase_ranks(one: FloatArray, two: FloatArray, texts: Sequence[str]) -> NDArray[np.int64]:
    """Rank (from 1) of the right candidate for each row of `one`, by cosine.

    `one`, `two`: (n, dim), row i of `two` is the paraphrase of row i of `one`. `texts`: the candidates' texts; a
    candidate with the text of the right one is right too. A tie counts against the encoder.
    """
    if one.shape != two.shape or len(texts) != len(two):
        raise DataError(
            f"Paraphrases come in pairs, but there are {one.shape} and {two.shape} vectors, {len(texts)} texts."
        )
    left, right = unit_rows(one), unit_rows(two)
    names: dict[str, int] = {}
    name = np.array([names.setdefault(text, len(names)) for text in texts])
    ranks = np.zeros(len(one), np.int64)
    for start in range(0, len(one), 512):
        scores = left[start : start + 512] @ right.T
        for row in range(len(scores)):
            i = start + row
            ahead = (scores[row] >= scores[row, i]) & (name != name[i])
            ranks[i] = 1 + np.count_nonzero(ahead)
    return ranks


def recall_at(ranks: NDArray[np.int64], k: int) -> float:
    """Share of sentences whose paraphrase is among the first k, in percent."""
    return float(100 * np.mean(ranks <= k))
