"""The answers of a run, variant by variant: from a number in the report to what was asked and said."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pfungst.core import Answer, PfungstError, read_config
from pfungst.core.exam import labelled
from pfungst.core.files import reading
from pfungst.core.parquet import READING
from pfungst.core.store import AnswerStore
from pfungst.report.kinds import KINDS, kind_of

COLUMNS = (
    "example_id", "image_id", "variant", "question", "choices", "answer", "score", "target", "answer_type",
    "question_type", "raw", "unread", "image",
)  # fmt: skip


@dataclass(frozen=True)
class Chosen:
    """Which answers are wanted; an empty field wants all."""

    probe: str = ""
    example_id: str = ""
    kind: str = ""
    """Answer type or question type."""
    wrong: bool = False
    """Only examples with a wrong answer (score 0) in some variant."""
    unread: bool = False
    """Only examples with a reply that could not be read."""
    flip: str = ""
    """Only examples whose answer fared so: one of `kinds.KINDS`, such as `right to wrong`."""
    text: str = ""
    """Only examples in whose questions, replies, choices, right answer or id these words stand."""


def answers(run: Path, chosen: Chosen | None = None, label: str = "") -> Iterator[dict[str, Any]]:
    """The chosen answers, example by example: COLUMNS and the probe. Variants of one example follow each other.

    label: of a second reading of the run, see `pfungst.rescore`.
    """
    chosen = chosen or Chosen()
    probes = [probe["name"] for probe in read_config(run)["probes"]]
    if chosen.probe and chosen.probe not in probes:
        raise PfungstError(f"{run} has no probe {chosen.probe}; its probes are: {', '.join(probes)}.")
    if chosen.flip and chosen.flip not in KINDS:
        raise PfungstError(f"There is no flip called {chosen.flip!r}. There are: {', '.join(KINDS)}.")
    wanted = [chosen.probe] if chosen.probe else probes
    removing = removing_probes(run, wanted, label) if chosen.flip else frozenset()
    words = chosen.text.casefold().split()
    for probe in wanted:
        for rows in _examples(run, probe, label):
            if chosen.kind and chosen.kind not in (rows[0]["answer_type"], rows[0]["question_type"]):
                continue
            if chosen.example_id and rows[0]["example_id"] != chosen.example_id:
                continue
            if chosen.unread and not any(row["unread"] for row in rows):
                continue
            if chosen.flip and chosen.flip != _flip(rows, probe in removing):
                continue
            if words and not _holds(rows, words):
                continue
            if not chosen.wrong or any(row["score"] == 0 for row in rows):
                yield from ({"probe": probe, **row} for row in rows)


def _flip(rows: Sequence[dict[str, Any]], removes: bool) -> str:
    scores = [math.nan if row["score"] is None else row["score"] for row in rows]
    found = kind_of(scores, [row["answer"] for row in rows], removes)
    return "" if found is None else found[0]


def _holds(rows: Sequence[dict[str, Any]], words: Sequence[str]) -> bool:
    texts = (
        text
        for row in rows
        for text in (row["example_id"], row["question"], row["raw"], row["target"], *(row["choices"] or ()))
    )
    whole = "\n".join(text for text in texts if text).casefold()
    return all(word in whole for word in words)


def _examples(run: Path, probe: str, label: str) -> Iterator[list[dict[str, Any]]]:
    import pyarrow.parquet as pq

    with trials_file(run, probe, label) as path:
        file = pq.ParquetFile(path, **READING)
        missing_columns(path, file.schema_arrow.names)
        batches = file.iter_batches(columns=list(COLUMNS))
        yield from trials_of(row for batch in batches for row in batch.to_pylist())


def trials_of(rows: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Rows of one probe, trial by trial: a trial begins with its clean variant."""
    trial: list[dict[str, Any]] = []
    for row in rows:
        if trial and (row["example_id"] != trial[0]["example_id"] or row["variant"] == trial[0]["variant"]):
            yield trial
            trial = []
        trial.append(row)
    if trial:
        yield trial


@contextmanager
def trials_file(run: Path, probe: str, label: str = "") -> Iterator[Path]:
    """The trials of a probe, while they are read; PfungstError where there are none, or where the file is damaged."""
    path = labelled(run / "trials", label) / f"{probe}.parquet"
    if label and not path.parent.exists():
        raise PfungstError(f"{run} has no reading {label!r}: `pfungst rescore {run} --metric METRIC` makes one.")
    if not path.exists():
        raise PfungstError(f"{run} has no trials of the probe {probe}: run the exam to its end.")
    with reading(path, f"Run `pfungst rescore {run}`."):
        yield path


def stored(run: Path, keys: Iterable[str]) -> dict[str, Answer]:
    """By key, what the answer store of a run knows beyond its trials: scores of the choices, thinking, tokens ..."""
    path = run / "answers.sqlite"
    if not path.exists():
        return {}
    with AnswerStore(path) as store:
        return store.known(keys)


def missing_columns(path: Path, names: Sequence[str]) -> None:
    """Refuse a trials file that lacks a column."""
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise PfungstError(
            f"{path} was written by an earlier version: it has no column {missing[0]}. "
            f"Run `pfungst rescore {path.parent.parent}`."
        )


def removing_probes(run: Path, probes: Sequence[str], label: str = "") -> frozenset[str]:
    """Those of the probes that take the evidence away: the contract of their trials begins with `nothing`."""
    import pyarrow.parquet as pq

    found = set()
    for probe in probes:
        if (labelled(run / "trials", label) / f"{probe}.parquet").exists():
            with trials_file(run, probe, label) as path:
                first = next(pq.ParquetFile(path, **READING).iter_batches(batch_size=1, columns=["keeps"]), None)
            if first is not None and len(first) and str(first.column(0)[0].as_py()).startswith("nothing"):
                found.add(probe)
    return frozenset(found)
