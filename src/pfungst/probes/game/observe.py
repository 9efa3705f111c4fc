"""What an adversary sees of a scene and a question, as numbers."""

from __future__ import annotations

import re
import zlib
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pfungst.world.constants import ATTRIBUTES, BOUND, MAX_OBJECTS
from pfungst.world.scene import Scene

Singles: TypeAlias = npt.NDArray[np.float32]

OBJECT_FEATURES = 3 + sum(len(words) for words in ATTRIBUTES.values())
"""Presence, x / 3, y / 3, and one-hot colour, shape, size, material: 18 numbers."""

TOKENS = 4093
"""Words are numbered 1..4093 by a checksum: any wording has a number, and no list of words must travel with a network.
The few hundred words of CLEVR's templates rarely share one."""
QUESTION_LENGTH = 50
"""Words of a question that are seen (appendix A.3)."""
_SPLIT = re.compile(r"[^\W_]+")


def question_tokens(question: str, length: int) -> npt.NDArray[np.int64]:
    """Word numbers (length,), 0 behind the end; the first `length` words count."""
    tokens = np.zeros(length, dtype=np.int64)
    for place, word in enumerate(_SPLIT.findall(question.lower())[:length]):
        tokens[place] = 1 + zlib.crc32(word.encode()) % TOKENS
    return tokens


def object_features(scene: Scene, positions: npt.ArrayLike | None = None) -> Singles:
    """(10, 18): one row an object, zeros for absent ones. Scenes of more than ten objects are cut."""
    places = scene.positions if positions is None else np.asarray(positions)
    rows = np.zeros((MAX_OBJECTS, OBJECT_FEATURES), dtype=np.float32)
    for row, one, (x, y) in zip(rows, scene.objects, places.tolist(), strict=False):
        row[:3] = 1.0, np.clip(x / BOUND, -4, 4), np.clip(y / BOUND, -4, 4)
        at = 3
        for attribute, words in ATTRIBUTES.items():
            row[at + words.index(getattr(one, attribute))] = 1.0
            at += len(words)
    return rows
