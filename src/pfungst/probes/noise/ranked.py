"""What the probes `noise` and `vqabq` share: rankings, kept on disk so that a resumed exam does not rank again."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pfungst.core import Dataset, Example, Probe, ProbeError, Progress, UsageError
from pfungst.core.files import DAMAGE, cache_dir, write_atomic
from pfungst.core.types import no_progress
from pfungst.probes.noise.bqd import BasicQuestions, chosen, is_text, pool_questions
from pfungst.probes.noise.ranking import RANKERS, Pool, Ranking, RankSettings
from pfungst.probes.noise.same import meanings

ARRAYS = ("indices", "scores", "gaps", "left_out")
"""Of a ranking that is kept on disk."""


@dataclass(frozen=True)
class Row:
    """The ranked basic questions of one main question."""

    questions: tuple[str, ...]
    scores: list[float]
    gap: float | None
    left_out: int | None
    """Questions of the pool that were left out because they ask the same; None where nobody counted."""


@dataclass(frozen=True)
class RankingProbe(RankSettings, Probe):
    """A probe that ranks the questions of a pool, or reads them from a file where they are ranked."""

    pool: str = ""
    """Data set (or text file, one question per line) whose questions are ranked; empty: the whole examined data set."""
    pool_type: str = "all"
    """`all` (GBQD) or `yes/no` (YNBQD)."""
    pool_limit: int = 0
    """Only the first N questions of the pool; 0: all. A limit on the exam does not make the pool smaller."""
    ranked: str = ""
    """A basic question dataset written by `pfungst rank`, to use instead of ranking."""

    @property
    def rankers(self) -> list[str]:
        """The names in `ranker`, joined by +."""
        return list(dict.fromkeys(filter(None, self.ranker.split("+"))))

    def check_data(self, data: Dataset) -> None:
        """Say what cannot be done on this data before anything is ranked; no pool of another data set is read."""
        if self.k < 1:
            raise UsageError(f"k is {self.k}, but at least one basic question is needed.")
        if self.ranked:
            if not Path(self.ranked).is_file():
                raise ProbeError(f"There is no file {self.ranked}: make it with `pfungst rank --out {self.ranked}`.")
            return
        if not self.rankers:
            raise UsageError(f"No ranker was named. There are: {', '.join(RANKERS.names())}.")
        for ranker in self.rankers:
            RANKERS.get(ranker)
        if self.pool and not is_text(self.pool):
            return
        pool = Pool.of(pool_questions(self.pool, data, self.pool_type, self.pool_limit))
        main = [example.question for example in data.originals]
        own = any(pool.excluded(main, keep_main_questions=self.keep_main_questions))
        if len(pool) - own < self.k:
            raise ProbeError(
                f"The pool {self.pool or data.name} has {len(pool) - own} distinct "
                f"questions{' in addition to the main question' if own else ''}, fewer than the {self.k} to append. "
                "Name a larger pool (pool=DATA), or append fewer (k=)."
            )

    def prepare(self, data: Dataset, seed: int, progress: Progress) -> None:
        """Rank the pool."""
        self.rankings(data, progress)

    def rankings(self, data: Dataset, progress: Progress = no_progress) -> list[list[Row]]:
        """For each ranker one row per original question.

        The last ranking is remembered, so that `prepare` and `trials` of a probe rank once.
        """
        global _latest
        if _latest is not None and _latest[0] == self and _latest[1] is data:
            return _latest[2]
        examples = data.originals
        if self.ranked:
            rows = [_from_dataset(Path(self.ranked), examples, self.k)]
        else:
            pool = pool_questions(self.pool, data, self.pool_type, self.pool_limit)
            known = self.known(data)
            rows = [self._rank(ranker, examples, pool, known, progress) for ranker in self.rankers]
        _latest = (self, data, rows)
        return rows

    def known(self, data: Dataset) -> list[Example]:
        """The examples of the pool and of the data, whose groups and programs say which questions ask the same."""
        if not self.same:
            return []
        others = chosen(self.pool, data, self.pool_type)[1] if self.pool else []
        return [*others, *data.whole]

    def _rank(
        self,
        ranker: str,
        examples: Sequence[Example],
        pool: Sequence[str],
        known: Sequence[Example],
        progress: Progress,
    ) -> list[Row]:
        """From the cache on disk where it holds exactly this ranking."""
        main = [example.question for example in examples]
        encoder = _encoder_name(ranker, self.encoder)
        key = [main, pool, ranker, encoder, self.k, self.lam, self.tol, self.keep_main_questions, self.same]
        key.append(sorted((form, sorted(keys)) for form, keys in meanings(known).items()))
        path = cache_dir("rankings") / f"{hashlib.sha256(json.dumps(key).encode()).hexdigest()}.npz"
        ours = ranker in RANKERS.builtin  # nobody knows whether a third party's ranker is still the one that ranked
        ranking = _read(path, len(main), self.k, len(pool)) if ours else None
        if ranking is not None:
            ranking.tell_unlike()
        else:
            ranking = replace(self, ranker=ranker).rank(main, pool, progress, known=known)
            if ours:
                buffer = io.BytesIO()
                arrays = {name: getattr(ranking, name) for name in ARRAYS}
                np.savez_compressed(buffer, **arrays)
                write_atomic(path, buffer.getvalue())
        return _rows(ranking, pool)


_latest: tuple[RankingProbe, Dataset, list[list[Row]]] | None = None


def _from_dataset(path: Path, examples: Sequence[Example], k: int) -> list[Row]:
    read = BasicQuestions.read(path)
    stored, rows = read.rows, []
    for example in examples:
        if example.question not in stored:
            raise ProbeError(
                f"{path} has no basic questions for {example.question!r:.80} ({example.id}): rank it first."
            )
        basic, scores, gap = stored[example.question]
        if len(basic) < k:
            raise ProbeError(f"{path} has {len(basic)} basic questions for {example.question!r:.80}, fewer than {k}.")
        rows.append(Row(basic[:k], list(scores[:k]), gap, read.left_out[example.question]))
    return rows


def _encoder_name(ranker: str, encoder: str) -> str:
    if ranker not in ("lasso", "cosine"):
        return ""
    from pfungst.text.encoders import get_encoder

    return str(get_encoder(encoder).fingerprint)


def _read(path: Path, main: int, k: int, pool: int) -> Ranking | None:
    try:
        with np.load(path, allow_pickle=False) as stored:
            kept = Ranking(**{name: stored[name] for name in ARRAYS})
    except (*DAMAGE, zipfile.BadZipFile, zlib.error):
        return None
    whole = kept.indices.shape == (main, k) == kept.scores.shape and kept.gaps.shape == (main,)
    return kept if whole and bool(((kept.indices >= 0) & (kept.indices < pool)).all()) else None


def _rows(ranking: Ranking, pool: Sequence[str]) -> list[Row]:
    assert ranking.left_out is not None
    left_out = ranking.left_out
    return [
        Row(tuple(pool[i] for i in indices), scores.tolist(), None if np.isnan(gap) else float(gap), left)
        for indices, scores, gap, left in zip(
            ranking.indices, ranking.scores, ranking.gaps, left_out.tolist(), strict=True
        )
    ]
