"""Basic question datasets at full size: distinct questions in shards, resumable, then one file."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pfungst.core import Dataset, Example, FileImage, PfungstError, Progress, ZipImage
from pfungst.core.types import no_progress
from pfungst.probes.noise.bqd import MainQuestion, write_bqd
from pfungst.probes.noise.cache import chosen
from pfungst.probes.noise.pool import Pool
from pfungst.probes.noise.ranking import GAP, LAMBDA, TOP_K, Ranker, Ranking, SharingRanker, get_ranker, rank

if TYPE_CHECKING:
    from pfungst.compute import Shard

SHARD = 2048
"""Distinct main questions per shard: minutes of work at the papers' size, so that a kill loses little."""


@dataclass(frozen=True)
class RankSettings:
    """How a pool is ranked; see `pfungst.probes.noise.rank`."""

    ranker: str = "lasso"
    encoder: str | None = None
    k: int = TOP_K
    lam: float = LAMBDA
    tol: float = GAP
    keep_main_questions: bool = False
    device: str | None = None

    def make(self) -> Ranker:
        """The ranker of these settings."""
        chosen = {name: value for name, value in asdict(self).items() if name not in ("ranker", "k")}
        return get_ranker(self.ranker, **chosen)


@dataclass(frozen=True)
class Source:
    """The questions of a data set or of a text file."""

    name: str
    questions: list[MainQuestion]
    splits: dict[str, list[str]]
    """Of a data set with several splits: which were `taken`, and which `left`."""

    @property
    def texts(self) -> list[str]:
        return [question.text for question in self.questions]

    def about(self) -> dict[str, Any]:
        """For `--json`."""
        splits = {"splits": self.splits} if self.splits else {}
        return {"name": self.name, "questions": len(self.questions), **splits}


def read_source(spec: str, kind: str = "all", limit: int | None = None) -> Source:
    """The questions of a data set, or of a text file with one per line; kind: `all` or `yes/no`."""
    data, examples = chosen(spec, Dataset("", []), kind)
    return Source(spec, [main_question(example) for example in examples[:limit]], dict(data.notes.get("splits", {})))


def main_question(example: Example) -> MainQuestion:
    """An example of a data set as a question to be disturbed."""
    image = example.image
    name = image.path.name if isinstance(image, FileImage) else image.member if isinstance(image, ZipImage) else ""
    return MainQuestion(example.question, example.id, example.image_id, name)


def rank_settings(
    main: Sequence[MainQuestion],
    pool: Sequence[str],
    settings: RankSettings,
    progress: Progress = lambda what, done, total: None,
) -> Ranking:
    ranking = rank([one.text for one in main], pool, progress=progress, **asdict(settings))
    ranking.tell_unlike()
    return ranking


def build(
    out: Path,
    main: Sequence[MainQuestion],
    pool: Sequence[str],
    settings: RankSettings,
    progress: Progress = lambda what, done, total: None,
    also: Sequence[Path] = (),
) -> Path:
    """Rank the pool for all main questions and write a basic question dataset, to the files of `also` as well.

    Work is kept in OUT.parts until the file is complete, so a killed ranking goes on where it was. It is done where
    `pfungst.compute.working` says.
    """
    from pfungst.compute import make_shards, place_of_work, run_shards, split_range

    for file in (out, *also):
        if file.suffix not in (".parquet", ".json"):
            raise PfungstError(f"{file}: a basic question dataset ends in .parquet or .json.")
    distinct = Pool.of(pool)
    texts = list(dict.fromkeys(one.text for one in main))
    ranker = settings.make()
    rank([texts[0]], distinct, ranker, k=settings.k, keep_main_questions=settings.keep_main_questions)  # fail early
    version = _digest([texts, list(pool), asdict(settings), _fingerprint(ranker)])
    parts = out.with_name(out.name + ".parts")
    shards = make_shards(split_range(len(texts), SHARD))
    work = partial(_rank_part, texts=texts, pool=distinct, settings=settings)
    if place_of_work().on == "local":
        files = run_shards(partial(work, progress=progress), shards, parts, version=version)
    else:
        # Prepared once here, and carried once to every machine.
        prepared = ranker.prepare(distinct.questions, progress) if isinstance(ranker, SharingRanker) else None
        work = partial(work, prepared=prepared)
        files = run_shards(work, shards, parts, version=version, progress=progress, what="ranking")
    loaded = [dict(np.load(file, allow_pickle=False)) for file in files]
    rows = {text: number for number, text in enumerate(texts)}
    order = np.asarray([rows[one.text] for one in main])
    indices, scores, gaps = (
        np.concatenate([part[name] for part in loaded])[order] for name in ("indices", "scores", "gaps")
    )
    about = {**asdict(settings), "pool": len(distinct), "encoder": _fingerprint(ranker)}
    ranking = Ranking(indices, scores, gaps, ranker.name)
    ranking.tell_unlike()
    for file in (*also, out):
        write_bqd(file, main, pool, ranking, about)
    shutil.rmtree(parts)
    return out


def _rank_part(
    shard: Shard,
    *,
    texts: Sequence[str],
    pool: Pool,
    settings: RankSettings,
    prepared: npt.NDArray[Any] | None = None,
    progress: Progress = no_progress,
) -> bytes:
    """The ranking of one shard of the main questions. `prepared` is what the ranker made of the pool, where it shares
    that."""
    start, stop, ranker = shard.payload["start"], shard.payload["stop"], settings.make()
    if prepared is not None and isinstance(ranker, SharingRanker):
        ranker.adopt(pool.questions, prepared)
    ranking = rank(
        texts[start:stop], pool, ranker, k=settings.k, keep_main_questions=settings.keep_main_questions,
        progress=lambda what, done, total: progress("ranking", start + done, len(texts)),
    )  # fmt: skip
    buffer = io.BytesIO()
    np.savez(buffer, indices=ranking.indices, scores=ranking.scores, gaps=ranking.gaps)
    progress("ranking", stop, len(texts))
    return buffer.getvalue()


def _fingerprint(ranker: Any) -> str:
    return str(getattr(ranker, "fingerprint", ""))


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode("utf-8", "surrogatepass")).hexdigest()
