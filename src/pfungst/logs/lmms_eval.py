"""lmms-eval: `TIME_samples_TASK.jsonl` (0.3 to 0.7) with `TIME_results.json` beside it, and the JSON of before 0.3.

`doc_id` is a row number of the task's split, not the data set's id; an id inside a metric is the data set's own and is
preferred where it is unique. Lines are appended, so the last line of a document counts. `doc_hash` is the same on every
line in some versions and is not read. Of a multiple choice judged by likelihood the file holds losses: lmms-eval takes
the smallest, lm-eval the largest. Targets went through `str()`: those of a test split are all `None`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pfungst.logs.lm_eval import own_ids, sample
from pfungst.logs.records import About, LogFormat, Record
from pfungst.logs.vlmevalkit import rotations
from pfungst.rows import cells
from pfungst.rows.source import Source

_NAME = re.compile(r"(?P<run>.+)_samples_(?P<task>.+)")


class LmmsEval(LogFormat):
    """lmms-eval samples: TIME_samples_TASK.jsonl, with the results next to it."""

    name = "lmms-eval"
    title = "lmms-eval samples"
    repeats = "last"
    _own_ids: bool | None = None

    def claims(self, source: Source) -> float:
        columns = set(source.columns)
        return 0.8 if "doc_id" in columns and columns & {"filtered_resps", "resps"} else 0.0

    def record(self, row: Mapping[str, Any], where: str, source: Source) -> Sequence[Record]:
        if self._own_ids is None:
            self._own_ids = own_ids(source)
        return sample(row, where, self._own_ids, losses=True)

    def finish(self, records: Sequence[Record]) -> Sequence[Record]:
        if all(record.target == "None" for record in records):
            records = [replace(record, answers=(), target=None) for record in records]
        return rotations(records)

    def about(self, source: Source) -> About:
        if "model_configs" in source.header or "args" in source.header:
            arguments = cells.mapping(source.header.get("args"))
            return About(str(arguments.get("model") or ""))
        named = _NAME.fullmatch(source.stem)
        if named is None:
            return About()
        path = source.path.with_name(f"{named['run']}_results.json")
        if not path.exists():
            return About(data=named["task"])
        try:
            found = cells.mapping(json.loads(path.read_text("utf-8")))
        except (OSError, ValueError, RecursionError):
            return About(data=named["task"], notes=(f"{path} cannot be read, so the model is not known.",))
        config = cells.mapping(cells.mapping(found.get("configs")).get(named["task"]))
        parts = (config.get("dataset_path"), config.get("dataset_name"), config.get("test_split"))
        return About(
            str(found.get("model_name") or cells.mapping(found.get("config")).get("model") or ""),
            "/".join(str(part) for part in parts if part) or named["task"],
            cells.mapping(cells.mapping(found.get("results")).get(named["task"])),
        )
