"""A model of your own as a class: batches, an option, a confidence.

    pfungst check player examples/own_player.py:Brightest
    pfungst examine examples/own_player.py:Brightest --option threshold=0.6
    python examples/own_player.py

A plain function `answer(image, question) -> text` is enough for a start. A class gets whole batches, and its
constructor may load weights. See docs/reference/players.md for all that a player may declare.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import pfungst
from pfungst.core import Answer, Query
from pfungst.core.images import as_rgb


class Brightest:
    """Says "yes" about bright images. Put your network in its place."""

    name = "brightest"
    batch_size = 64

    def __init__(self, threshold: float = 0.5) -> None:
        self.threshold = threshold
        # Answers are stored under the fingerprint: name all that they depend on, such as a hash of the weights.
        self.fingerprint = f"brightest-1, threshold {threshold}"

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        return [self._one(query) for query in queries]

    def _one(self, query: Query) -> Answer:
        if query.image is None:  # some probes take the image away
            return Answer("no", confidence=0.5)
        brightness = float(np.asarray(as_rgb(query.image)).mean()) / 255
        return Answer("yes" if brightness > self.threshold else "no", confidence=abs(brightness - self.threshold))


if __name__ == "__main__":
    run = pfungst.examine(Brightest(), "world?scenes=5", probes=["control"], out="runs/brightest")
    print(run.findings[0].verdict)
