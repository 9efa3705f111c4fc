"""Rankings for a probe, kept on disk: a resumed exam must not rank again."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pfungst.core import Dataset, Example, PfungstError, ProbeError
from pfungst.core.files import cache_dir, write_atomic
from pfungst.probes.noise.bqd import BasicQuestions
from pfungst.probes.noise.ranking import Ranking, rank

if TYPE_CHECKING:
    from pfungst.probes.noise.probe import Noise
    from pfungst.probes.noise.vqabq_probe import Vqabq


@dataclass(frozen=True)
class Row:
    """The ranked basic questions of one main question."""

    questions: tuple[str, ...]
    scores: list[float]
    gap: float | None


def pool_questions(spec: str, data: Dataset, kind: str) -> list[str]:
    """The questions of a pool: of a data set, of a text file with one a line, or of the examined data set itself."""
    if kind not in ("all", "yes/no"):
        raise ProbeError(f"The pool type is `all` or `yes/no`, not {kind!r}.")
    source: Any = data
    if spec:
        path = Path(spec)
        if path.suffixes[:1] == [".txt"] and path.is_file():
            if kind != "all":
                raise ProbeError(f"{spec} is a plain list of questions: it does not say which are yes/no.")
            return read_lines(path)
        from pfungst.data import load

        source = load(spec)
    questions = [e.question for e in source if kind == "all" or e.answer_type == "yes/no"]
    if not questions:
        raise ProbeError(f"The pool {spec or data.name} has no {kind} questions.")
    return questions


def read_lines(path: Path) -> list[str]:
    """A text file, plain or gzipped, one question a line."""
    import gzip

    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise PfungstError(f"{path} cannot be read as lines of text ({error}).") from error
    return [line for line in text.splitlines() if line.strip()]


def originals(data: Dataset, rephrasings: bool) -> list[Example]:
    """The examples to disturb: of questions in several wordings the original one, or all of them."""
    return [example for example in data if rephrasings or example.group in ("", example.id)]


def rank_cached(probe: Noise | Vqabq, ranker: str, examples: Sequence[Example], data: Dataset) -> list[Row]:
    """One row an example, from a dataset that was given, else from the cache where it holds exactly this ranking."""
    if probe.ranked:
        return _from_dataset(Path(probe.ranked), examples, probe.k)
    main = [example.question for example in examples]
    pool = pool_questions(probe.pool, data, probe.pool_type)
    encoder = _encoder_name(ranker, probe.encoder)
    asked = [main, pool, ranker, encoder, probe.k, probe.lam, probe.tol, probe.keep_main_questions]
    digest = hashlib.sha256(json.dumps(asked).encode()).hexdigest()
    path = cache_dir("rankings") / f"{digest}.npz"
    found = _read(path, len(main), probe.k, len(pool))
    if found is None:
        found = rank(
            main, pool, ranker, probe.encoder or None, probe.k, probe.lam, probe.tol,
            keep_main_questions=probe.keep_main_questions,
        )  # fmt: skip
        buffer = io.BytesIO()
        np.savez_compressed(buffer, indices=found.indices, scores=found.scores, gaps=found.gaps)
        write_atomic(path, buffer.getvalue())
    return _rows(found, pool)


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

    return str((get_encoder(encoder) if encoder else get_encoder()).fingerprint)


def _read(path: Path, main: int, k: int, pool: int) -> Ranking | None:
    try:
        with np.load(path, allow_pickle=False) as stored:
            found = Ranking(stored["indices"], stored["scores"], stored["gaps"])
    except (OSError, ValueError, KeyError, EOFError):
        return None
    whole = found.indices.shape == (main, k) == found.scores.shape and bool((found.indices < pool).all())
    return found if whole else None


def _rows(ranking: Ranking, pool: Sequence[str]) -> list[Row]:
    return [
        Row(tuple(pool[i] for i in indices), scores.tolist(), None if np.isnan(gap) else float(gap))
        for indices, scores, gap in zip(ranking.indices, ranking.scores, ranking.gaps, strict=True)
    ]
