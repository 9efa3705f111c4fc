"""A file of trials in batches, with what a reader of answers wants beside each: what the clean question got."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pfungst.core import PfungstError
from pfungst.core.parquet import READING
from pfungst.scores import same_answer
from pfungst.web.runs import RunFolder

LOST, WON, OTHER, KEPT_RIGHT, KEPT_WRONG = (
    "right to wrong", "wrong to right", "wrong to other wrong", "still right", "still wrong"
)  # fmt: skip
FLIPS = (LOST, WON, OTHER, KEPT_RIGHT, KEPT_WRONG)
"""What became of the clean answer under a disturbance, as `core.stats.count_flips` counts."""

SCHEMA = {
    "run": "VARCHAR", "probe": "VARCHAR", "number": "BIGINT", "trial": "INTEGER", "place": "INTEGER",
    "example_id": "VARCHAR", "image_id": "VARCHAR", "variant": "VARCHAR", "question": "VARCHAR", "choices": "VARCHAR[]",
    "image": "VARCHAR", "key": "VARCHAR", "answer": "VARCHAR", "confidence": "DOUBLE", "score": "DOUBLE",
    "target": "VARCHAR", "answer_type": "VARCHAR", "question_type": "VARCHAR", "reply": "VARCHAR", "unread": "BOOLEAN",
    "clean_answer": "VARCHAR", "clean_score": "DOUBLE", "flip": "VARCHAR", "other_image": "BOOLEAN",
    "asked": "VARCHAR", "said": "VARCHAR", "named": "VARCHAR",
}  # fmt: skip
"""Of the table of a run. `number` counts its rows, `trial` the trials of a probe, `place` the variants of a trial;
`other_image` says that another image was shown than for the clean question. SEARCHED are what is searched, in
small letters. Scores that are not known are null."""
SEARCHED = ("asked", "said", "named")

_NEEDED = ("example_id", "variant", "question", "answer", "score")
_TEXTS = ("image_id", "image", "key", "answer_type", "question_type")
_ROWS = 50_000


def batches(run: RunFolder, file: Path, first: int) -> Iterator[Any]:
    """Arrow tables with the columns of SCHEMA; raises PfungstError where the file is not one of trials.

    first: number of the first row.
    """
    probe = file.stem
    try:
        with pq.ParquetFile(file, **READING) as source:
            names = source.schema_arrow.names
            missing = [name for name in _NEEDED if name not in names]
            if missing:
                raise PfungstError(f"{run.name}: the trials of {probe} lack the column {missing[0]}.")
            more = ("target", "reply", "choices", "confidence", "unread")
            wanted = [name for name in (*_NEEDED, *_TEXTS, *more) if name in names]
            walk = _Walk(run.id, probe, first)
            for batch in source.iter_batches(batch_size=_ROWS, columns=wanted):
                if batch.num_rows:
                    yield walk.widened({name: batch.column(name) for name in wanted}, batch.num_rows)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise PfungstError(f"{run.name}: the trials of {probe} cannot be read ({type(error).__name__}).") from error


class _Walk:
    """Goes along the rows of a file and remembers the clean variant of the trial it is in."""

    def __init__(self, run: str, probe: str, number: int) -> None:
        self._run, self._probe, self._number = run, probe, number
        self._trial, self._begun = 0, 0
        """Trials that have ended, and rows of the one that has not."""
        self._first: str | None = None
        self._id: str | None = None
        self._clean: tuple[str, float, str] = ("", float("nan"), "")
        self._alike: dict[tuple[str, str], bool] = {}

    def widened(self, columns: dict[str, Any], size: int) -> Any:
        def text(name: str) -> Any:
            known = columns.get(name)
            return pa.nulls(size, pa.string()) if known is None else known.cast(pa.string())

        def filled(name: str) -> Any:
            return pc.fill_null(text(name), "")

        ids, variants, answers = filled("example_id"), filled("variant"), filled("answer")
        replies = pc.coalesce(text("reply"), answers)
        scores = np.asarray(pc.fill_null(columns["score"].cast(pa.float64()), float("nan")))
        clean, trial, place = self._trials(ids, variants)
        said = pc.take(pa.concat_arrays([pa.array([self._clean[0]], pa.string()), answers]), pa.array(clean))
        before = np.concatenate([[self._clean[1]], scores])[clean]
        images = filled("image")
        shown = pc.take(pa.concat_arrays([pa.array([self._clean[2]], pa.string()), images]), pa.array(clean))
        if clean[-1]:
            at = int(clean[-1]) - 1
            self._clean = (answers[at].as_py(), float(before[-1]), images[at].as_py())
        flips = self._flips(said, before, answers, scores, place)
        words = (replies, answers, filled("target"))
        whole: dict[str, Any] = {
            **{name: filled(name) for name in _TEXTS},
            "run": pa.repeat(self._run, size),
            "probe": pa.repeat(self._probe, size),
            "number": pa.array(np.arange(self._number, self._number + size)),
            "trial": pa.array(trial),
            "place": pa.array(place),
            "example_id": ids,
            "variant": variants,
            "question": filled("question"),
            "choices": columns.get("choices", pa.nulls(size, pa.list_(pa.string()))),
            "answer": answers,
            "confidence": columns.get("confidence", pa.nulls(size, pa.float64())),
            "score": pa.array(scores, mask=np.isnan(scores)),
            "target": text("target"),
            "reply": replies,
            "unread": pc.fill_null(columns.get("unread", pa.nulls(size, pa.bool_())), False),
            "clean_answer": said,
            "clean_score": pa.array(before, mask=np.isnan(before)),
            "flip": pa.array(flips, pa.string()),
            "other_image": pc.not_equal(shown, images),
            "asked": pc.utf8_lower(filled("question")),
            "said": pc.utf8_lower(pc.binary_join_element_wise(*words, " ")),
            "named": pc.utf8_lower(ids),
        }
        self._number += size
        kinds = {name: _arrow(kind) for name, kind in SCHEMA.items()}
        return pa.table({name: whole[name].cast(kind) for name, kind in kinds.items()})

    def _trials(self, ids: Any, variants: Any) -> tuple[Any, Any, Any]:
        """For each row where its clean row stands (0: in the batch before, else its number from 1), the number of its
        trial, and its place in it."""
        self._first = variants[0].as_py() if self._first is None else self._first
        earlier = pa.concat_arrays([pa.array([self._id], pa.string()), ids.slice(0, len(ids) - 1)])
        # A trial begins with its clean variant, and one without it with another example.
        begins = np.asarray(pc.or_(pc.equal(variants, self._first), pc.fill_null(pc.not_equal(ids, earlier), True)))
        self._id = ids[-1].as_py()
        rows = np.arange(1, len(ids) + 1)
        clean = np.maximum.accumulate(np.where(begins, rows, 0))
        trial = self._trial + np.cumsum(begins) - 1
        place = np.where(clean == 0, self._begun + rows - 1, rows - clean)
        self._trial, self._begun = int(trial[-1]) + 1, int(place[-1]) + 1
        return clean, trial, place

    def _flips(self, said: Any, before: Any, answers: Any, scores: Any, place: Any) -> Any:
        known = (place > 0) & ~np.isnan(before) & ~np.isnan(scores)
        right, now = before > 0, scores > 0
        flips = np.full(len(scores), "", dtype=object)
        for name, rows in ((LOST, right & ~now), (WON, ~right & now), (KEPT_RIGHT, right & now)):
            flips[known & rows] = name
        for row in np.flatnonzero(known & ~right & ~now).tolist():
            pair = (said[row].as_py(), answers[row].as_py())
            alike = self._alike.get(pair)
            if alike is None:
                if len(self._alike) > 100_000:
                    self._alike.clear()
                alike = self._alike[pair] = same_answer(*pair)
            flips[row] = KEPT_WRONG if alike else OTHER
        return flips


def _arrow(kind: str) -> Any:
    return {
        "VARCHAR": pa.string(), "BIGINT": pa.int64(), "INTEGER": pa.int32(), "DOUBLE": pa.float64(),
        "BOOLEAN": pa.bool_(), "VARCHAR[]": pa.list_(pa.string()),
    }[kind]  # fmt: skip
