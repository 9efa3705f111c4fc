"""Data that a tiny model learns in seconds: the answer is the colour that fills most of the picture."""

from __future__ import annotations

import numpy as np

from pfungst.models import Model, Sizes, build
from pfungst.training import ArrayData

WORDS, ANSWERS = 12, 3
SIZES = Sizes(words=WORDS, answers=ANSWERS, image=(3, 8, 8))


def colours(pictures: int = 30, questions: int = 2, seed: int = 0) -> ArrayData:
    rng = np.random.default_rng(seed)
    shown = rng.integers(0, ANSWERS, pictures)
    pixels = rng.integers(0, 90, (pictures, 3, 8, 8), dtype=np.uint8)
    pixels[np.arange(pictures), shown] += 140
    picture = np.repeat(np.arange(pictures), questions)
    question = rng.integers(4, WORDS, (len(picture), 5))
    return ArrayData(
        {
            "question": question.astype(np.uint8),
            "answer": shown[picture].astype(np.int32),
            "picture": picture.astype(np.int32),
            "pictures": pixels,
        },
        ANSWERS,
    )


def model(seed: int = 0, name: str = "lstm-qi", dropout: float = 0.3) -> Model:
    # Dropout, so that a resumed run only agrees if its random numbers do too.
    return build(name, SIZES, "tiny", seed=seed, dropout=dropout)
