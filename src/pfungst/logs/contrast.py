"""Contrast groups of a log: which of its questions look alike but are not answered alike.

A log of VLMEvalKit holds the questions of its data set and names it; the benchmarks made of pairs are told by that
name, or by their ids.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from pfungst.logs.records import Log
from pfungst.logs.source import stem

_HALLUSION = re.compile(r"(V[DS]_[a-z]+)_[01]_(\d+)_\d+_\d+", re.IGNORECASE)
_IN_ORDER = {"mmvp": 2, "naturalbenchdataset": 4, "naturalbench": 4}
"""Data sets whose rows follow one another in groups of so many."""


def contrasts(log: Log) -> Mapping[str, str]:
    """The id of a question -> the name of its contrast group, for the questions that have one."""
    ids = [record.id for record in log.records]
    if ids and all(_HALLUSION.fullmatch(id_) for id_ in ids):
        return {id_: "_".join(match.groups()) for id_ in ids if (match := _HALLUSION.fullmatch(id_))}
    if log.format != "vlmevalkit":
        return {}
    name = (log.about.data or stem(Path(log.path)).rpartition("_")[2]).casefold()
    if name == "mme":
        return {record.id: f"{record.question_type}/{record.image_id}" for record in log.records if record.image_id}
    if name in _IN_ORDER and all(id_.isdecimal() for id_ in ids):
        first = min(map(int, ids), default=0)
        return {id_: str((int(id_) - first) // _IN_ORDER[name]) for id_ in ids}
    return {}
