"""The trials of a run as Parquet, a row a variant: written as they are answered, read by columns (`core.run`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pfungst.core.files import PARQUET_READING, PARQUET_WRITING, jsonable, replacing, storable
from pfungst.core.flips import FLIPS, alike, flip_codes
from pfungst.core.types import Answer, AnsweredTrial, Example, Reading

if TYPE_CHECKING:
    import pyarrow as pa

Row = tuple[str, ...]
"""The keys of a trial's queries in the answer store."""
ROW_GROUP = 1 << 15
"""Least rows of a row group, so that a large file can be read piece by piece. A trial lies in one group as a whole."""
CLEAN = 1 << 14
"""Clean answers that are kept, of the first trials: what is said about how replies are spelt is said of these."""


READ = {"words": "words", "words_cut": "cut", "words_unknown": "unknown"}
"""Columns of what the player read, and the fields of `Reading` that they hold. Earlier versions did not write them."""


class Recorder:
    """Takes the answered trials of a probe in any portions: counts and writes them, and holds them where they are few.

    The file is the same whatever the portions: one row per variant, with the answer, its score and what became of the
    clean answer, the way back from a number to what was asked.
    """

    def __init__(self, file: Any, role: str, hold: int) -> None:
        self._file = file
        self._role = role
        self._waiting: list[pa.Table] = []
        self._rows = 0
        self._hold = hold
        self.held: list[AnsweredTrial] | None = []
        """All trials; None where their variants are more than `hold`."""
        self.count: int = 0
        """Trials that were answered in full."""
        self.variants: int = 0
        self.unread: int = 0
        self.clean: list[tuple[Example, Answer]] = []
        """Examples and clean answers, of the first trials."""

    def add(self, trials: Sequence[AnsweredTrial], keys: Sequence[Row]) -> None:
        if not trials:
            return
        self._waiting.append(_table(_columns(trials, keys, self.count, self._role)))
        self._rows += len(self._waiting[-1])
        if self._rows >= ROW_GROUP:
            self.write()
        self.count += len(trials)
        self.variants += sum(map(len, keys))
        self.unread += sum(answer.unread for trial in trials for answer in trial.answers)
        self.clean += [(trial.example, trial.answers[0]) for trial in trials[: CLEAN - len(self.clean)]]
        if self.held is not None:
            self.held = [*self.held, *trials] if self.variants <= self._hold else None

    def write(self) -> None:
        """What waits, as a row group."""
        import pyarrow as pa

        if self._rows:
            self._file.write_table(pa.concat_tables(self._waiting).combine_chunks())
        self._waiting, self._rows = [], 0
        pa.default_memory_pool().release_unused()  # it would keep what a row group takes, for the next one


@contextmanager
def recording(path: Path, role: str, hold: int = 0) -> Iterator[Recorder]:
    """A trials file that is there as a whole in the end, or not at all. role: of the probe; hold: see `Recorder`."""
    import pyarrow.parquet as pq

    with replacing(path) as temporary, pq.ParquetWriter(temporary, trials_schema(), **PARQUET_WRITING) as file:
        recorder = Recorder(file, role, hold)
        yield recorder
        recorder.write()


def _columns(trials: Sequence[AnsweredTrial], keys: Sequence[Row], first: int, role: str) -> dict[str, Any]:
    import numpy as np

    each = [(place, trial, v) for trial in trials for place, v in enumerate(trial.trial.variants)]
    queries = [variant.query for _, _, variant in each]
    answers = [answer for trial in trials for answer in trial.answers]
    notes = [json.dumps(jsonable(t.trial.notes), sort_keys=True) if t.trial.notes else None for t in trials]
    sizes = [len(trial.answers) for trial in trials]
    roles = [variant.role or (role if place else "clean") for place, _, variant in each]
    scores = np.array([score for trial in trials for score in trial.scores], np.float64)
    clean = np.repeat(scores[np.cumsum([0, *sizes[:-1]])], sizes)
    same = [alike(trial.answers[0], answer) for trial in trials for answer in trial.answers]
    flips = flip_codes(clean, scores, same, np.array([one == "removes" for one in roles]))
    return {
        "trial": np.repeat(np.arange(first, first + len(trials)), sizes),
        "place": [place for place, _, _ in each],
        "role": roles,
        "example_id": [trial.example.id for _, trial, _ in each],
        "image_id": [trial.example.image_id for _, trial, _ in each],
        "cluster": [trial.example.cluster for _, trial, _ in each],
        "variant": [variant.name for _, _, variant in each],
        "level": [variant.level for _, _, variant in each],
        "question": [query.question for query in queries],
        "choices": [query.choices for query in queries],
        "image": [query.image.digest if query.image is not None else None for query in queries],
        "take": [query.take for query in queries],
        "key": [key for row in keys for key in row],
        **_words([reading for trial in trials for reading in trial.readings or [None] * len(trial.answers)]),
        "keeps": [trial.trial.keeps for _, trial, _ in each],
        "notes": [note for trial, note in zip(trials, notes, strict=True) for _ in trial.answers],
        "reply": [answer.reply for answer in answers],
        "answer": [answer.text for answer in answers],
        "unread": [answer.unread for answer in answers],
        "confidence": _known([answer.confidence for answer in answers]),
        "score": _known(scores),
        "clean_score": _known(clean),
        "flip": [FLIPS[code] if place else None for code, (place, _, _) in zip(flips.tolist(), each, strict=True)],
        "target": [trial.example.target if variant.target is None else variant.target for _, trial, variant in each],
        "answer_type": [trial.example.answer_type for _, trial, _ in each],
        "question_type": [trial.example.question_type for _, trial, _ in each],
        "contrast": [trial.example.contrast for _, trial, _ in each],
    }


def _words(readings: Sequence[Reading | None]) -> dict[str, list[int | None]]:
    """The columns of what the player read."""
    return {
        column: [None if reading is None else getattr(reading, name) for reading in readings]
        for column, name in READ.items()
    }


def readings_in(path: Path) -> dict[str, Reading]:
    """By key, what the player read of the queries in a trials file, as far as it told and the file can be read."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    try:
        if not set(READ) <= set(pq.read_schema(path).names):
            return {}
        table = pq.read_table(path, columns=["key", *READ], filters=pc.field("words").is_valid())
    except (OSError, pa.ArrowException):
        return {}
    columns = (table[name].to_pylist() for name in READ)
    return dict(zip(table["key"].to_pylist(), map(Reading, *columns), strict=True))


def _known(values: Any) -> pa.Array:
    """Numbers; those that are not known are missing."""
    import pyarrow as pa

    return pa.array(values, pa.float64(), from_pandas=True)


def _table(columns: dict[str, Any]) -> pa.Table:
    import pyarrow as pa

    try:
        return pa.table(columns, schema=trials_schema())
    except UnicodeError:  # a lone surrogate somewhere
        for name, kind in COLUMNS.items():
            if kind == "string":
                columns[name] = [None if text is None else storable(text) for text in columns[name]]
        columns["choices"] = [[storable(choice) for choice in choices] for choices in columns["choices"]]
        return pa.table(columns, schema=trials_schema())


def row_groups(path: Path, columns: Sequence[str], only: Iterable[int] | None = None) -> Iterator[tuple[int, pa.Table]]:
    """Some columns of a trials file, row group by row group, each with its number."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    expected = trials_schema()
    with pq.ParquetFile(path, **PARQUET_READING) as file:
        for name in columns:
            # Pages have checksums; what kind of values they hold stands outside of them.
            if (kind := file.schema_arrow.field(name).type) != expected.field(name).type:
                raise pa.ArrowInvalid(f"its column {name} holds {kind}")
        for number in range(file.num_row_groups) if only is None else only:
            # Arrow would keep what a row group takes for the next one, and every thread of its own what it read.
            yield number, file.read_row_group(number, columns=list(columns), use_threads=False)
            pa.default_memory_pool().release_unused()


def trials_schema() -> pa.Schema:
    import pyarrow as pa

    kinds = {
        "list": pa.list_(pa.string()), "string": pa.string(), "int": pa.int32(), "long": pa.int64(),
        "real": pa.float64(), "bool": pa.bool_(),
    }  # fmt: skip
    return pa.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])


COLUMNS = {
    "trial": "long", "place": "int", "role": "string", "example_id": "string", "image_id": "string",
    "cluster": "string", "variant": "string", "level": "real", "question": "string", "choices": "list",
    "image": "string", "take": "int", "key": "string", "words": "int", "words_cut": "int", "words_unknown": "int",
    "keeps": "string", "notes": "string", "reply": "string",
    "answer": "string", "unread": "bool", "confidence": "real", "score": "real", "clean_score": "real",
    "flip": "string", "target": "string", "answer_type": "string", "question_type": "string", "contrast": "string",
}  # fmt: skip
