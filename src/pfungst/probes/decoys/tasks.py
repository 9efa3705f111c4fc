"""Choice sets as the numbers that a scorer is trained on."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pfungst.core import Image
from pfungst.probes.decoys.features import Features, grid_features, table_of
from pfungst.probes.decoys.sets import DecoySet

if TYPE_CHECKING:
    from pfungst.probes.decoys.mlp import Task

Progress = Callable[[str, int, int], None]


def vectors_of(texts: Sequence[str], encoder: Any) -> Any:
    """Vectors of texts, float32; one without known words gets random numbers of its own, fixed by the text.

    Otherwise all unknown answers would be one answer to the scorer, and telling them apart is what is tested.
    """
    from pfungst.text import encode

    found = np.array(encode(texts, encoder), np.float32)
    known = found[found.any(1)]
    scale = float(known.std()) if len(known) else 1.0
    for row in np.flatnonzero(~found.any(1)).tolist():
        rng = np.random.default_rng(zlib.crc32(texts[row].casefold().encode("utf-8", "surrogatepass")))
        found[row] = rng.normal(scale=scale, size=found.shape[1])
    return found


class Tasks:
    """The tasks of one split, a choice set at a time; vectors and image features are shared."""

    def __init__(
        self,
        decoys: DecoySet,
        encoder: Any,
        features: Features | None = grid_features,
        progress: Progress = lambda what, done, total: None,
    ) -> None:
        self.decoys = decoys
        self._answers = vectors_of(decoys.split.book.texts, encoder)
        self._questions = vectors_of(decoys.split.questions, encoder)
        found: dict[int, Image] = {}
        for number, example in zip(decoys.split.image.tolist(), decoys.examples, strict=True):
            if example.image is not None:
                found.setdefault(number, example.image)
        images = len(decoys.split.by_image.starts) - 1
        self.images = None
        if features is not None and len(found) == images:
            self.images = table_of([found[number] for number in range(images)], features, progress)
        self.without_image = images - len(found)

    def of(self, variant: str) -> tuple[Task, Any]:
        """The task of a choice set, and the numbers of its examples (those with a decoy)."""
        from pfungst.probes.decoys.mlp import Task

        split = self.decoys.split
        rows, kept = [], []
        for number in range(len(self.decoys)):
            decoys = self.decoys._numbers(variant, number)
            if decoys:
                rows.append([int(split.targets[number]), *decoys])
                kept.append(number)
        width = max(map(len, rows), default=1)
        candidates = np.full((len(rows), width), -1, np.int64)
        for at, row in enumerate(rows):
            candidates[at, : len(row)] = row
        where = np.asarray(kept, np.int64)
        task = Task(
            candidates,
            split.question[where].astype(np.int64),
            split.image[where].astype(np.int64),
            self._answers,
            self._questions,
            self.images,
        )
        return task, where
