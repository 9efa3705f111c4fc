"""Plain tables: JSON lines, a JSON list, CSV, TSV and Parquet, one row per question. The schema is in `rows.py`."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pfungst.core import DataError, Image
from pfungst.data.formats.layouts import NAMES
from pfungst.data.formats.rows import ColumnOptions, Rows
from pfungst.data.images import StoredImage
from pfungst.data.job import Format, Found, Job
from pfungst.rows.files import File
from pfungst.rows.json_records import JsonRecords, json_lines
from pfungst.rows.tables import csv_rows, parquet_columns, parquet_rows

Row = tuple[int | str, Any, Image | None]
"""Position, the row or what is wrong with it, and its image if the table holds it."""

_SHARD = re.compile(r"[-_]\d{4,6}-of-\d{4,6}$")
_LINES = frozenset({".jsonl", ".ndjson"})
_CELLS = frozenset({".csv", ".tsv"})
_SUFFIXES = _LINES | _CELLS | {".json", ".parquet"}
_WRAPPED = re.compile(
    r'\s*\{(?:\s*"[^"]{1,40}"\s*:\s*(?:"[^"]{0,400}"|[\d.]+|null|true|false)\s*,)*\s*"(data|questions)"\s*:\s*\['
)
"""`{"version": "0.5.1", "data": [...]}`: TextVQA, SEED-Bench."""
_BY_ID = re.compile(r'\s*\{\s*"[^"]{1,40}"\s*:\s*\{[^{}\[\]]{0,4000}"question"\s*:\s*"')
"""`{"1": {"question": ...}, "2": ...}`: ScienceQA."""


class TableFiles(Format):
    """A table of questions: JSON lines, CSV, TSV or Parquet.

    Each file is a split named after it; `val-00000-of-00002.parquet` is part of `val`. A Parquet file of images alone,
    with their ids, brings the images of questions that name them."""

    name = "table"
    title = "JSON lines, CSV, TSV or Parquet"
    expects = "one or more of *.jsonl, *.json, *.csv, *.tsv, *.parquet"
    options = ColumnOptions

    def claims(self, file: File, head: str) -> float:
        if file.suffix in _LINES | {".parquet"}:
            return 0.4
        if holds_lines(head):
            return 0.35
        if file.suffix in _CELLS:
            first = head.partition("\n")[0].lower()
            return 0.4 if any(column in first for column in NAMES["question"]) else 0.1
        if file.suffix == ".json" and any(f'"{column}"' in head for column in NAMES["question"]):
            return 0.3 if head.lstrip().startswith("[") or _WRAPPED.match(head) or _BY_ID.match(head) else 0.0
        return 0.0

    def read(self, job: Job) -> Iterator[Found]:
        pictures = [file for file in job.files if _holds_images(file)] if len(job.files) > 1 else []
        splits = _splits(job, [file for file in job.files if file not in pictures])
        if not splits:
            raise self.nothing(job, "there is no table in it.")
        chosen = job.choose(list(splits))
        job.name = "+".join(chosen)
        job.metric = job.options.get("metric", "")
        rows = Rows(job)
        for file in pictures:
            rows.pictures.update(_pictures(file, rows))
        alone = len(chosen) == 1 and len(splits[chosen[0]]) == 1
        yield from rows.settled(
            example
            for split in job.in_turn(chosen)
            for file in splits[split]
            for where, row, picture in _rows(file, rows)
            for example in rows.found(file, where, row, "" if alone else f"{file.stem}-", picture)
        )


def _rows(file: File, rows: Rows) -> Iterator[Row]:
    if file.suffix in _CELLS:
        for number, value, _ in csv_rows(file, rows.expect):
            yield number, value, None
    elif file.suffix == ".parquet":
        column = rows.column(dict.fromkeys(parquet_columns(file)[0], True), "image")
        for number, row, images in parquet_rows(file):
            for image in images.values():
                if image.path:
                    row.setdefault("image_id", image.path)
            there = {name: (StoredImage(image.fetch), image.count) for name, image in images.items()}
            yield number, row, rows.picture_of(row, there, column)
    elif file.suffix in _LINES or holds_lines(head := file.head()):
        for number, value in json_lines(file):
            yield number, value, None
    else:
        reader = JsonRecords(file)
        if _BY_ID.match(head):
            for id_, value in reader.members():
                yield reader.where, {"id": id_, **value} if isinstance(value, Mapping) else value, None
            return
        wrapped = _WRAPPED.match(head)
        for value in reader.list(wrapped[1] if wrapped else "data"):
            yield reader.where, value, None


def holds_lines(head: str) -> bool:
    """Whether a file is JSON lines, whatever its name: the first line is an object, and so is the next."""
    first, _, rest = head.lstrip().partition("\n")
    if not first.startswith("{"):
        return False
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        return False
    asks = any(isinstance(value.get(column), str) for column in NAMES["question"])
    return rest.lstrip().startswith("{") or (asks and not rest.strip())


def _pictures(file: File, rows: Rows) -> Iterator[tuple[str, Image]]:
    """Image id and image of a table that holds images alone (GQA on the hub)."""
    for _, row, picture in _rows(file, rows):
        if picture is not None and (id_ := row.get(rows.column(row, "id"))) is not None:
            yield str(id_), picture


def _holds_images(file: File) -> bool:
    """Whether a file is a table of images alone: an id and an image, and nothing is asked."""
    if file.suffix != ".parquet":
        return False
    try:
        columns, images = parquet_columns(file)
    except DataError:
        return False  # told when it is read
    return bool(images) and set(columns) - set(images) <= {"id", "image_id", "imageId"}


def _splits(job: Job, tables: Sequence[File]) -> Mapping[str, list[File]]:
    splits: dict[str, dict[str, File]] = {}
    names = Counter((file.name, file.preference) for file in tables)
    for file in sorted(tables):
        if file.suffix in _SUFFIXES or (len(job.files) == 1 and holds_lines(file.head())):
            split = _SHARD.sub("", file.stem)
            if names[file.name, file.preference] > 1:
                # two tables of one name in two folders: the folders tell them apart
                split = f"{file.folder.replace(chr(92), '/').rpartition('/')[2]}/{split}"
            splits.setdefault(split, {}).setdefault(file.name, file)
    if len(splits) > 1:
        # other JSON lying with tables (a model card, statistics) is rarely a table of questions
        sure = {split: files for split, files in splits.items() if any(f.suffix != ".json" for f in files.values())}
        splits = sure or splits
    return {split: [files[name] for name in sorted(files)] for split, files in splits.items()}
