"""A file as rows, whatever it is: JSON, JSON lines, CSV, TSV, Parquet, xlsx, or inspect's zip. The content decides; the
suffix only tells CSV from TSV."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pfungst.core import DataError
from pfungst.data.files import BOMB_FLOOR, BOMB_RATIO, File
from pfungst.data.lines import delimiter

Row = tuple[str, Mapping[str, Any]]
"""Position in the file, and the row."""

MAX_CELL = 64 << 20
_LOOKED_AT = 50
"""Rows whose columns decide which format a file has."""
_ID = {"id", "question_id", "questionId", "index", "qid"}
"""Columns that name a question; where a row has none, its key does."""
_LISTS = ("samples", "logs", "records", "results", "predictions", "answers", "data")
"""Lists that hold the records of a JSON object, in this order."""


@dataclass(frozen=True)
class Source:
    """The rows of a file, and what stands around them."""

    path: Path
    rows: Sequence[Row]
    fingerprint: str
    header: Mapping[str, Any] = field(default_factory=dict)
    """What the file says beside its rows."""

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Of the first rows."""
        return tuple(dict.fromkeys(column for _, row in self.rows[:_LOOKED_AT] for column in row))

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """Position in the file -> number of the row, counted from 1: a cell may run over several lines."""
        return {where: number for number, (where, _) in enumerate(self.rows, 1)}

    @property
    def stem(self) -> str:
        """The name of the file without its endings."""
        return File(self.path).stem


def open_source(path: Path) -> Source:
    """Read a file into rows. Raises DataError where it cannot be read or has none."""
    raw = _read(path)
    fingerprint = hashlib.sha256(raw).hexdigest()
    header: Mapping[str, Any] = {}
    if path.suffix.lower() in (".pkl", ".pickle") or raw[:1] == b"\x80":
        raise DataError.at(
            path,
            "",
            "this is a pickle, which can run any program when it is opened: nothing is unpickled here.",
            "Save the same records as xlsx, tsv or json (VLMEvalKit: PRED_FORMAT=tsv).",
        )
    if raw[:4] == b"PAR1":
        rows = _parquet(path, raw)
    elif raw[:4] == b"PK\x03\x04":
        header, rows = _zip(path, raw)
    else:
        text = _text(path, raw)
        if File(path).suffix in (".csv", ".tsv") or text.lstrip()[:1] not in ("[", "{", ""):
            rows = list(_cells(path, text))
        else:
            header, rows = _json(path, text)
    if not rows:
        raise DataError.at(path, "", "there are no answers in this file.")
    return Source(path, rows, fingerprint, header)


def _read(path: Path) -> bytes:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError.at(path, "", f"the recorded answers cannot be read ({error.strerror or error}).") from error
    if raw[:2] != b"\x1f\x8b":
        return raw
    most = max(BOMB_FLOOR, BOMB_RATIO * len(raw))
    try:
        unpacked = gzip.GzipFile(fileobj=io.BytesIO(raw)).read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError.at(path, "", f"the file is not complete gzip data ({error}).", "Copy it again.") from error
    if len(unpacked) > most:
        raise DataError.at(path, "", f"it unpacks to more than {most:,} bytes.", "If you trust it, unpack it yourself.")
    return unpacked


def _text(path: Path, raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError.at(path, f"line {line}", "this is not UTF-8 text.", "Save the file as UTF-8.") from error


# --- JSON -------------------------------------------------------------------------------------------------------------


def _json(path: Path, text: str) -> tuple[Mapping[str, Any], list[Row]]:
    if not text.strip():
        return {}, []
    if text.lstrip()[0] == "{" and (lines := _lines(path, text)) is not None:
        return {}, lines
    value = _parse(path, "", text)
    if isinstance(value, list):
        return {}, [_row(path, f"record {number}", one) for number, one in enumerate(value, 1)]
    return _unfold(path, value)


def _lines(path: Path, text: str) -> list[Row] | None:
    """JSON lines; None where the first line is not a whole object, or the only one holds a list of records."""
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    try:
        value = json.loads(lines[0][1])
    except (ValueError, RecursionError):
        if len(lines) > 1 and _is_json(lines[1][1]):
            _parse(path, f"line {lines[0][0]}", lines[0][1])
        return None
    if (
        len(lines) == 1
        and isinstance(value, dict)
        and any(test(value) for test in (_inner, _by_id, _no_samples, _nested))
    ):
        return None
    return [_row(path, f"line {number}", _parse(path, f"line {number}", line)) for number, line in lines]


def _is_json(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _unfold(path: Path, value: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[Row]]:
    """An object around records: a list of them, or answers by id."""
    if inner := _inner(value):
        rows = [_row(path, f"record {number}", one) for number, one in enumerate(value[inner], 1)]
        return {name: part for name, part in value.items() if name != inner}, rows
    if _by_id(value):
        return {}, [(f"record {number}", {"question_id": key, "answer": said}) for number, (key, said) in
                    enumerate(value.items(), 1)]  # fmt: skip
    if _nested(value):
        by_key = _turned(value) if all(_is_rows(one) for one in value.values()) else value
        named = [row if _ID & set(row) else {"id": key, **row} for key, row in by_key.items()]
        return {}, [(f"record {number}", row) for number, row in enumerate(named, 1)]
    return {}, [("record 1", value)] if value and not _no_samples(value) else []


def _no_samples(value: Mapping[str, Any]) -> bool:
    """An inspect log without samples."""
    return value.get("samples") == []


def _nested(value: Mapping[str, Any]) -> bool:
    """An object of objects: rows by id, `{"q1": {"response": "red"}}`, or columns as pandas writes them."""
    return bool(value) and all(isinstance(one, dict) and one for one in value.values())


def _is_rows(column: Mapping[str, Any]) -> bool:
    return list(column) == [str(number) for number in range(len(column))]


def _turned(columns: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    """Columns of rows, `{"response": {"0": "red"}}`, as rows of columns."""
    numbers = dict.fromkeys(number for column in columns.values() for number in column)
    return {number: {name: column.get(number) for name, column in columns.items()} for number in numbers}


def _inner(value: Mapping[str, Any]) -> str:
    def records(name: str) -> bool:
        part = value.get(name)
        return isinstance(part, list) and bool(part) and all(isinstance(one, dict) for one in part)

    found = [name for name in value if records(name)]
    return next((name for name in _LISTS if name in found), "")


def _by_id(value: Mapping[str, Any]) -> bool:
    """`{"262148000": "red", ...}`: every name is an id, every value an answer."""
    numbers = all(name.replace("_", "").replace("-", "").lstrip("vq").isdigit() for name in value)
    return bool(value) and numbers and all(isinstance(one, str | int | float) for one in value.values())


def _parse(path: Path, where: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError.at(path, where, f"this is not JSON ({error}).") from error


def _row(path: Path, where: str, value: Any) -> Row:
    if not isinstance(value, Mapping):
        raise DataError.at(path, where, f"expected an object with an id and a reply, not {value!r:.60}.")
    return where, value


# --- tables -----------------------------------------------------------------------------------------------------------


def _cells(path: Path, text: str) -> Iterator[Row]:
    between = delimiter(text.partition("\n")[0], File(path).suffix)
    csv.field_size_limit(MAX_CELL)  # a prediction or a picture in base64 may be megabytes long
    table = _read_cells(path, text, between, csv.QUOTE_MINIMAL)
    if between == "\t" and any("\t" in cell and "\n" in cell for _, row in table for cell in row):
        plain = _read_cells(path, text, between, csv.QUOTE_NONE)
        if len({len(row) for _, row in plain}) == 1:
            table = plain  # every line is a row: a quotation mark that is only text had swallowed those behind it
    yield from named_rows(path, table)


def _read_cells(path: Path, text: str, between: str, quoting: Literal[0, 3]) -> list[tuple[str, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=between, quoting=quoting)
    try:
        return [(f"line {reader.line_num}", cells) for cells in reader if any(cells)]
    except csv.Error as error:
        raise DataError.at(path, f"line {reader.line_num}", f"the row cannot be read ({error}).") from error


def named_rows(path: Path, table: Sequence[tuple[str, Sequence[Any]]]) -> Iterator[Row]:
    """Rows, each with its place, under the names in the first one."""
    if len(table) < 2:
        return
    (first, head), *rows = table
    names = [str(cell).strip() for cell in head]
    twice = next((one for one in names if one and names.count(one) > 1), None)
    if twice is not None:
        raise DataError.at(path, first, f"the column {twice!r} appears twice.")
    if len(names) < 2:
        raise DataError.at(path, first, f"this is not a table of answers: it begins with {head[0]!r:.60}.")
    for where, cells in rows:
        if len(cells) != len(names):
            raise DataError.at(path, where, f"the row has {len(cells)} cells, but there are {len(names)} columns.")
        yield where, {name: cell for name, cell in zip(names, cells, strict=True) if name}


def _parquet(path: Path, raw: bytes) -> list[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(io.BytesIO(raw))
        # Pictures stay where they are: no answer is read from bytes.
        columns = [one.name for one in schema if not _has_bytes(one.type)]
        rows = pq.read_table(io.BytesIO(raw), columns=columns).to_pylist()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError.at(path, "", f"this is not readable Parquet ({error}).", "Write it again.") from error
    return [(f"row {number}", row) for number, row in enumerate(rows, 1)]


def _has_bytes(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return any(_has_bytes(one.type) for one in kind)
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _zip(path: Path, raw: bytes) -> tuple[Mapping[str, Any], list[Row]]:
    """A zip is a workbook or an inspect log."""
    from pfungst.logs.archives import member_names, read_eval, read_workbook

    names = member_names(path, raw)
    if any(name.startswith("xl/") for name in names):
        return {}, read_workbook(path, raw)
    if "header.json" in names or "_journal/start.json" in names:
        return read_eval(path, raw)
    raise DataError.at(
        path, "", "this zip is neither an xlsx workbook nor an inspect log.", "Unpack it and name a file in it."
    )
