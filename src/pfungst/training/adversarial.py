"""Adversarial training: scenes that fooled a model are mixed into the questions it learnt from.

Measuring CLEVRness, "Adversarial training". `pfungst harden` measures what it is worth.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def mixed_rows(clean: int, found: int, share: float, seed: int) -> NDArray[np.int64]:
    """Rows of the training data: clean ones first, so that a model forgets nothing, then fooling scenes, repeated until
    they are `share` of all."""
    wanted = max(found, round(clean * share / (1 - share)))
    rng = np.random.default_rng([seed, 0x313])
    repeated = np.concatenate([rng.permutation(found) for _ in range(-(-wanted // found))])[:wanted]
    return np.concatenate([np.arange(clean), clean + repeated]).astype(np.int64)
