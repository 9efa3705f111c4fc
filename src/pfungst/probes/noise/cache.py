"""Rankings for the probes, kept on disk: a resumed exam does not rank again."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pfungst.core import Dataset, Example, PfungstError, ProbeError, Progress, UsageError
from pfungst.core.files import DAMAGE, cache_dir, write_atomic
from pfungst.probes.noise.bqd import BasicQuestions
from pfungst.probes.noise.pool import Pool
from pfungst.probes.noise.ranking import RANKERS, Ranking, rank

if TYPE_CHECKING:
    from pfungst.probes.noise.probe import Noise
    from pfungst.probes.noise.vqabq_probe import Vqabq

    RankingProbe: TypeAlias = Noise | Vqabq


@dataclass(frozen=True)
class Row:
    """The ranked basic questions of one main question."""

    questions: tuple[str, ...]
    scores: list[float]
    gap: float | None


def pool_questions(spec: str, data: Dataset, kind: str, limit: int = 0) -> list[str]:
    """The questions of a pool: of a data set, of a text file with one per line, or of the whole examined data set.

    kind: `all` or `yes/no`; limit: only the first so many, 0 for all.
    """
    if limit < 0:
        raise UsageError(f"pool_limit is {limit}, but a pool cannot have fewer than 0 questions; 0 means all of them.")
    return [example.question for example in chosen(spec, data, kind)[1]][: limit or None]


def chosen(spec: str, data: Dataset, kind: str) -> tuple[Dataset, list[Example]]:
    """The data set or text file that `spec` names, else the whole examined data set; and its examples of this kind."""
    if kind not in ("all", "yes/no"):
        raise UsageError(f"The pool type is `all` or `yes/no`, not {kind!r}.")
    if is_text(spec):
        if kind != "all":
            raise ProbeError(
                f"{spec} is a plain list of questions: it does not say which of them are yes/no questions."
            )
        source = Dataset(spec, [Example(str(number), text) for number, text in enumerate(read_lines(Path(spec)))])
    elif spec:
        from pfungst.data import load

        source = load(spec)
    else:
        source = data.whole
    examples = [example for example in source if kind == "all" or example.answer_type == "yes/no"]
    if not examples:
        raise ProbeError(f"{spec or data.name} has no {'' if kind == 'all' else kind + ' '}questions.")
    return source, examples


def is_text(spec: str) -> bool:
    """Whether a pool or a list of main questions is a text file, plain or gzipped, and no data set."""
    return spec.endswith((".txt", ".txt.gz")) and Path(spec).is_file()


def read_lines(path: Path) -> list[str]:
    """A text file, plain or gzipped, one question per line."""
    from pfungst.data import File

    try:
        with File(path).open() as stream:
            text = stream.read().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise PfungstError(f"{path} cannot be read as lines of text ({error}).") from error
    return [line for line in text.splitlines() if line.strip()]


def rankers_of(probe: RankingProbe) -> list[str]:
    """The names in `ranker`, joined by +."""
    return list(dict.fromkeys(filter(None, probe.ranker.split("+"))))


def check_rankable(probe: RankingProbe, data: Dataset) -> None:
    """Say what cannot be done on this data before anything is ranked: cheap, no pool of another data set is read."""
    if probe.k < 1:
        raise UsageError(f"k is {probe.k}, but at least one basic question is needed.")
    if probe.ranked:
        if not Path(probe.ranked).is_file():
            raise ProbeError(f"There is no file {probe.ranked}: make it with `pfungst rank --out {probe.ranked}`.")
        return
    if not rankers_of(probe):
        raise UsageError(f"No ranker was named. There are: {', '.join(RANKERS.names())}.")
    for ranker in rankers_of(probe):
        RANKERS.get(ranker)
    if probe.pool and not is_text(probe.pool):
        return
    pool = Pool.of(pool_questions(probe.pool, data, probe.pool_type, probe.pool_limit))
    main = [example.question for example in data.originals]
    own = any(place is not None for place in pool.excluded(main, probe.keep_main_questions))
    if len(pool) - own < probe.k:
        raise ProbeError(
            f"The pool {probe.pool or data.name} has {len(pool) - own} distinct "
            f"questions{' in addition to the main question' if own else ''}, fewer than the {probe.k} to append. Name "
            "a larger pool (pool=DATA), or append fewer (k=)."
        )


def rank_for(
    probe: RankingProbe, data: Dataset, progress: Progress = lambda what, done, total: None
) -> list[list[Row]]:
    """For each ranker one row per original question.

    The last ranking is remembered, so that `prepare` and `trials` of a probe rank once.
    """
    global _latest
    if _latest is not None and _latest[0] == probe and _latest[1] is data:
        return _latest[2]
    examples = data.originals
    if probe.ranked:
        rows = [_from_dataset(Path(probe.ranked), examples, probe.k)]
    else:
        pool = pool_questions(probe.pool, data, probe.pool_type, probe.pool_limit)
        rows = [_rank(probe, ranker, examples, pool, progress) for ranker in rankers_of(probe)]
    _latest = (probe, data, rows)
    return rows


_latest: tuple[RankingProbe, Dataset, list[list[Row]]] | None = None


def _rank(
    probe: RankingProbe, ranker: str, examples: Sequence[Example], pool: Sequence[str], progress: Progress
) -> list[Row]:
    """From the cache on disk where it holds exactly this ranking."""
    main = [example.question for example in examples]
    encoder = _encoder_name(ranker, probe.encoder)
    asked = [main, pool, ranker, encoder, probe.k, probe.lam, probe.tol, probe.keep_main_questions]
    digest = hashlib.sha256(json.dumps(asked).encode()).hexdigest()
    path = cache_dir("rankings") / f"{digest}.npz"
    ours = ranker in RANKERS.builtin  # nobody knows whether a third party's ranker is still the one that ranked before
    ranking = _read(path, len(main), probe.k, len(pool)) if ours else None
    if ranking is None:
        ranking = rank(
            main, pool, ranker, probe.encoder or None, probe.k, probe.lam, probe.tol,
            keep_main_questions=probe.keep_main_questions, progress=progress,
        )  # fmt: skip
        if ours:
            buffer = io.BytesIO()
            np.savez_compressed(buffer, indices=ranking.indices, scores=ranking.scores, gaps=ranking.gaps)
            write_atomic(path, buffer.getvalue())
    ranking.tell_unlike()
    return _rows(ranking, pool)


def _from_dataset(path: Path, examples: Sequence[Example], k: int) -> list[Row]:
    stored = BasicQuestions.read(path).rows
    rows = []
    for example in examples:
        if example.question not in stored:
            raise ProbeError(
                f"{path} has no basic questions for {example.question!r:.80} ({example.id}): rank it first."
            )
        basic, scores, gap = stored[example.question]
        if len(basic) < k:
            raise ProbeError(f"{path} has {len(basic)} basic questions for {example.question!r:.80}, fewer than {k}.")
        rows.append(Row(basic[:k], list(scores[:k]), gap))
    return rows


def _encoder_name(ranker: str, encoder: str) -> str:
    if ranker not in ("lasso", "cosine"):
        return ""
    from pfungst.text.encoders import get_encoder

    return str(get_encoder(encoder).fingerprint)


def _read(path: Path, main: int, k: int, pool: int) -> Ranking | None:
    try:
        with np.load(path, allow_pickle=False) as stored:
            kept = Ranking(stored["indices"], stored["scores"], stored["gaps"])
    except (*DAMAGE, zipfile.BadZipFile, zlib.error):
        return None
    whole = kept.indices.shape == (main, k) == kept.scores.shape and kept.gaps.shape == (main,)
    return kept if whole and bool(((kept.indices >= 0) & (kept.indices < pool)).all()) else None


def _rows(ranking: Ranking, pool: Sequence[str]) -> list[Row]:
    return [
        Row(tuple(pool[i] for i in indices), scores.tolist(), None if np.isnan(gap) else float(gap))
        for indices, scores, gap in zip(ranking.indices, ranking.scores, ranking.gaps, strict=True)
    ]
