"""The rankers: the certified LASSO of the papers, cosine, and the seven text metrics that the papers compare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pfungst.core import Progress
from pfungst.core.threads import threads
from pfungst.probes.noise.ranking import GAP, LAMBDA

if TYPE_CHECKING:
    from pfungst.lasso import Dictionary, Solution
    from pfungst.text.encoders import Encoder

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Top = tuple[Ints, Floats, Floats]
BLOCK = 32_000_000
"""Scores held at once when all pairs are computed: 256 MB."""
ROWS = 256
"""Main questions of one product."""
BATCH, GPU_BATCH = 64, 2048
"""Main questions solved at once, between two reports of progress."""
KEPT = 2
_VECTORS: dict[tuple[str, tuple[str, ...]], npt.NDArray[np.float32]] = {}
_DICTIONARIES: dict[tuple[str | None, str | None, tuple[str, ...]], Dictionary] = {}
"""Those of the last pools."""


@dataclass(frozen=True)
class _Embedded:
    """Rankers that compare sentence vectors, scaled to length 1."""

    encoder: str | Encoder | None = None

    def prepare(self, pool: Sequence[str], progress: Progress) -> npt.NDArray[np.float32]:
        """The vectors of the pool (pool, dim), kept for the last pools."""
        key = self.fingerprint, tuple(pool)
        if key not in _VECTORS:
            self.adopt(pool, self.unit(pool, progress))
        return _VECTORS[key]

    def adopt(self, pool: Sequence[str], prepared: npt.NDArray[np.float32]) -> None:
        _keep(_VECTORS, (self.fingerprint, tuple(pool)), prepared)

    @property
    def fingerprint(self) -> str:
        return str(self._encoder.fingerprint)

    @property
    def _encoder(self) -> Encoder:
        from pfungst.text import get_encoder

        if self.encoder is None or isinstance(self.encoder, str):
            return _encoder_on(self.encoder, getattr(self, "device", None))
        return get_encoder(self.encoder)

    def unit(self, sentences: Sequence[str], progress: Progress) -> npt.NDArray[np.float32]:
        """Vectors (sentences, dim) of length 1."""
        from pfungst.text import encode

        def told(done: int, total: int) -> None:
            progress("encoding questions", done, total)

        rows = np.asarray(encode(sentences, self._encoder, progress=told), dtype=np.float32)
        # float64 for the length alone: skip-thought vectors have norm sqrt 2, and a sentence without words has 0.
        length = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))[:, None]
        return np.asarray(np.divide(rows, length, out=np.zeros_like(rows), where=length > 0, casting="unsafe"))


@dataclass(frozen=True)
class Cosine(_Embedded):
    """Cosine of the sentence vectors."""

    name: str = "cosine"

    def top(
        self, main: Sequence[str], pool: Sequence[str], k: int, excluded: Sequence[Sequence[int]], progress: Progress
    ) -> Top:
        from pfungst.text.metrics import best

        a, b = self.prepare(pool, progress), self.unit(main, progress)
        indices, scores = np.empty((len(main), k), dtype=np.int64), np.empty((len(main), k))
        step = max(1, min(ROWS, BLOCK // len(pool)))

        def work(start: int) -> None:
            for row, similarity in enumerate(b[start : start + step] @ a.T, start=start):
                similarity[list(excluded[row])] = -np.inf
                indices[row] = best(similarity, k)
                scores[row] = similarity[indices[row]]

        starts = range(0, len(main), step)
        with threads(None) as workers:
            for done in range(0, len(starts), workers.count):
                workers.map(work, starts[done : done + workers.count])
                progress("ranking", min((done + workers.count) * step, len(main)), len(main))
        return indices, scores, np.full(len(main), np.nan)


@dataclass(frozen=True)
class Lasso(_Embedded):
    """The papers' LASSO (Eq. 5 of the journal paper) over unit-norm columns, each ranking with its certificate.

    Scores are the coefficients. Where fewer than k are positive, the rest is filled as `pfungst.lasso.top_k` says.
    """

    lam: float = LAMBDA
    tol: float = GAP
    device: str | None = None
    name: str = "lasso"

    def top(
        self, main: Sequence[str], pool: Sequence[str], k: int, excluded: Sequence[Sequence[int]], progress: Progress
    ) -> Top:
        from pfungst.lasso import top_k

        found = [top_k(solution, k) for solution in self.solutions(main, pool, excluded, progress)]
        indices, scores, gaps = zip(*((one.indices, one.scores, one.gaps) for one in found), strict=True)
        return np.concatenate(indices), np.concatenate(scores), np.concatenate(gaps)

    def solutions(
        self, main: Sequence[str], pool: Sequence[str], excluded: Sequence[Sequence[int]], progress: Progress
    ) -> Iterator[Solution]:
        """The solved problems, batch after batch."""
        from pfungst.lasso import solve

        dictionary = self._dictionary(pool, progress)
        questions = self.unit(main, progress).T
        size = GPU_BATCH if self.device is not None and self.device.startswith("cuda") else BATCH
        progress("ranking", 0, len(main))
        for start in range(0, len(main) or 1, size):  # no question is a batch, too
            batch = slice(start, start + size)
            yield solve(dictionary, questions[:, batch], self.lam, self.tol, exclude=list(excluded[batch]))
            progress("ranking", min(start + size, len(main)), len(main))

    def _dictionary(self, pool: Sequence[str], progress: Progress) -> Dictionary:
        """The pool's vectors and their factors, made once for all batches and shards of one pool."""
        from pfungst.lasso import Dictionary

        key = self.fingerprint, self.device, tuple(pool)
        if key not in _DICTIONARIES:
            _keep(_DICTIONARIES, key, Dictionary(self.prepare(pool, progress).T, device=self.device))
        return _DICTIONARIES[key]


@lru_cache(maxsize=2)
def _encoder_on(name: str | None, device: str | None) -> Encoder:
    """The encoder; on the GPU that solves, if it can move there."""
    from pfungst.text.encoders import get_encoder
    from pfungst.text.encoders.skip_thoughts import SkipThoughts

    encoder = get_encoder(name)
    return encoder.to(device) if device and device.startswith("cuda") and isinstance(encoder, SkipThoughts) else encoder


def _keep(kept: dict[Any, Any], key: Any, made: Any) -> None:
    """Remember it, and forget the oldest of too many."""
    kept.pop(key, None)
    while len(kept) >= KEPT:
        kept.pop(next(iter(kept)))
    kept[key] = made


@dataclass(frozen=True)
class TextMetric:
    """BLEU-1 to 4, ROUGE-L, CIDEr-D or METEOR of the basic question, with the main question as reference."""

    name: str

    def top(
        self, main: Sequence[str], pool: Sequence[str], k: int, excluded: Sequence[Sequence[int]], progress: Progress
    ) -> Top:
        from pfungst.text import top_pairs

        indices, scores = top_pairs(self.name, main, pool, k, excluded=excluded, progress=progress)
        return indices, scores, np.full(len(main), np.nan)
