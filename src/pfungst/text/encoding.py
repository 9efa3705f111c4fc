"""`encode`: sentences to vectors, each sentence once, remembered on disk."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pfungst.text.encoders.base import Encoder, FloatArray, check_sentences
from pfungst.text.encoders.cache import Progress, cached, encode_checked
from pfungst.text.encoders.registry import DEFAULT, get_encoder

SMALLEST = 32
"""Shorter lists are encoded faster than they are looked up."""


def encode(
    sentences: Sequence[str],
    encoder: str | Encoder = DEFAULT,
    *,
    cache: bool = True,
    progress: Progress | None = None,
) -> FloatArray:
    """Vectors (sentences, dim), float32, one row a sentence, in order.

    `encoder` is a name for `get_encoder` or any object with `name`, `fingerprint`, `dim` and `encode`. Lists are kept
    in the cache folder (`$PFUNGST_CACHE`, else the user's) under their content, and come back as read-only memory maps;
    a run that was killed goes on where it was. Vectors are as the encoder gives them: scale them to length 1 for
    cosines.

    A sentence without words gives a row of zeros. Something that is not text raises DataError with its position.
    """
    chosen = get_encoder(encoder) if isinstance(encoder, str) else encoder
    checked = check_sentences(sentences)
    distinct = list(dict.fromkeys(checked))
    if cache and len(distinct) >= SMALLEST:
        rows = cached(chosen, distinct, progress)
    else:
        rows = encode_checked(chosen, distinct)
    if len(distinct) == len(checked):
        return rows
    where = {sentence: row for row, sentence in enumerate(distinct)}
    picked: FloatArray = rows[np.array([where[sentence] for sentence in checked], dtype=np.intp)]
    return picked
