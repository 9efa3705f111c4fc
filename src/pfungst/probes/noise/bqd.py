"""Basic question datasets: {image, main question, 21 x (basic question, score)}, as the papers' GBQD and YNBQD.

At full size they are ranked in shards of distinct questions, resumable, then written to one file. On disk they are
Parquet by default, on request JSON in the layout of the papers' authors. One row a main question:

| column | type |
|---|---|
| question_id, image_id | string, empty where unknown |
| main_question | string |
| basic_questions | list of string, best first |
| scores | list of double |
| gap | double, certified relative duality gap; null for rankers without certificate |
| left_out | integer, questions of the pool that ask the same and were left out; null, or no such column: not counted |

The authors' files are a list of {question_id, question, image_path, basic: [{question, score}, ...]}; ours add
image_id, gap and left_out to each. Their lists may hold a 0 where a question was never solved: it is passed over.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pfungst.core import (
    DataError,
    Dataset,
    Example,
    FileImage,
    PfungstError,
    ProbeError,
    Progress,
    UsageError,
    ZipImage,
)
from pfungst.core.files import DAMAGE, PARQUET_READING, PARQUET_WRITING, reading, storable, write_atomic
from pfungst.core.types import no_progress
from pfungst.probes.noise.appending import PARTITIONS
from pfungst.probes.noise.ranking import LAMBDA, Pool, Ranking, RankSettings, SharingRanker, check_k, check_main

if TYPE_CHECKING:
    from pfungst.compute import Shard

COLUMNS = ("question_id", "image_id", "main_question", "basic_questions", "scores", "gap")
"""Of every file; ours have `left_out`, too."""


@dataclass(frozen=True)
class MainQuestion:
    """A question to be disturbed, with the ids it has in its data set."""

    text: str
    id: str = ""
    image_id: str = ""
    image: str = ""
    """Name of the image's file, where it is known."""


def write_bqd(
    path: Path, main: Sequence[MainQuestion], pool: Sequence[str], ranking: Ranking, about: dict[str, Any]
) -> None:
    """Write a ranking; the ending of `path` chooses Parquet (.parquet) or JSON (.json). Parquet keeps `about`, too."""
    left_out = [None] * len(main) if ranking.left_out is None else ranking.left_out.tolist()
    if path.suffix == ".json":
        rows = [
            {
                "question_id": int(one.id) if one.id.isdecimal() and str(int(one.id)) == one.id else one.id,
                "question": one.text,
                "image_path": one.image or one.image_id,
                "basic": [
                    {"question": pool[i], "score": score}
                    for i, score in zip(row.tolist(), scores.tolist(), strict=True)
                ],
                "image_id": one.image_id,
                "gap": None if np.isnan(gap) else float(gap),
                "left_out": left,
            }
            for one, row, scores, gap, left in zip(
                main, ranking.indices, ranking.scores, ranking.gaps, left_out, strict=True
            )
        ]
        write_atomic(path, json.dumps(rows, ensure_ascii=False).encode("utf-8", "replace"))
    elif path.suffix == ".parquet":
        about = {"ranker": ranking.ranker, "settings": ranking.settings, **about}
        write_atomic(path, _parquet(main, pool, ranking, left_out, about))
    else:
        raise PfungstError(f"{path}: a basic question dataset ends in .parquet or .json.")


def _parquet(
    main: Sequence[MainQuestion],
    pool: Sequence[str],
    ranking: Ranking,
    left_out: Sequence[int | None],
    about: dict[str, Any],
) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    k = ranking.indices.shape[1]
    offsets = pa.array(np.arange(len(main) + 1, dtype=np.int32) * k)
    # Five million rows, but few distinct texts: indices into a dictionary instead of strings.
    texts = pa.DictionaryArray.from_arrays(
        pa.array(ranking.indices.ravel().astype(np.int32)), pa.array([storable(q) for q in pool])
    )
    table = pa.table(
        {
            "question_id": pa.array([storable(one.id) for one in main]),
            "image_id": pa.array([storable(one.image_id) for one in main]),
            "main_question": pa.array([storable(one.text) for one in main]),
            "basic_questions": pa.ListArray.from_arrays(offsets, texts.cast(pa.string())),
            "scores": pa.ListArray.from_arrays(offsets, pa.array(ranking.scores.ravel())),
            "gap": pa.array(ranking.gaps, mask=np.isnan(ranking.gaps)),
            "left_out": pa.array(left_out, pa.int64()),
        }
    ).replace_schema_metadata({"pfungst": json.dumps(about)})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **PARQUET_WRITING)
    return buffer.getvalue()


@dataclass(frozen=True)
class BasicQuestions:
    """A basic question dataset in memory, by main question."""

    rows: dict[str, tuple[tuple[str, ...], tuple[float, ...], float | None]]
    """Main question to (basic questions, scores, gap)."""
    left_out: dict[str, int | None]
    """Main question to the questions of the pool that ask the same and were left out."""

    @classmethod
    def read(cls, path: Path) -> BasicQuestions:
        rows = _read_json(path) if path.suffix == ".json" else _read_parquet(path)
        return cls(
            {main: (tuple(basic), tuple(scores), gap) for main, basic, scores, gap, _ in rows},
            {main: left for main, *_, left in rows},
        )


def _read_parquet(path: Path) -> list[tuple[str, list[str], list[float], float | None, int | None]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, columns=[*COLUMNS[2:], "left_out"], **PARQUET_READING)
    except (OSError, pa.ArrowException) as error:
        raise DataError.at(path, "", f"this is not a basic question dataset ({error}).") from error
    if "left_out" not in table.column_names:
        table = table.append_column("left_out", pa.nulls(len(table), pa.int64()))
    if table.column_names != [*COLUMNS[2:], "left_out"]:
        raise DataError.at(path, "", f"a basic question dataset has the columns {', '.join(COLUMNS)}.")
    with reading(path, "Make it again with `pfungst rank`."):
        columns = [table[name].to_pylist() for name in table.column_names]
        for row, (main, basic, scores, gap, left) in enumerate(zip(*columns, strict=True), start=1):
            numbers = [*scores, *([] if gap is None else [gap])]
            if not (isinstance(main, str) and all(isinstance(one, str) for one in basic)):
                raise ValueError(f"row {row}: questions are text")
            if not all(isinstance(one, float) for one in numbers) or len(scores) != len(basic):
                raise ValueError(f"row {row}: one score per basic question")
            if not (left is None or isinstance(left, int)):
                raise ValueError(f"row {row}: questions left out are counted")
    return list(zip(*columns, strict=True))


def _read_json(path: Path) -> list[tuple[str, list[str], list[float], float | None, int | None]]:
    try:
        content = json.loads(path.read_text("utf-8"))
        # Earlier versions wrote an object, with longer names.
        main, basic = ("question", "basic") if isinstance(content, list) else ("main_question", "basic_questions")
        rows = content if isinstance(content, list) else content["questions"]
        return [
            (
                str(row[main]),
                [str(one["question"]) for one in row[basic]],
                [float(one["score"]) for one in row[basic]],
                row.get("gap"),
                row.get("left_out"),
            )
            for row in rows
            if row != 0
        ]
    except DAMAGE as error:
        raise DataError.at(path, "", f"this is not a basic question dataset ({error!r}).") from error


Ints = npt.NDArray[np.int64]
SHARD = 2048
"""Distinct main questions per shard: minutes of work at the papers' size, so that a kill loses little."""


@dataclass(frozen=True)
class Source:
    """The questions of a data set or of a text file."""

    name: str
    questions: list[MainQuestion]
    splits: dict[str, list[str]]
    """Of a data set with several splits: which were `taken`, and which `left`."""
    examples: Sequence[Example] = ()
    """What the questions are of."""

    @property
    def texts(self) -> list[str]:
        return [question.text for question in self.questions]

    def about(self) -> dict[str, Any]:
        """For `--json`."""
        splits = {"splits": self.splits} if self.splits else {}
        return {"name": self.name, "questions": len(self.questions), **splits}


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


def read_source(spec: str, kind: str = "all", limit: int | None = None) -> Source:
    """The questions of a data set, or of a text file with one per line; kind: `all` or `yes/no`."""
    data, examples = chosen(spec, Dataset("", []), kind)
    questions = [main_question(example) for example in examples[:limit]]
    return Source(spec, questions, dict(data.notes.get("splits", {})), examples[:limit])


def main_question(example: Example) -> MainQuestion:
    """An example of a data set as a question to be disturbed."""
    image = example.image
    name = image.path.name if isinstance(image, FileImage) else image.member if isinstance(image, ZipImage) else ""
    return MainQuestion(example.question, example.id, example.image_id, name)


def build(
    out: Path,
    main: Sequence[MainQuestion],
    pool: Sequence[str],
    settings: RankSettings,
    progress: Progress = no_progress,
    also: Sequence[Path] = (),
    device: str | None = None,
    known: Iterable[Example] = (),
) -> Path:
    """Rank the pool for all main questions and write a basic question dataset, to the files of `also` as well.

    known: examples of main questions and pool, whose groups and programs say which questions ask the same
    (`RankSettings.same`).

    Work is kept in OUT.parts until the file is complete, so a killed ranking goes on where it was. It is done where
    `pfungst.compute.working` says.
    """
    from pfungst.compute import make_shards, place_of_work, run_shards, split_range

    for file in (out, *also):
        if file.suffix not in (".parquet", ".json"):
            raise PfungstError(f"{file}: a basic question dataset ends in .parquet or .json.")
    distinct = Pool.of(pool)
    texts = list(dict.fromkeys(one.text for one in main))
    check_main(texts)
    excluded = distinct.excluded(texts, settings.same, known, settings.keep_main_questions)
    check_k(settings.k, len(distinct), max(map(len, excluded)))
    ranker = settings.make(device)
    ranker.top(texts[:1], distinct.questions, settings.k, excluded[:1], no_progress)  # fail early
    version = _digest([texts, list(pool), asdict(settings), device, _fingerprint(ranker), excluded])
    parts = out.with_name(out.name + ".parts")
    shards = make_shards(split_range(len(texts), SHARD))
    work = partial(_rank_part, texts=texts, pool=distinct, excluded=excluded, settings=settings, device=device)
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
    about = {**asdict(settings), "device": device, "pool": len(distinct), "encoder": _fingerprint(ranker)}
    left_out = distinct.left_out(texts, excluded)[order]
    ranking = Ranking(indices, scores, gaps, ranker.name, left_out=left_out)
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
    excluded: Sequence[Sequence[int]],
    settings: RankSettings,
    device: str | None,
    prepared: npt.NDArray[Any] | None = None,
    progress: Progress = no_progress,
) -> bytes:
    """The ranking of one shard of the main questions. `prepared` is what the ranker made of the pool, where it shares
    that."""
    start, stop, ranker = shard.payload["start"], shard.payload["stop"], settings.make(device)
    if prepared is not None and isinstance(ranker, SharingRanker):
        ranker.adopt(pool.questions, prepared)
    indices, scores, gaps = ranker.top(
        texts[start:stop], pool.questions, settings.k, excluded[start:stop],
        lambda what, done, total: progress("ranking", start + done, len(texts)),
    )  # fmt: skip
    buffer = io.BytesIO()
    np.savez(buffer, indices=pool.origin[indices], scores=scores, gaps=gaps)
    progress("ranking", stop, len(texts))
    return buffer.getvalue()


def _fingerprint(ranker: Any) -> str:
    return str(getattr(ranker, "fingerprint", ""))


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode("utf-8", "surrogatepass")).hexdigest()


def lambda_study(
    main: Sequence[MainQuestion],
    pool: Sequence[str],
    settings: RankSettings,
    lambdas: Sequence[float],
    progress: Progress,
    device: str | None = None,
    known: Iterable[Example] = (),
) -> list[dict[str, float]]:
    """One row per lambda.

    nonzeros: mean number of non-zero coefficients; overlap: how many of the top k are those of the papers' lambda;
    kept: how many are those of the next smaller lambda tried; monotone: share of neighbouring partitions in which the
    mean cosine similarity to the main question falls; gap: the largest certified gap.
    """
    from pfungst.lasso import top_k
    from pfungst.probes.noise.rankers import Lasso

    distinct = Pool.of(pool)
    texts = list(dict.fromkeys(one.text for one in main))
    excluded = distinct.excluded(texts, settings.same, known)
    base = Lasso(settings.encoder or None, LAMBDA, settings.tol, device)
    vectors, questions = base.unit(distinct.questions, progress), base.unit(texts, progress)
    tops: dict[float, Ints] = {}
    found: dict[float, dict[str, float]] = {}
    for lam in sorted({*lambdas, LAMBDA}):
        solutions = list(replace(base, lam=lam).solutions(texts, distinct.questions, excluded, progress))
        tops[lam] = np.concatenate([top_k(solution, settings.k).indices for solution in solutions])
        found[lam] = {
            "nonzeros": float(np.concatenate([np.diff(solution.starts) for solution in solutions]).mean()),
            "gap": float(np.concatenate([solution.gaps for solution in solutions]).max()),
        }
    tried = sorted(set(lambdas))
    return [
        {
            "lambda": lam,
            "nonzeros": found[lam]["nonzeros"],
            "overlap": _overlap(tops[lam], tops[LAMBDA]),
            "kept": float("nan") if smaller is None else _overlap(tops[lam], tops[smaller]),
            "monotone": _monotone(vectors, questions, tops[lam]),
            "gap": found[lam]["gap"],
        }
        for smaller, lam in zip([None, *tried], tried, strict=False)
    ]


def _overlap(a: Ints, b: Ints) -> float:
    """Mean number of questions that two rankings have in common."""
    return float(np.mean([len(set(x.tolist()) & set(y.tolist())) for x, y in zip(a, b, strict=True)]))


def _monotone(vectors: np.ndarray, questions: np.ndarray, top: Ints) -> float:
    """Share of neighbouring partitions over which the mean cosine similarity to the main question falls."""
    size = top.shape[1] // PARTITIONS
    if size == 0:
        return float("nan")
    cosines = np.einsum("qkd,qd->qk", vectors[top[:, : size * PARTITIONS]], questions)
    levels = cosines.reshape(len(top), PARTITIONS, size).mean((0, 2))
    return float((np.diff(levels) < 0).mean())
