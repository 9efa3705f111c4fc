"""Basic question datasets on disk: {image, main question, 21 x (basic question, score)}, as the papers' GBQD and YNBQD.

Parquet by default, on request JSON in the layout of the papers' authors. One row a main question:

| column | type |
|---|---|
| question_id, image_id | string, empty where unknown |
| main_question | string |
| basic_questions | list of string, best first |
| scores | list of double |
| gap | double, certified relative duality gap; null for rankers without certificate |

The authors' files are a list of {question_id, question, image_path, basic: [{question, score}, ...]}; ours add image_id
and gap to each. Their lists may hold a 0 where a question was never solved: it is passed over.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pfungst.core import DataError, PfungstError
from pfungst.core.files import DAMAGE, PARQUET_READING, PARQUET_WRITING, reading, storable, write_atomic
from pfungst.probes.noise.ranking import Ranking

COLUMNS = ("question_id", "image_id", "main_question", "basic_questions", "scores", "gap")


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
            }
            for one, row, scores, gap in zip(main, ranking.indices, ranking.scores, ranking.gaps, strict=True)
        ]
        write_atomic(path, json.dumps(rows, ensure_ascii=False).encode("utf-8", "replace"))
    elif path.suffix == ".parquet":
        about = {"ranker": ranking.ranker, "settings": ranking.settings, **about}
        write_atomic(path, _parquet(main, pool, ranking, about))
    else:
        raise PfungstError(f"{path}: a basic question dataset ends in .parquet or .json.")


def _parquet(main: Sequence[MainQuestion], pool: Sequence[str], ranking: Ranking, about: dict[str, Any]) -> bytes:
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

    @classmethod
    def read(cls, path: Path) -> BasicQuestions:
        rows = _read_json(path) if path.suffix == ".json" else _read_parquet(path)
        return cls({main: (tuple(basic), tuple(scores), gap) for main, basic, scores, gap in rows})


def _read_parquet(path: Path) -> list[tuple[str, list[str], list[float], float | None]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, columns=list(COLUMNS[2:]), **PARQUET_READING)
    except (OSError, pa.ArrowException) as error:
        raise DataError.at(path, "", f"this is not a basic question dataset ({error}).") from error
    if table.column_names != list(COLUMNS[2:]):
        raise DataError.at(path, "", f"a basic question dataset has the columns {', '.join(COLUMNS)}.")
    with reading(path, "Make it again with `pfungst rank`."):
        columns = [table[name].to_pylist() for name in COLUMNS[2:]]
        for row, (main, basic, scores, gap) in enumerate(zip(*columns, strict=True), start=1):
            numbers = [*scores, *([] if gap is None else [gap])]
            if not (isinstance(main, str) and all(isinstance(one, str) for one in basic)):
                raise ValueError(f"row {row}: questions are text")
            if not all(isinstance(one, float) for one in numbers) or len(scores) != len(basic):
                raise ValueError(f"row {row}: one score per basic question")
    return list(zip(*columns, strict=True))


def _read_json(path: Path) -> list[tuple[str, list[str], list[float], float | None]]:
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
            )
            for row in rows
            if row != 0
        ]
    except DAMAGE as error:
        raise DataError.at(path, "", f"this is not a basic question dataset ({error!r}).") from error
